//! The engine: one pure function from a state and an event to what follows, used live and at recovery.
//!
//! `next` first applies the event, then looks at the whole graph and begins, skips or ends what is due. It reads no clock,
//! no store and no environment: the time is that of the event, so folding the same events always gives the same state.

mod again;
mod backoff;
pub mod event;
mod graph;
pub mod join;
mod parts;
pub mod scope;
pub mod state;
mod stop;
pub mod undo;
pub mod view;
mod waits;

#[cfg(test)]
mod tests;

use orchestr8_contract::error::StoredFault;
use orchestr8_contract::{Code, Fault, json};
use serde_json::Value;

use crate::agents::Usage;
use crate::definition::model::{OnError, OnUnknown};
use crate::limits;
use event::{Decision, Event, Note, Resolution, Status, Task};
use state::{Child, Failing, Outcome, Pause, Phase, Problem, State};
use stop::{cancel, fail_whole, force, is_told_to_stop, out_of_time};

/// Applies an event and says what follows from it.
pub fn next(state: &mut State, event: Event, at_ms: i64) -> Vec<Decision> {
    let mut out = Vec::new();
    if state.status.is_final() && !event.concerns_ended() {
        return out;
    }
    // A record that names a step there is not is damaged; what it says of others still counts.
    if event.task().is_some_and(|task| task.step >= state.steps.len()) {
        return out;
    }
    apply(state, event, at_ms, &mut out);
    graph::settle(state, at_ms, &mut out);
    out
}

fn apply(state: &mut State, event: Event, at_ms: i64, out: &mut Vec<Decision>) {
    match event {
        Event::Begun { env, kept } => begin(state, env, kept, at_ms, out),
        Event::Started { task, attempt } => started(state, task, attempt, at_ms),
        Event::Retrying { task, attempt, fault, wait_ms } => {
            spend(state, Usage::of(&fault));
            if let Some(work) = state.work.get_mut(&task) {
                work.may_have_happened |= undo::is_unknown(&fault, attempt, false);
            }
            backoff::begin(state, (task, attempt), wait_ms, at_ms, out);
        }
        Event::Succeeded { task, attempts, output, usage } => {
            spend(state, usage);
            end_task(state, task, attempts, Ok(output), at_ms);
        }
        Event::Failed { task, attempts, fault } => {
            spend(state, Usage::of(&fault));
            end_task(state, task, attempts, Err(fault), at_ms);
        }
        Event::ChildBegun { task, execution, undoable } => {
            started(state, task, 1, at_ms);
            if state.work.contains_key(&task) {
                state.children.insert(task, Child { execution: execution.clone(), undoable });
            }
            put(state, task, Phase::Child { execution, stopping: false }, 1);
        }
        Event::Lost { task } => lost(state, task, at_ms, out),
        Event::Resolved { task, how } => resolve(state, task, how, at_ms, out),
        Event::Due { task: Some(task) } => waits::due(state, task, at_ms, out),
        Event::Due { task: None } => out_of_time(state, at_ms, out),
        Event::Signal { id: Some(id), .. } if state.has_heard(&id) => {}
        Event::Signal { name, payload, id } => {
            state.hear(id);
            waits::signal(state, name, payload, at_ms, out);
        }
        Event::Decided { task, approved, by, on_behalf_of, comment, data } => {
            let verdict = waits::Verdict { approved, by, on_behalf_of, comment, data };
            waits::decided(state, task, verdict, at_ms, out);
        }
        Event::CancelAsked { reason, graceful: _, force } => cancel(state, reason, force, at_ms, out),
        Event::UndoAsked => undo::asked(state, at_ms, out),
        Event::Forced => force(state, at_ms, out),
        Event::Unwritable { fault } if state.undoing.is_some() => undo::unwritable(state, &fault, out),
        Event::Unwritable { fault } => fail_whole(state, fault, at_ms, out),
        Event::Paused { reason } => pause(state, Pause { reason, by_budget: false }, out),
        Event::Resumed { budget } => resume(state, &budget, out),
        Event::Again => again::begin_again(state, at_ms, out),
    }
}

/// Counts for the budget, whether the attempt came to something or not.
fn spend(state: &mut State, usage: Usage) {
    state.usage.tokens = state.usage.tokens.saturating_add(usage.tokens);
    state.usage.cost += usage.cost;
}

