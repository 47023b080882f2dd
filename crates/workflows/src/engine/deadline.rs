//! The timer of a whole execution: it comes at its time limit or when its wall-clock budget is used up, whichever is first.

use super::event::Decision;
use super::state::State;
use super::stop::out_of_time;

/// The time limit begins to run.
pub fn begin(state: &mut State, at_ms: i64, out: &mut Vec<Decision>) {
    state.deadline_ms = state.timeout_ms().map(|timeout_ms| after(at_ms, timeout_ms));
    arm(state, at_ms, out);
}

/// Sets the timer to what comes first. A budget that is used up already is the graph's to see.
pub fn arm(state: &State, at_ms: i64, out: &mut Vec<Decision>) {
    // Steps that close the execution have neither limit.
    let Some(started_ms) = state.started_ms.filter(|_| state.closing.is_none()) else { return };
    let budget_ms = state.budget.wall_clock_ms.map(|limit_ms| after(started_ms, limit_ms));
    let due_ms = [state.deadline_ms, budget_ms].into_iter().flatten().filter(|due_ms| *due_ms > at_ms).min();
    out.extend(due_ms.map(|due_ms| Decision::Wake { task: None, due_ms }));
}

/// The timer has come. Where it was that of the budget, the look at the graph that follows pauses the execution.
pub fn due(state: &mut State, at_ms: i64, out: &mut Vec<Decision>) {
    // Without a budget it is that of the time limit.
    let is_over = state.budget.wall_clock_ms.is_none()
        || state.deadline_ms.is_some_and(|deadline_ms| at_ms >= deadline_ms);
    match is_over {
        true => out_of_time(state, at_ms, out),
        false => arm(state, at_ms, out),
    }
}

fn after(at_ms: i64, ms: u64) -> i64 {
    at_ms.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX))
}
