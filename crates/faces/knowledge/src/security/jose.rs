//! What compact JWS and JWT share: three parts, strictly read, and nothing in the header that would change the rules.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use super::Refused;
use crate::from_wire;

/// A token taken apart. What was signed is exactly the text it came as.
#[derive(Debug)]
pub(crate) struct Parts {
    pub header: Map<String, Value>,
    pub payload: Vec<u8>,
    pub signed: Vec<u8>,
    pub signature: Vec<u8>,
}

/// Members that would let the sender choose the rules or the key.
const FOREIGN: [&str; 7] = ["crit", "b64", "jwk", "jku", "x5u", "x5c", "zip"];

impl Parts {
    /// A whole token.
    pub fn compact(text: &str) -> Result<Self, Refused> {
        let (header, payload, signature) = split(text)?;
        if payload.is_empty() {
            return Err(Refused::Form);
        }
        Self::read(header, decode(payload)?, format!("{header}.{payload}").into_bytes(), signature)
    }

    /// A signature whose payload is elsewhere: `header..signature`.
    pub fn detached(text: &str, payload: &[u8]) -> Result<Self, Refused> {
        let (header, between, signature) = split(text)?;
        if !between.is_empty() {
            return Err(Refused::Form);
        }
        let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(payload)).into_bytes();
        Self::read(header, payload.to_vec(), signed, signature)
    }

    fn read(header: &str, payload: Vec<u8>, signed: Vec<u8>, signature: &str) -> Result<Self, Refused> {
        let header = from_wire::object(&decode(header)?).map_err(|_| Refused::Header)?;
        if FOREIGN.iter().any(|name| header.contains_key(*name)) {
            return Err(Refused::Extension);
        }
        Ok(Self { header, payload, signed, signature: decode(signature)? })
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.header.get(name).and_then(Value::as_str)
    }
}

/// Strict: no padding, no other alphabet, no bits left over, so that one signature has one spelling.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, Refused> {
    URL_SAFE_NO_PAD.decode(text).map_err(|_| Refused::Form)
}

pub(crate) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn split(text: &str) -> Result<(&str, &str, &str), Refused> {
    let mut parts = text.split('.');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(header), Some(payload), Some(signature), None)
            if !header.is_empty() && !signature.is_empty() =>
        {
            Ok((header, payload, signature))
        }
        _ => Err(Refused::Form),
    }
}

/// A time of seconds since 1970.
pub(crate) fn seconds(value: Option<&Value>) -> Result<i64, Refused> {
    value.and_then(Value::as_i64).filter(|seconds| (0..=1 << 40).contains(seconds)).ok_or(Refused::Times)
}
