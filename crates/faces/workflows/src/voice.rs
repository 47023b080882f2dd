//! Refusals of the edge below our paths, in our own envelope: a client of this API reads one kind of error (contract).

use std::sync::Arc;

use orchestr8_contract::Fault;
use orchestr8_contract::id::CorrelationId;
use orchestr8_edge::Voice;
use orchestr8_kernel::Kernel;

use crate::failure::Failure;
use crate::routes::{PREFIXES, ROOTS};

/// How the edge says no below the paths of this face.
pub fn voice(kernel: &Kernel) -> Voice {
    let clock = kernel.ports().clock.clone();
    Arc::new(move |path, refusal, correlation| {
        let below = |prefix: &str| {
            path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if !PREFIXES.into_iter().any(below) && !ROOTS.contains(&path) {
            return None;
        }
        let correlation = CorrelationId::parse(correlation.to_str().ok()?).ok()?;
        let failure = Failure::from(Fault::new(refusal.code, refusal.message.clone())).status(refusal.status);
        Some(failure.into_response(&correlation, clock.now_ms()))
    })
}
