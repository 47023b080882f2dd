//! Chat completions as OpenAI made them, and as Ollama, vLLM and most others speak them.

mod fold;
mod request;

#[cfg(test)]
mod tests;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde_json::Value;

use crate::model::Request;
use crate::secret::Secret;
use crate::wire::{Fold, Spec, Wire};

pub struct OpenAi;

impl Wire for OpenAi {
    fn path(&self) -> &'static str {
        "/chat/completions"
    }

    fn headers(&self, key: Option<&Secret>) -> Option<HeaderMap> {
        bearer(key)
    }

    fn body(&self, spec: &Spec, request: &Request) -> Value {
        request::body(spec, request)
    }

    fn fold(&self, spec: &Spec, request: &Request, now_ms: i64) -> Box<dyn Fold> {
        Box::new(fold::Completion::new(spec, request, now_ms))
    }
}

/// The key as a header, if there is one. None: it has characters that no header has.
pub(crate) fn bearer(key: Option<&Secret>) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    if let Some(key) = key {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose().trim())).ok()?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    Some(headers)
}
