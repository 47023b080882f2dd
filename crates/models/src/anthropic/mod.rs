//! The Messages API of Anthropic.

mod fold;
mod request;

#[cfg(test)]
mod tests;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use crate::model::Request;
use crate::secret::Secret;
use crate::wire::{Fold, Spec, Wire};

/// The version of the API that this is written for.
const VERSION: &str = "2023-06-01";

/// Thinking that the provider has locked is kept as a signature with this in front.
const LOCKED: &str = "redacted_thinking:";

pub struct Anthropic;

impl Wire for Anthropic {
    fn path(&self) -> &'static str {
        "/v1/messages"
    }

    fn headers(&self, key: Option<&Secret>) -> Option<HeaderMap> {
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static("anthropic-version"), HeaderValue::from_static(VERSION));
        if let Some(key) = key {
            let mut value = HeaderValue::from_str(key.expose().trim()).ok()?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static("x-api-key"), value);
        }
        Some(headers)
    }

    fn body(&self, spec: &Spec, request: &Request) -> Value {
        request::body(spec, request)
    }

    fn fold(&self, spec: &Spec, request: &Request, now_ms: i64) -> Box<dyn Fold> {
        Box::new(fold::Messages::new(spec, request, now_ms))
    }
}
