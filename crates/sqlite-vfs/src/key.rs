//! The key of an installation, which wraps the data key of each sealed file. It is never written to a data file.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use orchestr8_contract::canonical;
use zeroize::Zeroizing;

pub(crate) const KEY_BYTES: usize = 32;

/// 32 secret bytes from a variable, a file or a command.
#[derive(Clone, PartialEq, Eq)]
pub struct EncryptionKey(Zeroizing<[u8; KEY_BYTES]>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the key is not 32 bytes in base64 or hexadecimal digits")]
    Malformed,
    #[error("this machine gives no random numbers")]
    NoRandomness,
}

impl EncryptionKey {
    /// 32 bytes as hexadecimal digits or base64.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let bytes = Zeroizing::new(match text.len() {
            64 => canonical::unhex(text).unwrap_or_default(),
            _ => STANDARD.decode(text).or_else(|_| URL_SAFE_NO_PAD.decode(text)).unwrap_or_default(),
        });
        let bytes = bytes.as_slice().try_into().map_err(|_| Error::Malformed)?;
        Ok(Self(Zeroizing::new(bytes)))
    }

    pub fn generate() -> Result<Self, Error> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        aws_lc_rs::rand::fill(&mut *bytes).map_err(|_| Error::NoRandomness)?;
        Ok(Self(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl fmt::Debug for EncryptionKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("EncryptionKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_in_base64_and_hexadecimal_and_never_shown() {
        let key = EncryptionKey::parse(&"0f".repeat(32)).unwrap();
        assert_eq!(key, EncryptionKey::parse(&format!(" {}\n", STANDARD.encode([15; 32]))).unwrap());
        for wrong in ["", "short", &"z".repeat(64), &STANDARD.encode([1; 31])] {
            assert_eq!(EncryptionKey::parse(wrong), Err(Error::Malformed), "{wrong}");
        }
        assert_eq!(format!("{key:?}"), "EncryptionKey(..)");
        assert_ne!(EncryptionKey::generate().unwrap(), EncryptionKey::generate().unwrap());
    }
}
