//! The end of the path: the first outcome is final, and it is on record before anybody hears of it.

use std::sync::Arc;

use orchestr8_contract::id::{CorrelationId, RunId};
use orchestr8_contract::{Fault, Output};
use serde_json::{Value, json};

use crate::action::{Effect, Halt, Reply, Then, Versioning};
use crate::audit;
use crate::journal;
use crate::kernel::Core;
use crate::ledger::{Claim, store_fault};
use crate::log;
use crate::outcome::{End, Settled, Stored};
use crate::pipeline::{Admitted, Claimed, Held, InLane};
use crate::ports::ids::For;
use crate::ports::store::{Batch, Error};
use crate::refusals::{self, RefusedCall};
use crate::run::Ended;
use crate::submission::Version;
use crate::versions::Turn;

pub const ACCEPTED: &str = "action.accepted";
pub const STARTED: &str = "action.started";
pub const FINISHED: &str = "action.finished";

/// What must be durable before the work begins: only effects outside the store need it.
pub fn beginning(core: &Core, claimed: &Claimed) -> Result<Batch, Fault> {
    let (policy, now_ms) = (&claimed.admitted.action.policy, core.ports.clock.now_ms());
    let mut batch = match &claimed.claim {
        Some(claim) => claim.beginning(policy.effect, now_ms)?,
        None => Batch::new(),
    };
    if policy.journalled && matches!(policy.effect, Effect::Outside(_)) {
        batch.then(journal::entry(&claimed.admitted, "accepted", now_ms, json!({})));
    }
    Ok(batch)
}

/// Step 8: writes the outcome, then answers. An outcome that leaves nothing behind is the answer.
pub async fn settle(core: &Arc<Core>, ended: Ended) -> Settled {
    if !leaves_nothing(&ended) {
        return Box::pin(write_down(core, ended)).await;
    }
    let Ended { admitted, version, end, result, hold, claim: _ } = ended;
    let result = match result {
        Ok(reply) => Ok(reply.output),
        Err(Halt::Fault(fault)) => Err(Halt::Fault(worded(&admitted, fault))),
        Err(Halt::Asks(asks)) => Err(Halt::Asks(asks)),
    };
    let settled = answer(core, &admitted, end, result, version);
    tell(core, &admitted, &settled);
    drop(hold);
    settled
}

/// The work itself found that the caller has no right.
async fn note_refusal(core: &Core, admitted: &Admitted, fault: &Fault) {
    refusals::record(core, RefusedCall::of(&admitted.submission, admitted.run), fault).await;
}

/// Whether there is nothing to write, nothing to give back and nothing to do afterwards.
fn leaves_nothing(ended: &Ended) -> bool {
    let (policy, end) = (&ended.admitted.action.policy, ended.end);
    let recorded = policy.journalled || policy.audited || end == End::Timeout;
    let quiet = match &ended.result {
        Ok(reply) => reply.effects.is_empty() && reply.then.is_empty(),
        Err(Halt::Fault(fault)) => !policy.refusals.contains(&fault.kind()) && !refusals::is_refusal(fault),
        Err(Halt::Asks(_)) => false,
    };
    ended.claim.is_none() && versioned(&ended.admitted, end).is_none() && !recorded && quiet
}

async fn write_down(core: &Arc<Core>, ended: Ended) -> Settled {
    let Ended { admitted, claim, version, end, result, hold } = ended;
    let settled = match result {
        Err(Halt::Asks(asks)) => {
            if let Some(claim) = claim {
                claim.give_back().await;
            }
            answer(core, &admitted, end, Err(Halt::Asks(asks)), None)
        }
        Ok(reply) => commit(core, &admitted, claim, version, end, Ok(reply)).await,
        Err(Halt::Fault(fault)) if admitted.action.policy.refusals.contains(&fault.kind()) => {
            if let Some(claim) = claim {
                claim.give_back().await;
            }
            if refusals::is_refusal(&fault) {
                note_refusal(core, &admitted, &fault).await;
            }
            refused(core, admitted.run, admitted.submission.correlation.clone(), fault)
        }
        Err(Halt::Fault(fault)) => {
            if refusals::is_refusal(&fault) && !admitted.action.policy.audited {
                note_refusal(core, &admitted, &fault).await;
            }
            let worded = worded(&admitted, fault);
            commit(core, &admitted, claim, version, end, Err(worded)).await
        }
    };
    tell(core, &admitted, &settled);
    drop(hold);
    settled
}

