//! Signatures of the external profile (KNO-3): JWS with Ed25519 over the exact bytes of a request, compact or detached.
//!
//! The protected header has `alg`, `kid`, `iat`, `exp`, `nonce`. For requests without an envelope, and for envelopes that go onto the
//! bus, it has `htm` and `htu`, since the body would fit another address; `idempotency_key` covers the header of that name.

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde_json::json;

use super::Refused;
use super::jose::{self, Parts};
use super::keys::{Pair, Record};
use crate::limits::{KEY_LIFE_MS, NONCE_CHARS, SIGNATURE_LIFE_S, SKEW_MS};

/// A signature, read and not yet believed.
#[derive(Debug)]
pub(crate) struct Sealed {
    parts: Parts,
    pub kid: String,
    pub nonce: String,
    iat_s: i64,
    exp_s: i64,
}

/// The names of the one algorithm.
const ALGORITHMS: [&str; 2] = ["EdDSA", "Ed25519"];

/// The times, the nonce and the address of a signature.
#[derive(Debug, Clone)]
pub struct Claims<'a> {
    pub iat_s: i64,
    pub exp_s: i64,
    pub nonce: &'a str,
    /// Method and target, for requests without an envelope.
    pub address: Option<(&'a str, &'a str)>,
    /// What the header `Idempotency-Key` says, where the body does not.
    pub key: Option<&'a str>,
}

/// Where the payload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Inside: the whole is the body of the request.
    Compact,
    /// In the body, as it is: the signature goes into a header.
    Detached,
}

/// Signs a payload.
pub fn sign(pair: &Pair, payload: &[u8], claims: &Claims<'_>, form: Form) -> String {
    let mut header = json!({
        "alg": "EdDSA", "kid": pair.kid, "iat": claims.iat_s, "exp": claims.exp_s, "nonce": claims.nonce,
    });
    if let Some((method, target)) = claims.address {
        header["htm"] = method.into();
        header["htu"] = target.into();
    }
    if let Some(key) = claims.key {
        header["idempotency_key"] = key.into();
    }
    let (header, payload) = (jose::encode(header.to_string().as_bytes()), jose::encode(payload));
    let signature = SigningKey::from_bytes(&pair.seed).sign(format!("{header}.{payload}").as_bytes());
    let signature = jose::encode(&signature.to_bytes());
    match form {
        Form::Compact => format!("{header}.{payload}.{signature}"),
        Form::Detached => format!("{header}..{signature}"),
    }
}

/// What was signed, if the signature is one of this key and of now. Its nonce is not looked at: a check uses none up.
pub fn verify(text: &str, detached: Option<&[u8]>, key: &Record, now_ms: i64) -> Result<Vec<u8>, Refused> {
    let sealed = match detached {
        Some(payload) => Sealed::detached(text, payload)?,
        None => Sealed::compact(text)?,
    };
    Ok(sealed.open(key, now_ms)?.payload)
}

impl Sealed {
    pub fn compact(text: &str) -> Result<Self, Refused> {
        Self::of(Parts::compact(text)?)
    }

    pub fn detached(text: &str, payload: &[u8]) -> Result<Self, Refused> {
        Self::of(Parts::detached(text, payload)?)
    }

    fn of(parts: Parts) -> Result<Self, Refused> {
        if !parts.text("alg").is_some_and(|alg| ALGORITHMS.contains(&alg)) {
            return Err(Refused::Algorithm);
        }
        let kid = parts.text("kid").ok_or(Refused::Kid)?.to_owned();
        let nonce = parts.text("nonce").ok_or(Refused::Nonce)?.to_owned();
        if !NONCE_CHARS.contains(&nonce.len()) || !nonce.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Refused::Nonce);
        }
        let (iat_s, exp_s) =
            (jose::seconds(parts.header.get("iat"))?, jose::seconds(parts.header.get("exp"))?);
        Ok(Self { parts, kid, nonce, iat_s, exp_s })
    }

    /// Believes it, if it was made with this key, lately enough. The payload is what was signed.
    pub fn open(self, key: &Record, now_ms: i64) -> Result<Opened, Refused> {
        if key.kid != self.kid {
            return Err(Refused::Kid);
        }
        let public = VerifyingKey::from_bytes(&key.public).map_err(|_| Refused::Kid)?;
        let signature = Signature::from_slice(&self.parts.signature).map_err(|_| Refused::Signature)?;
        public.verify_strict(&self.parts.signed, &signature).map_err(|_| Refused::Signature)?;
        if key.revoked_ms.is_some_and(|revoked_ms| revoked_ms <= now_ms) {
            return Err(Refused::Revoked);
        }
        if now_ms.saturating_sub(key.created_ms) > KEY_LIFE_MS {
            return Err(Refused::Aged);
        }
        let (iat_ms, exp_ms) = (self.iat_s * 1000, self.exp_s * 1000);
        if iat_ms > now_ms.saturating_add(SKEW_MS) {
            return Err(Refused::Early);
        }
        if now_ms > exp_ms.saturating_add(SKEW_MS) {
            return Err(Refused::Late);
        }
        if self.exp_s < self.iat_s || self.exp_s - self.iat_s > SIGNATURE_LIFE_S {
            return Err(Refused::LongLived);
        }
        let address = self.parts.text("htm").zip(self.parts.text("htu"));
        let address = address.map(|(method, target)| (method.to_owned(), target.to_owned()));
        let key = self.parts.text("idempotency_key").map(str::to_owned);
        // The nonce is remembered for as long as the signature could be believed again.
        let forget_ms = exp_ms.saturating_add(SKEW_MS).saturating_add(1000);
        Ok(Opened { payload: self.parts.payload, nonce: self.nonce, forget_ms, address, key })
    }
}

/// A signature that is believed; its nonce is still to be used up.
#[derive(Debug)]
pub(crate) struct Opened {
    pub payload: Vec<u8>,
    pub nonce: String,
    pub forget_ms: i64,
    pub address: Option<(String, String)>,
    pub key: Option<String>,
}

#[cfg(test)]
#[path = "jws_tests.rs"]
mod tests;