fn begin(
    state: &mut State,
    env: serde_json::Map<String, Value>,
    kept: Vec<(usize, Value)>,
    at_ms: i64,
    out: &mut Vec<Decision>,
) {
    if state.has_begun() {
        return;
    }
    // It may have been paused while it waited for its turn.
    state.status = if state.pause.is_some() { Status::Paused } else { Status::Running };
    state.started_ms = Some(at_ms);
    state.env = env;
    for (step, output) in kept {
        if step < state.steps.len() {
            // It is no unit of a rollback: what another execution did is not undone by this one.
            complete_step(state, step, output, at_ms);
        }
    }
    arm_timeout(state, at_ms, out);
}

fn arm_timeout(state: &State, at_ms: i64, out: &mut Vec<Decision>) {
    if let Some(timeout_ms) = state.timeout_ms() {
        let due_ms = at_ms.saturating_add(i64::try_from(timeout_ms).unwrap_or(i64::MAX));
        out.push(Decision::Wake { task: None, due_ms });
    }
}

fn put(state: &mut State, task: Task, phase: Phase, attempts: u32) {
    if let Some(work) = state.work.get_mut(&task) {
        work.phase = phase;
        work.attempts = attempts;
        count_attempts(state, task, attempts);
    }
}

fn started(state: &mut State, task: Task, attempt: u32, at_ms: i64) {
    state.attempts += 1;
    put(state, task, Phase::Running, attempt);
    if let Some(work) = state.work.get_mut(&task) {
        work.began_ms = at_ms;
    }
    state.steps[task.step].started_ms.get_or_insert(at_ms);
}

/// The attempts of an undo are its own.
fn count_attempts(state: &mut State, task: Task, attempts: u32) {
    let step = &mut state.steps[task.step];
    if !task.undo {
        step.attempts = step.attempts.max(attempts);
    }
}

/// A piece of work has ended, one way or the other.
fn end_task(state: &mut State, task: Task, attempts: u32, result: Result<Value, StoredFault>, at_ms: i64) {
    // An end nobody waits for any more, for example after a forced cancellation.
    let Some(work) = state.work.remove(&task) else { return };
    count_attempts(state, task, attempts);
    let is_done = result.is_ok();
    let result = result.and_then(|output| fit(state, output));
    if task.undo {
        return undo::ended(state, task, result);
    }
    match &result {
        Ok(_) => undo::note_done(state, task),
        // What was done and cannot be kept is undone as well, and so is what a child did before it failed.
        Err(fault) => {
            let is_child = state.children.contains_key(&task);
            let may_have_happened =
                work.may_have_happened || undo::is_unknown(fault, attempts, is_told_to_stop(state));
            if is_done || is_child || may_have_happened {
                undo::note_unknown(state, task);
            }
        }
    }
    if state.steps[task.step].parts.is_some() {
        return parts::ended(state, task, result);
    }
    match result {
        Ok(output) => complete_step(state, task.step, output, at_ms),
        Err(fault) => fail_step(state, task.step, fault, at_ms),
    }
}

/// Refuses an output that is too large to keep.
fn fit(state: &State, output: Value) -> Result<Value, StoredFault> {
    let bytes = json::bytes(&output);
    if bytes <= limits::OUTPUT_BYTES && state.outputs_bytes + bytes <= limits::OUTPUTS_BYTES {
        return Ok(output);
    }
    let (what, limit) = match bytes > limits::OUTPUT_BYTES {
        true => ("the output", limits::OUTPUT_BYTES),
        false => ("all outputs of the execution together, with this one,", limits::OUTPUTS_BYTES),
    };
    let fault = Fault::new(Code::PayloadTooLarge, format!("{what} would take more than {limit} bytes"))
        .with("bytes", bytes)
        .with("limit", limit);
    Err(StoredFault::from(&fault))
}

fn complete_step(state: &mut State, step: usize, output: Value, at_ms: i64) {
    state.outputs_bytes += json::bytes(&output);
    let own = &mut state.steps[step];
    own.begun = true;
    own.started_ms.get_or_insert(at_ms);
    own.outcome = Some(Outcome::Completed);
    own.output = Some(output);
    own.ended_ms = Some(at_ms);
}

