//! The engine: one pure function from a state and an event to what follows, used live and at recovery.
//!
//! `next` first applies the event, then looks at the whole graph and begins, skips or ends what is due. It reads no clock,
//! no store and no environment: the time is that of the event, so folding the same events always gives the same state.

mod again;
pub mod attempts;
mod backoff;
pub mod closing;
mod deadline;
pub mod evaluation;
pub mod event;
mod graph;
pub mod identity;
pub mod join;
mod parts;
mod race;
pub mod scope;
pub mod state;
mod status;
mod stop;
pub mod undo;
pub mod view;
pub mod waiting;
pub(crate) mod waits;
mod work;

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
use stop::{cancel, fail_whole, force, is_task_told_to_stop, is_told_to_stop};

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
        Event::Begun { env, kept, generations } => begin(state, (env, kept, generations), at_ms, out),
        Event::Started { task, attempt } => started(state, task, attempt, at_ms),
        Event::Retrying { task, attempt, fault, wait_ms } => {
            spend(state, Usage::of(&fault));
            attempts::ended(state, task, Some(&fault), at_ms);
            if let Some(work) = state.work.get_mut(&task) {
                work.may_have_happened |= undo::is_unknown(&fault, attempt, false);
            }
            backoff::begin(state, (task, attempt), (wait_ms, fault.code), at_ms, out);
        }
        Event::Succeeded { task, attempts, output, usage } => {
            spend(state, usage);
            end_task(state, task, attempts, Ok(output), at_ms);
        }
        Event::Failed { task, attempts, fault } => {
            spend(state, Usage::of(&fault));
            end_task(state, task, attempts, Err(fault), at_ms);
        }
        Event::ChildBegun { task, execution, undoable: _, detached: true } => {
            detach(state, task, &execution, at_ms, out);
        }
        Event::ChildBegun { task, execution, undoable, detached: false } => {
            started(state, task, 1, at_ms);
            if state.work.contains_key(&task) {
                state.children.insert(task, Child { execution: execution.clone(), undoable });
            }
            put(state, task, Phase::Child { execution, stopping: false }, 1);
        }
        Event::Lost { task } => lost(state, task, at_ms, out),
        Event::Resolved { task, how } => resolve(state, task, how, at_ms, out),
        Event::Due { task: Some(task) } => waits::due(state, task, at_ms, out),
        Event::Due { task: None } => deadline::due(state, at_ms, out),
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
        Event::Unwritable { fault } if state.closing_section().is_some() => {
            closing::unwritable(state, &fault, at_ms, out);
        }
        Event::Unwritable { fault } if state.undoing.is_some() => undo::unwritable(state, &fault, out),
        Event::Unwritable { fault } => fail_whole(state, fault, at_ms, out),
        Event::Paused { reason } => pause(state, reason, false, out),
        Event::Resumed { budget } => {
            resume(state, &budget, out);
            deadline::arm(state, at_ms, out);
        }
        Event::Again => again::begin_again(state, false, at_ms, out),
        Event::AgainQueued => again::begin_again(state, true, at_ms, out),
    }
}

/// Counts for the budget, whether the attempt came to something or not.
fn spend(state: &mut State, usage: Usage) {
    state.usage.tokens = state.usage.tokens.saturating_add(usage.tokens);
    state.usage.cost += usage.cost;
}

/// What an execution begins with: its environment, results taken over, and generations.
type Start = (serde_json::Map<String, Value>, Vec<(usize, Value)>, Vec<(usize, u32)>);

fn begin(state: &mut State, (env, kept, generations): Start, at_ms: i64, out: &mut Vec<Decision>) {
    // One that was cancelled in the queue ends or rolls back.
    if state.has_begun() || state.cancel.is_some() {
        return;
    }
    // It may have been paused while it waited for its turn.
    state.status = if state.pause.is_some() { Status::Paused } else { Status::Running };
    state.pause.iter_mut().for_each(|pause| pause.in_queue = false);
    if state.started_ms.is_some() {
        // It was taken up again: what it knows holds.
        deadline::begin(state, at_ms, out);
        return;
    }
    state.started_ms = Some(at_ms);
    state.env = env;
    for (step, generation) in generations {
        state.steps.get_mut(step).into_iter().for_each(|own| own.generation = generation);
    }
    for (step, output) in kept {
        if step < state.steps.len() {
            // It is no unit of a rollback: what another execution did is not undone by this one.
            complete_step(state, step, output, at_ms);
        }
    }
    deadline::begin(state, at_ms, out);
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
    attempts::began(state, task, attempt, at_ms);
    put(state, task, Phase::Running, attempt);
    if let Some(work) = state.work.get_mut(&task) {
        work.began_ms = at_ms;
    }
    state.steps[task.step].started_ms.get_or_insert(at_ms);
}

