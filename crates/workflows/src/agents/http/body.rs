//! The body of a response, read piece by piece and never more of it than is allowed.

use orchestr8_contract::{Code, Fault};
use orchestr8_outbound::client;
use reqwest::Response;
use serde_json::Value;

use crate::engine::undo::{OUTCOME, OUTCOME_UNKNOWN};

/// The whole body, or a refusal as soon as it is known to be too long.
pub async fn read(mut response: Response, what: &str, max_bytes: usize) -> Result<Vec<u8>, Fault> {
    let too_long = || {
        Fault::new(Code::PayloadTooLarge, format!("{what} answered with more than {max_bytes} bytes"))
            .with("maxBytes", max_bytes)
            // It answered, so what was asked for may have been done.
            .with(OUTCOME, OUTCOME_UNKNOWN)
    };
    if response.content_length().is_some_and(|length| length > max_bytes as u64) {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| client::fault(what, error))? {
        if chunk.len() > max_bytes - bytes.len() {
            return Err(too_long());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// The beginning of the body, whatever its length; what cannot be read is not missed.
pub async fn beginning(mut response: Response, max_bytes: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < max_bytes {
        let Ok(Some(chunk)) = response.chunk().await else { break };
        let room = max_bytes - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
    }
    bytes
}

/// Nothing at all counts as null.
pub fn json(bytes: &[u8], what: &str) -> Result<Value, Fault> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Value::Null);
    }
    serde_json::from_slice(bytes).map_err(|wrong| {
        Fault::new(Code::AgentFailed, format!("{what} answered with what is not JSON: {wrong}"))
    })
}