/// Tells all who want to know how it ended.
fn tell(core: &Arc<Core>, admitted: &Admitted, settled: &Settled) {
    if let Some(follow) = &admitted.submission.follow {
        follow.finished(settled);
    }
    if let Some(number) = admitted.number {
        core.lanes.announce(number, settled.failure());
    }
    core.tell(FINISHED, admitted, || {
        let (end, code) = (settled.end, settled.code());
        Some(json!({"end": end, "code": code, "replayed": settled.replayed, "version": settled.version}))
    });
}

/// Accepted, and failed before it ran.
pub async fn failed(core: &Arc<Core>, in_lane: InLane, fault: Fault) -> Settled {
    let (mut admitted, claim, version) = in_lane.into_parts();
    let hold = Some(admitted.hold(Held::default()));
    settle(core, Ended { admitted, claim, version, end: End::ToolError, result: Err(fault.into()), hold })
        .await
}

/// Refused before it was accepted. Nothing is written but a line in the log.
pub fn refused(core: &Core, run: RunId, correlation: CorrelationId, fault: Fault) -> Settled {
    core.ports.log.debug(
        "refused",
        || json!({"correlationId": correlation, "runId": run, "error": log::error(&fault)}),
    );
    Settled {
        run,
        correlation,
        end: End::Refused,
        result: Err(fault.into()),
        replayed: false,
        version: None,
        elapsed_us: 0,
    }
}

/// The task of a submission was lost, which only a fault of our own can cause.
pub fn lost(
    core: &Core,
    correlation: CorrelationId,
    began_us: u64,
    error: tokio::task::JoinError,
) -> Settled {
    let fault = Fault::internal("the submission was lost").because(error);
    core.ports
        .log
        .error("a submission was lost", json!({"correlationId": correlation, "error": log::error(&fault)}));
    Settled {
        run: RunId(core.ports.ids.fresh(For::Run)),
        correlation,
        end: End::ToolError,
        result: Err(fault.into()),
        replayed: false,
        version: None,
        elapsed_us: core.ports.clock.elapsed_us().saturating_sub(began_us),
    }
}

/// Commits an outcome with everything that belongs to it, in one step.
async fn commit(
    core: &Arc<Core>,
    admitted: &Admitted,
    claim: Option<Box<Claim>>,
    version: Option<u64>,
    end: End,
    result: Result<Reply, Fault>,
) -> Settled {
    let now_ms = core.ports.clock.now_ms();
    let (result, effects, then) = match result {
        Ok(reply) => (Ok(reply.output), reply.effects, reply.then),
        Err(fault) => (Err(fault), Batch::new(), Then::default()),
    };
    let mut change = Batch::new();
    let turn = match change_version(core, admitted, end, &mut change).await {
        Ok(turn) => turn,
        Err(fault) => {
            let fault = worded(admitted, fault);
            return Box::pin(commit(core, admitted, claim, version, End::ToolError, Err(fault))).await;
        }
    };
    let after = turn.as_ref().map_or(version, |turn| turn.after);
    let (stored, fault) = Stored::of(admitted.run, end, result, after);
    let ledger_width = claim.as_ref().map_or(0, |claim| claim.width());
    change.merge(effects);
    let batch = match record(core, admitted, claim.as_deref(), &stored, change, now_ms) {
        Ok(batch) => batch,
        Err(fault) => return answer(core, admitted, End::ToolError, Err(fault.into()), None),
    };
    let written = if batch.is_empty() { Ok(()) } else { core.ports.store.commit(batch).await };
    match (turn, &written) {
        (Some(turn), Ok(())) => turn.made(),
        (Some(turn), Err(_)) => turn.not_made(),
        (None, _) => {}
    }
    match (written, claim) {
        (Ok(()), claim) => {
            let output = keep(claim, stored, now_ms);
            then.act();
            let empty = || Fault::internal("the outcome is empty");
            let result = output.ok_or_else(|| Halt::Fault(fault.unwrap_or_else(empty)));
            answer(core, admitted, end, result, after)
        }
        (Err(Error::Conflict { step, .. }), Some(claim)) if step < ledger_width => {
            first_outcome(core, admitted, claim).await
        }
        (Err(error @ Error::Conflict { .. }), claim) if fault.is_none() => {
            // A guard of the work's own effects did not hold: nothing of it happened, and that is the outcome.
            let fault = store_fault(error);
            Box::pin(commit(core, admitted, claim, version, End::ToolError, Err(fault))).await
        }
        (Err(error), _) => {
            let fault = store_fault(error);
            let correlation = &admitted.submission.correlation;
            let fields = json!({"correlationId": correlation, "error": log::error(&fault)});
            core.ports.log.error("an outcome could not be recorded", fields);
            answer(core, admitted, End::ToolError, Err(fault.into()), None)
        }
    }
}