/// A detached child has begun. The step is done; the child is no unit of a rollback, and is not told to stop.
fn detach(state: &mut State, task: Task, execution: &str, at_ms: i64, out: &mut Vec<Decision>) {
    started(state, task, 1, at_ms);
    end_task(state, task, 1, Ok(serde_json::json!({"executionId": execution})), at_ms);
    if task.part.is_none() && state.steps[task.step].outcome == Some(Outcome::Completed) {
        out.push(Decision::Note(Note::Completed { step: task.step }));
    }
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
    attempts::ended(state, task, result.as_ref().err(), at_ms);
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
            let was_told = is_task_told_to_stop(state, task);
            let may_have_happened = work.may_have_happened || undo::is_unknown(fault, attempts, was_told);
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
    if own.lost.take().is_some() {
        // It completed before it could be stopped, so its result holds.
        own.skip = None;
    }
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
    own.outcome = Some(if (cancelled && was_told) || own.lost.is_some() {
        Outcome::Cancelled
    } else {
        Outcome::Failed
    });
    own.fault = Some(fault.clone());
    own.ended_ms = Some(at_ms);
    if own.lost.is_some() {
        // However it ended: the race goes on without it.
        return;
    }
    let definition = &state.identity.workflow.steps[step];
    match (definition.on_error, definition.fallback) {
        (OnError::Continue, _) => {}
        (OnError::Fallback, Some(fallback)) if state.steps[fallback].outcome != Some(Outcome::Skipped) => {
            state.steps[fallback].alias_for.get_or_insert(step);
        }
        (OnError::Fail | OnError::Retry | OnError::Fallback, _) => note_failure(state, step, cancelled),
    }
    state.errors.push(Problem { step: Some(step), fault });
}

/// A failure that nothing tolerates: of the body, or of a handler.
fn note_failure(state: &mut State, step: usize, cancelled: bool) {
    match &mut state.closing {
        Some(closing) => closing.has_failed = true,
        // What fails after a cancellation does not make it a failure.
        None if state.cancel.is_some() => {}
        None => {
            state.failing.get_or_insert(Failing { step: Some(step), cancelled, stops: false });
        }
    }
}

/// The process died while this ran.
fn lost(state: &mut State, task: Task, at_ms: i64, out: &mut Vec<Decision>) {
    let is_told = is_task_told_to_stop(state, task);
    let Some(work) = state.work.get_mut(&task) else { return };
    work.may_have_happened = true;
    if matches!(work.phase, Phase::Retrying { .. }) {
        // As earlier versions recorded it: the attempt before is known to have failed; the next one may have begun.
        work.attempts = work.attempts.saturating_add(1);
    }
    if task.undo {
        // Nothing is left out of a rollback: the undo runs again with its key.
        work.phase = Phase::Ready;
        return out.push(Decision::Run { task });
    }
    if is_told {
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
    let has_begun = state.has_begun();
    if state.pause.take().is_none() || state.cancel.is_some() {
        return;
    }
    state.status = if has_begun { Status::Running } else { Status::Queued };
    let ready = state.work.iter().filter(|(_, work)| work.phase == Phase::Ready);
    out.extend(ready.map(|(task, _)| Decision::Run { task: *task }));
}

fn pause(state: &mut State, reason: String, by_budget: bool, out: &mut Vec<Decision>) {
    let is_closing = state.cancel.is_some() || state.undoing.is_some() || state.closing.is_some();
    if state.pause.is_some() || is_closing {
        return;
    }
    let in_queue = !state.has_begun();
    state.pause = Some(Pause { reason, by_budget, in_queue });
    state.status = Status::Paused;
    out.push(Decision::Withdraw);
}
