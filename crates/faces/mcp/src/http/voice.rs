//! The refusals of the edge at our address, as JSON-RPC errors.

use std::sync::Arc;

use http::StatusCode;
use orchestr8_contract::id::CorrelationId;
use orchestr8_edge::{Refusal, Voice};

use super::sse::{MESSAGES_PATH, SSE_PATH};
use super::{PATH, answer, refusal};

/// Words refusals of requests for our addresses as its clients read answers. They belong to no message, so their id is null.
pub fn voice() -> Voice {
    Arc::new(|path, refused, correlation| {
        if path != PATH && path != SSE_PATH && path != MESSAGES_PATH {
            return None;
        }
        let correlation = CorrelationId::parse(correlation.to_str().ok()?).ok()?;
        Some(answer::refuse(&error(refused), None, &correlation))
    })
}

fn error(refused: &Refusal) -> crate::wire::Error {
    match refused.status {
        StatusCode::INTERNAL_SERVER_ERROR => refusal::internal(refused.code, refused.message.clone()),
        status => refusal::edge(status, refused.code, refused.message.clone()),
    }
}