fn fail_step(state: &mut State, step: usize, fault: StoredFault, at_ms: i64) {
    let cancelled = fault.code == Code::Cancelled;
    // A step that stopped because it was told to has not failed (WF-19.4).
    let was_told = is_told_to_stop(state);
    let own = &mut state.steps[step];
    own.begun = true;
    own.outcome = Some(if cancelled && was_told { Outcome::Cancelled } else { Outcome::Failed });
    own.fault = Some(fault.clone());
    own.ended_ms = Some(at_ms);
    let definition = &state.identity.workflow.steps[step];
    match (definition.on_error, definition.fallback) {
        (OnError::Continue, _) => {}
        (OnError::Fallback, Some(fallback)) if state.steps[fallback].outcome != Some(Outcome::Skipped) => {
            state.steps[fallback].alias_for.get_or_insert(step);
        }
        // What fails after a cancellation does not make it a failure.
        (OnError::Fail | OnError::Retry | OnError::Fallback, _) if state.cancel.is_some() => {}
        (OnError::Fail | OnError::Retry | OnError::Fallback, _) => {
            state.failing.get_or_insert(Failing { step: Some(step), cancelled });
        }
    }
    state.errors.push(Problem { step: Some(step), fault });
}

/// The process died while this ran.
fn lost(state: &mut State, task: Task, at_ms: i64, out: &mut Vec<Decision>) {
    let Some(work) = state.work.get_mut(&task) else { return };
    if matches!(work.phase, Phase::Retrying { .. }) {
        // As earlier versions recorded it: the attempt before is known to have failed; the next one may have begun.
        work.attempts = work.attempts.saturating_add(1);
    }
    if task.undo {
        // Nothing is left out of a rollback: the undo runs again with its key.
        work.phase = Phase::Ready;
        return out.push(Decision::Run { task });
    }
    if state.cancel.is_some() {
        // It was told to stop and did, if not as it was meant to.
        let (attempts, fault) = (work.attempts, Fault::new(Code::Cancelled, "the server stopped"));
        return end_task(state, task, attempts, Err(StoredFault::from(&fault)), at_ms);
    }
    match state.identity.workflow.steps[task.step].on_unknown {
        OnUnknown::Retry => {
            work.phase = Phase::Ready;
            if state.pause.is_none() {
                out.push(Decision::Run { task });
            }
        }
        OnUnknown::Fail => {
            let attempts = work.attempts;
            end_task(state, task, attempts, Err(unknown_end()), at_ms);
        }
        OnUnknown::Ask => {
            work.phase = Phase::Unknown;
            out.push(Decision::Note(Note::Waiting { step: task.step }));
        }
    }
}

fn unknown_end() -> StoredFault {
    StoredFault::from(&Fault::new(
        Code::OutcomeUnknown,
        "the server stopped while the step ran, and whether it happened is not known",
    ))
}

fn resolve(state: &mut State, task: Task, how: Resolution, at_ms: i64, out: &mut Vec<Decision>) {
    let Some(work) = state.work.get_mut(&task) else { return };
    if work.phase != Phase::Unknown {
        return;
    }
    let attempts = work.attempts;
    match how {
        Resolution::Retry => {
            work.phase = Phase::Ready;
            if state.pause.is_none() {
                out.push(Decision::Run { task });
            }
        }
        Resolution::Fail => end_task(state, task, attempts, Err(unknown_end()), at_ms),
        Resolution::Complete { output } => end_task(state, task, attempts, Ok(output), at_ms),
    }
}

fn resume(state: &mut State, budget: &event::NewBudget, out: &mut Vec<Decision>) {
    state.budget = budget.over(&state.budget);
    if state.pause.take().is_none() || state.cancel.is_some() {
        return;
    }
    state.status = if state.has_begun() { Status::Running } else { Status::Queued };
    let ready = state.work.iter().filter(|(_, work)| work.phase == Phase::Ready);
    out.extend(ready.map(|(task, _)| Decision::Run { task: *task }));
}

fn pause(state: &mut State, pause: Pause, out: &mut Vec<Decision>) {
    if state.pause.is_some() || state.cancel.is_some() || state.undoing.is_some() {
        return;
    }
    state.pause = Some(pause);
    state.status = Status::Paused;
    out.push(Decision::Withdraw);
}
