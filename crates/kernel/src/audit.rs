//! The audit chain: who ran what, and how it ended, each entry chained to the one before by its hash.
//!
//! Arguments appear only as a hash, so that an entry proves what was asked without repeating a secret.

use orchestr8_contract::canonical;
use serde_json::json;

use crate::outcome::Stored;
use crate::pipeline::Admitted;
use crate::ports::clock::iso;
use crate::ports::store::Link;

/// The chain of all actions of this server.
pub const CHAIN: &str = "actions";

pub fn link(admitted: &Admitted, stored: &Stored, at_ms: i64) -> Link {
    let submission = &admitted.submission;
    let body = json!({
        "action": admitted.action.name,
        "args_hash": canonical::sha256_hex(submission.args.as_value()),
        "correlation_id": submission.correlation,
        "end": stored.end,
        "error_code": stored.fault.as_ref().map(|fault| fault.code),
        "principal": &*submission.principal.name,
        "run_id": admitted.run,
        "tenant": submission.principal.tenant,
        "timestamp": iso(at_ms),
        "transport": submission.transport.as_str(),
    });
    Link { chain: CHAIN.into(), at_ms, body: canonical::text(&body) }
}
