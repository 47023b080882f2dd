//! Work that ends after its answer: recorded, and kept for repeats of its key (ADR 65).

use std::sync::Arc;

use orchestr8_contract::{Fault, Kind, Output};
use serde_json::json;

use crate::action::{Halt, Reply};
use crate::cancel::Why;
use crate::journal;
use crate::kernel::Core;
use crate::ledger::{LateKeys, store_fault};
use crate::log;
use crate::outcome::{End, Stored};
use crate::ports::store::Batch;
use crate::run::{Trace, keeps_promise};

/// Records how work ended whose answer was given before, or whose client was gone. There is no second answer (MCP-TIMEOUT-5); a
/// repeat of its key gets what the work gave instead of the timeout.
pub async fn settle(core: &Core, mut trace: Trace, result: Result<Reply, Halt>) {
    let end = match (trace.cancel.why(), &result) {
        (Some(Why::Client), _) | (Some(Why::Disconnect), Err(_)) => End::Aborted,
        (Some(Why::Disconnect), Ok(_)) | (None, _) => End::DisconnectedCompleted,
        (Some(Why::Deadline), _) => End::LateCompleted,
    };
    let duration_ms = core.ports.clock.elapsed_us().saturating_sub(trace.began_us) / 1000;
    core.ports.log.info("the work ended after its answer", || {
        json!({"correlationId": trace.correlation, "runId": trace.run, "action": trace.action.name,
               "outcome": end.as_str(), "durationMs": duration_ms})
    });
    let mut batch = Batch::new();
    batch.then(journal::late(&trace, end, core.ports.clock.now_ms(), duration_ms));
    let kept = match trace.keys.take() {
        Some(keys) if end == End::LateCompleted => keep(&trace, keys, result, &mut batch).await,
        Some(_) | None => None,
    };
    match (core.ports.store.commit(batch).await, kept) {
        (Ok(()), Some((keys, stored))) => keys.replaced(&stored),
        (Ok(()), None) => {}
        (Err(error), _) => {
            let error = log::error(&store_fault(error));
            let fields = json!({"correlationId": trace.correlation, "error": error});
            core.ports.log.error("a late end could not be recorded", fields);
        }
    }
}

/// Adds to the commit what repeats of the key get from now on, if the work has come to an end of its own.
async fn keep(
    trace: &Trace,
    mut keys: LateKeys,
    result: Result<Reply, Halt>,
    batch: &mut Batch,
) -> Option<(LateKeys, Arc<Stored>)> {
    let result = outcome(trace, result)?;
    keys.answered().await;
    let (stored, _) = Stored::of(trace.run, End::LateCompleted, result, None);
    batch.merge(keys.replacing(&stored).ok()?);
    Some((keys, Arc::new(stored)))
}

/// What the work gave. None: the timeout is the better word. What stopped because of the deadline says no more than that; what
/// would have changed the store has changed nothing, since its answer was given without it.
fn outcome(trace: &Trace, result: Result<Reply, Halt>) -> Option<Result<Output, Fault>> {
    match result {
        Ok(reply) if !reply.effects.is_empty() || !reply.then.is_empty() => None,
        Ok(reply) => Some(match keeps_promise(&trace.action, &reply.output) {
            Ok(()) => Ok(reply.output),
            Err(fault) => Err(fault),
        }),
        Err(Halt::Fault(fault)) => match fault.kind() {
            Kind::Cancelled | Kind::Timeout | Kind::Unknown => None,
            Kind::Invalid
            | Kind::NotFound
            | Kind::Unauthenticated
            | Kind::Forbidden
            | Kind::Conflict
            | Kind::Exhausted
            | Kind::Unavailable
            | Kind::Dependency
            | Kind::State
            | Kind::Internal => Some(Err(fault)),
        },
        Err(Halt::Asks(_)) => None,
    }
}
