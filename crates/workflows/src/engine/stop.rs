//! Stopping an execution: it is cancelled, out of time, or its grace is over.

use orchestr8_contract::error::StoredFault;
use orchestr8_contract::{Code, Fault};

use super::event::{Decision, Status, Task};
use super::state::{Cancel, Failing, Outcome, Phase, Problem, State, Work};
use super::{closing, undo};

/// A rollback and handlers go on when the execution is cancelled; only force stops them.
pub fn cancel(state: &mut State, reason: String, force: bool, at_ms: i64, out: &mut Vec<Decision>) {
    if state.closing_section().is_some() {
        if force {
            closing::interrupt(state, reason, at_ms, out);
        }
        return;
    }
    if state.undoing.is_some() {
        if force {
            undo::interrupt(state, reason, at_ms, out);
        }
        return;
    }
    state.status = Status::Cancelling;
    state.pause = None;
    let cancel = Cancel { reason, asked_ms: at_ms, force, is_during_rollback: false };
    state.cancel.get_or_insert(cancel).force |= force;
    out.push(Decision::Withdraw);
    stop_everything(state, at_ms, out);
}

/// What runs was asked to stop: the execution was cancelled, or is out of time.
pub fn is_told_to_stop(state: &State) -> bool {
    let is_told = state.cancel.is_some() || state.failing.as_ref().is_some_and(|failing| failing.stops);
    // Handlers begin after that.
    is_told && state.closing.is_none()
}

/// An attempt of this was asked to stop: with the execution, or because its step has lost a race.
pub fn is_task_told_to_stop(state: &State, task: Task) -> bool {
    is_told_to_stop(state) || state.steps[task.step].lost.is_some()
}

/// The time of the whole execution is over.
pub fn out_of_time(state: &mut State, at_ms: i64, out: &mut Vec<Decision>) {
    // What happens after a cancellation does not make it a failure.
    if state.undoing.is_some() || state.cancel.is_some() || state.closing.is_some() {
        return;
    }
    let timeout_ms = state.timeout_ms().unwrap_or_default();
    let fault = Fault::new(Code::Timeout, format!("the execution took longer than {timeout_ms} ms"))
        .with("timeoutMs", timeout_ms);
    fail_whole(state, StoredFault::from(&fault), at_ms, out);
}

/// Fails the execution for a reason that is no step's.
pub fn fail_whole(state: &mut State, fault: StoredFault, at_ms: i64, out: &mut Vec<Decision>) {
    state.errors.push(Problem { step: None, fault });
    state.failing.get_or_insert(Failing { step: None, cancelled: false, stops: true }).stops = true;
    out.push(Decision::Withdraw);
    stop_everything(state, at_ms, out);
}

/// Asks what runs to stop, and ends what only waits.
fn stop_everything(state: &mut State, at_ms: i64, out: &mut Vec<Decision>) {
    for (task, work) in &mut state.work {
        if work.phase.is_active() && work.phase.stop() {
            out.push(Decision::Stop { task: *task });
        }
    }
    drop_waiting(state, |_, work| !work.phase.is_active(), at_ms, out);
}

/// Ends work that is not active.
pub fn drop_waiting(
    state: &mut State,
    which: impl Fn(&Task, &Work) -> bool,
    at_ms: i64,
    out: &mut Vec<Decision>,
) {
    let idle: Vec<Task> =
        state.work.iter().filter(|(task, work)| which(task, work)).map(|(task, _)| *task).collect();
    for task in idle {
        let Some(work) = state.work.remove(&task) else { continue };
        if work.phase.due_ms().is_some() {
            out.push(Decision::Forget { task: Some(task) });
        }
        if matches!(work.phase, Phase::Asking { .. }) {
            out.push(Decision::Unask { task });
        }
        if work.is_in_doubt() {
            undo::note_unknown(state, task);
        }
        // A loop ends as its other items did.
        let is_cut_short = state.steps[task.step].parts.is_none() || is_told_to_stop(state);
        if is_cut_short && state.works_on(task.step) == 0 {
            let step = &mut state.steps[task.step];
            if step.outcome.is_none() {
                step.outcome = Some(Outcome::Cancelled);
                step.ended_ms = Some(at_ms);
            }
        }
    }
}

/// The time for clean-up is over: how what still runs ends is not known. A rollback and handlers have no such limit.
pub fn force(state: &mut State, at_ms: i64, out: &mut Vec<Decision>) {
    if state.undoing.is_some() || state.closing.is_some() {
        return;
    }
    for (task, work) in std::mem::take(&mut state.work) {
        if work.attempts > 0 {
            undo::note_unknown(state, task);
        }
        let step = &mut state.steps[task.step];
        if step.outcome.is_none() {
            step.outcome = Some(Outcome::Cancelled);
            step.ended_ms = Some(at_ms);
            let fault = Fault::new(Code::Cancelled, "Force cancelled after grace period");
            step.fault = Some(StoredFault::from(&fault));
        }
    }
    let reason = String::from("forced");
    let cancel = Cancel { reason, asked_ms: at_ms, force: false, is_during_rollback: false };
    state.cancel.get_or_insert(cancel);
    undo::conclude(state, true, at_ms, out);
}