/// Keeps a recorded outcome for repeats of its keys, if it has any, and gives its output for the answer.
fn keep(claim: Option<Box<Claim>>, stored: Stored, now_ms: i64) -> Option<Output> {
    let Some(claim) = claim else { return stored.output };
    let output = stored.output.clone();
    claim.settled(Arc::new(stored), now_ms);
    output
}

/// Somebody else settled these keys first; that outcome stands.
async fn first_outcome(core: &Arc<Core>, admitted: &Admitted, claim: Box<Claim>) -> Settled {
    drop(claim);
    let submission = &admitted.submission;
    for identity in &submission.identities {
        let looked =
            core.ledger.look_up(&submission.principal.tenant, identity, core.ports.clock.now_ms()).await;
        if let Ok(Some(stored)) = looked {
            return stored.replay(submission.correlation.clone());
        }
    }
    let fault = Fault::internal("the outcome could not be recorded: its key changed hands");
    answer(core, admitted, End::ToolError, Err(fault.into()), None)
}

/// A failure in the words of whoever asked.
fn worded(admitted: &Admitted, fault: Fault) -> Fault {
    match &admitted.submission.follow {
        Some(follow) => follow.word(fault),
        None => fault,
    }
}

/// The version this end changes, if it changes one.
fn versioned(admitted: &Admitted, end: End) -> Option<&Version> {
    let changes = admitted.action.policy.versioning != Versioning::None;
    let succeeded = matches!(end, End::Success | End::DisconnectedCompleted);
    admitted.submission.version.as_ref().filter(|_| changes && succeeded)
}

async fn change_version(
    core: &Core,
    admitted: &Admitted,
    end: End,
    batch: &mut Batch,
) -> Result<Option<Turn>, Fault> {
    let Some(named) = versioned(admitted, end) else { return Ok(None) };
    let how = admitted.action.policy.versioning;
    core.versions.change(&admitted.submission.principal.tenant, &named.subject, how, batch).await.map(Some)
}

/// One batch: ledger first, then the version and the work's own effects, then journal and audit.
fn record(
    core: &Core,
    admitted: &Admitted,
    claim: Option<&Claim>,
    stored: &Stored,
    effects: Batch,
    now_ms: i64,
) -> Result<Batch, Fault> {
    let mut batch = match claim {
        Some(claim) => claim.settling(stored, now_ms)?,
        None => Batch::new(),
    };
    batch.merge(effects);
    let policy = &admitted.action.policy;
    let duration_ms = core.ports.clock.elapsed_us().saturating_sub(admitted.began_us) / 1000;
    if policy.journalled || admitted.submission.id.is_some() || stored.end == End::Timeout {
        let code = stored.fault.as_ref().map(|fault| fault.code);
        let data =
            json!({"end": stored.end, "code": code, "durationMs": duration_ms, "version": stored.version});
        batch.then(journal::entry(admitted, "finished", now_ms, data));
    }
    if policy.audited {
        batch.link(audit::link(admitted, stored, now_ms, &core.ports.redactor));
    }
    Ok(batch)
}

fn answer(
    core: &Core,
    admitted: &Admitted,
    end: End,
    result: Result<Output, Halt>,
    version: Option<u64>,
) -> Settled {
    let elapsed_us = core.ports.clock.elapsed_us().saturating_sub(admitted.began_us);
    let correlation = admitted.submission.correlation.clone();
    let settled =
        Settled { run: admitted.run, correlation, end, result, replayed: false, version, elapsed_us };
    core.ports.log.debug("finished", || {
        let error = match &settled.result {
            Err(Halt::Fault(fault)) => log::error(fault),
            Err(Halt::Asks(_)) | Ok(_) => Value::Null,
        };
        json!({"correlationId": settled.correlation, "runId": settled.run, "action": admitted.action.name,
               "outcome": end.as_str(), "durationMs": elapsed_us / 1000, "error": error})
    });
    settled
}
