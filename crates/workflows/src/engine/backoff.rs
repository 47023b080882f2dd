//! The wait between two attempts: a timer of the engine, so that it outlives the process and takes no slot.

use orchestr8_contract::error::StoredFault;
use orchestr8_contract::{Code, Fault};

use super::event::{Decision, Task};
use super::state::{Phase, State};
use super::{count_attempts, end_task, is_task_told_to_stop};

/// An attempt failed, and the next one follows after a wait.
pub fn begin(
    state: &mut State,
    (task, attempt): (Task, u32),
    (wait_ms, code): (u64, Code),
    at_ms: i64,
    out: &mut Vec<Decision>,
) {
    let Some(work) = state.work.get_mut(&task) else { return };
    let ran_ms = u64::try_from(at_ms.saturating_sub(work.began_ms)).unwrap_or(0);
    work.attempts = attempt;
    // Nothing was called while the circuit is open, so that takes no time of what may be tried.
    if code != Code::CircuitOpen {
        work.spent_ms = work.spent_ms.saturating_add(ran_ms).saturating_add(wait_ms);
    }
    count_attempts(state, task, attempt);
    // Nothing stops a rollback but force.
    if is_task_told_to_stop(state, task) && !task.undo {
        let fault = Fault::new(Code::Cancelled, "it was cancelled");
        return end_task(state, task, attempt, Err(StoredFault::from(&fault)), at_ms);
    }
    if wait_ms == 0 {
        return over(state, task, out);
    }
    let due_ms = at_ms.saturating_add(i64::try_from(wait_ms).unwrap_or(i64::MAX));
    if let Some(work) = state.work.get_mut(&task) {
        work.phase = Phase::Retrying { at_ms: due_ms };
    }
    out.push(Decision::Wake { task: Some(task), due_ms });
}

/// The wait is over: the next attempt begins as soon as there is a slot.
pub fn over(state: &mut State, task: Task, out: &mut Vec<Decision>) {
    let Some(work) = state.work.get_mut(&task) else { return };
    work.attempts = work.attempts.saturating_add(1);
    work.phase = Phase::Ready;
    if state.pause.is_none() {
        out.push(Decision::Run { task });
    }
}
