//! Certificate authorities that are trusted beside those of the system.

use std::fmt;
use std::sync::Arc;

use reqwest::Certificate;

/// The certificates of a PEM file; none by default.
#[derive(Clone, Default)]
pub struct ExtraAuthorities {
    certificates: Vec<Certificate>,
    /// What they were read from: two are equal if this is.
    pem: Arc<[u8]>,
}

impl ExtraAuthorities {
    /// Reads a PEM bundle; the error says why it holds no certificates.
    pub fn parse(pem: &[u8]) -> Result<Self, String> {
        let certificates = Certificate::from_pem_bundle(pem).map_err(|cause| cause.to_string())?;
        match certificates.is_empty() {
            true => Err(String::from("it holds none")),
            false => Ok(Self { certificates, pem: pem.into() }),
        }
    }

    pub fn certificates(&self) -> &[Certificate] {
        &self.certificates
    }
}

impl PartialEq for ExtraAuthorities {
    fn eq(&self, other: &Self) -> bool {
        self.pem == other.pem
    }
}

impl Eq for ExtraAuthorities {}

impl fmt::Debug for ExtraAuthorities {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ExtraAuthorities({})", self.certificates.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_no_certificate_is_refused() {
        for text in ["", "no certificate", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"] {
            assert!(ExtraAuthorities::parse(text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
