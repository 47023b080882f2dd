//! Refusals of the edge below our paths, in our own envelope: a client of this face reads one kind of error.

use std::sync::Arc;

use orchestr8_contract::Fault;
use orchestr8_contract::id::CorrelationId;
use orchestr8_edge::Voice;

use crate::failure::Failure;
use crate::routes::{ADMIN, OWN_CREDENTIALS};

/// How the edge says no below the paths of this face.
pub fn voice() -> Voice {
    Arc::new(|path, refusal, correlation| {
        let below = |prefix: &str| {
            path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if !OWN_CREDENTIALS.iter().chain([&ADMIN]).any(|prefix| below(prefix)) {
            return None;
        }
        let correlation = CorrelationId::parse(correlation.to_str().ok()?).ok()?;
        let failure = Failure::from(Fault::new(refusal.code, refusal.message.clone()));
        Some(failure.status(refusal.status).into_response(&correlation))
    })
}
