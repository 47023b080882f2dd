//! Rollbacks: what was done is undone, the last first (ADR 42).
//!
//! A unit of a rollback is a step, one item or round of a loop, or a child execution. It is noted when it completes, or when its
//! outcome is unknown, so the list of units is the order of completion. One undo runs at a time.

use orchestr8_contract::error::StoredFault;
use orchestr8_contract::{Code, Fault};
use serde_json::Value;

use super::closing;
use super::event::{Decision, Note, Status, Task};
use super::graph::{finish, launch};
use super::state::{Cancel, Phase, State, Work};
use crate::definition::model::Kind;

/// What became of an undo.
#[derive(Debug, Clone)]
pub enum Undone {
    Done,
    /// It could not be undone, so its result still holds.
    Failed(StoredFault),
}

impl Undone {
    /// The member that counts what a child could undo, in its report and in the details of its fault.
    pub const COUNT: &str = "undone";

    /// Whether the result of the work is still there. A child of which a part was undone has none.
    pub fn leaves_result(&self) -> bool {
        match self {
            Undone::Done => false,
            Undone::Failed(fault) => {
                fault.details.as_ref().and_then(|details| details.get(Self::COUNT)?.as_u64()).unwrap_or(0)
                    == 0
            }
        }
    }
}

/// An effect that could not be undone, and whose step was done again under a new key. It stays listed.
#[derive(Debug, Clone)]
pub struct Abandoned {
    pub task: Task,
    /// How often it had been done and undone before.
    pub generation: u32,
    /// It may not have happened.
    pub is_unknown: bool,
    pub fault: StoredFault,
}

/// A unit that is not undone, with the reason if that was tried.
pub struct Left<'s> {
    pub task: Task,
    pub fault: Option<&'s StoredFault>,
}

/// Whether the undo of a unit is a call that the definition names. A child that did not complete rolls back itself.
fn calls(state: &State, task: Task) -> bool {
    let step = &state.workflow().steps[task.step];
    let is_open_child =
        matches!(step.kind, Kind::Workflow(_)) && state.steps[task.step].unknown.contains(&task.part);
    step.compensate.is_some() && !is_open_child
}

/// Notes a unit: this has been done.
pub fn note_done(state: &mut State, task: Task) {
    // Handlers run after the rollback and are not undone.
    if state.workflow().steps[task.step].section.is_closing() {
        return;
    }
    if calls(state, task) || state.children.get(&task).is_some_and(|child| child.undoable) {
        state.completed.push(task);
    }
}

/// Notes a unit: this may have been done or not.
pub fn note_unknown(state: &mut State, task: Task) {
    state.steps[task.step].unknown.insert(task.part);
    note_done(state, task);
}

/// The detail of a fault that says that the attempt may have had its effect: it answered, and the answer is too long, for example.
pub const OUTCOME: &str = "outcome";
pub const OUTCOME_UNKNOWN: &str = "unknown";

/// Whether a failed attempt may have had its effect all the same.
pub fn is_unknown(fault: &StoredFault, attempts: u32, was_told: bool) -> bool {
    let said = fault.details.as_ref().and_then(|details| details.get(OUTCOME));
    fault.code == Code::OutcomeUnknown
        || said.is_some_and(|outcome| *outcome == OUTCOME_UNKNOWN)
        || (attempts > 0 && (fault.code == Code::Timeout || (fault.code == Code::Cancelled && was_told)))
}

/// The units that are not undone, in the order of completion.
fn units(state: &State) -> Vec<Task> {
    let is_done = |task: &Task| matches!(state.steps[task.step].undone.get(&task.part), Some(Undone::Done));
    state.completed.iter().filter(|task| !is_done(task)).map(|task| task.undoing()).collect()
}

/// Whether the definition, or the execution that it belongs to, wants a rollback.
fn is_wanted(state: &State) -> bool {
    let on = state.workflow().policies.compensate_on;
    let has_failed = state.failing.is_some();
    let is_cancelled = is_cancelled(state);
    state.undo_asked || (has_failed && on.failed) || (is_cancelled && on.cancelled)
}

/// Whether the end of the execution is a cancellation, whatever else happened.
pub fn is_cancelled(state: &State) -> bool {
    state.cancel.is_some() || state.failing.as_ref().is_some_and(|failing| failing.cancelled)
}

/// Why it is rolled back. Force that stops the rollback is not the cause of it.
pub fn cause(state: &State) -> &'static str {
    let by_cancel = state.cancel.as_ref().is_some_and(|cancel| !cancel.is_during_rollback);
    let by_step = state.failing.as_ref().is_some_and(|failing| failing.cancelled);
    if by_cancel || by_step { "cancelled" } else { "failed" }
}

/// Nothing runs any more: begins the rollback or its next undo, or ends the execution.
pub fn conclude(state: &mut State, forced: bool, at_ms: i64, out: &mut Vec<Decision>) {
    let units = if state.undoing.is_none() && is_wanted(state) { units(state) } else { Vec::new() };
    if !units.is_empty() {
        if state.cancel.as_ref().is_some_and(|cancel| cancel.force) {
            state.undoing = Some(units);
            leave_rest(state);
        } else if state.pause.is_some() {
            // Nothing new begins until it is resumed.
            return;
        } else {
            begin(state, units, out);
        }
    }
    match state.undoing.as_mut().and_then(Vec::pop) {
        Some(task) => start(state, task, at_ms, out),
        None => closing::close(state, final_status(state), forced, at_ms, out),
    }
}

fn begin(state: &mut State, units: Vec<Task>, out: &mut Vec<Decision>) {
    out.push(Decision::Note(Note::Compensating { units: units.len() }));
    // The time limit is one for the work, not for taking it back.
    if state.timeout_ms().is_some() {
        out.push(Decision::Forget { task: None });
    }
    state.undoing = Some(units);
    state.status = Status::Compensating;
}

/// Begins one undo: the call that the definition names, or the rollback of a child.
fn start(state: &mut State, task: Task, at_ms: i64, out: &mut Vec<Decision>) {
    state.undo_started_ms = Some(at_ms);
    if calls(state, task) {
        return launch(state, task, out);
    }
    let Some(child) = state.children.get(&task.undone()) else { return };
    let phase = Phase::Child { execution: child.execution.clone(), stopping: false };
    state.work.insert(task, Work::new(phase, 1));
    out.push(Decision::UndoChild { task });
    out.push(Decision::Note(Note::UndoingChild { task }));
}

fn final_status(state: &State) -> Status {
    let is_forced = state.cancel.as_ref().is_some_and(|cancel| cancel.force);
    let has_undone = state.undoing.is_some() && state.steps.iter().any(|step| !step.undone.is_empty());
    let has_failed =
        state.failing.is_some() || state.closing.as_ref().is_some_and(|closing| closing.has_failed);
    match (has_undone && !is_forced, is_cancelled(state), has_failed) {
        (true, _, _) => Status::Compensated,
        (false, true, _) => Status::Cancelled,
        (false, false, true) => Status::Failed,
        (false, false, false) => Status::Completed,
    }
}

/// One undo has ended. A failed one is listed and the others still run: half undone is worse than that.
pub fn ended(state: &mut State, task: Task, result: Result<Value, StoredFault>) {
    let is_child = !calls(state, task);
    let undone = match result {
        // A child that had nothing to undo.
        Ok(report) if is_child && report[Undone::COUNT] == 0 => return,
        Ok(_) => Undone::Done,
        Err(fault) => Undone::Failed(fault),
    };
    state.steps[task.step].undone.insert(task.part, undone);
}

/// The record of an undo is refused by the store: it counts as failed, and the others still run.
pub fn unwritable(state: &mut State, fault: &StoredFault, out: &mut Vec<Decision>) {
    out.push(Decision::Withdraw);
    for (task, _) in std::mem::take(&mut state.work) {
        out.push(Decision::Stop { task });
        state.steps[task.step].undone.insert(task.part, Undone::Failed(fault.clone()));
    }
}

/// Stops a rollback. What it has not undone is left and listed.
pub fn interrupt(state: &mut State, reason: String, at_ms: i64, out: &mut Vec<Decision>) {
    out.push(Decision::Withdraw);
    for (task, work) in std::mem::take(&mut state.work) {
        out.push(Decision::Stop { task });
        let fault = match work.attempts {
            0 => left_by_force(),
            _ => Fault::new(Code::OutcomeUnknown, "the rollback was stopped by force while this undo ran"),
        };
        state.steps[task.step].undone.insert(task.part, Undone::Failed(StoredFault::from(&fault)));
    }
    leave_rest(state);
    let is_during_rollback = state.cancel.is_none();
    state.cancel = Some(Cancel { reason, asked_ms: at_ms, force: true, is_during_rollback });
    finish(state, Status::Cancelled, true, at_ms, out);
}

fn leave_rest(state: &mut State) {
    let fault = StoredFault::from(&left_by_force());
    for task in state.undoing.replace(Vec::new()).unwrap_or_default() {
        state.steps[task.step].undone.insert(task.part, Undone::Failed(fault.clone()));
    }
}

fn left_by_force() -> Fault {
    Fault::new(Code::Cancelled, "the execution was cancelled by force before this was undone")
}

/// The execution that this one belongs to rolls back. An execution that has ended is opened again for its own rollback.
pub fn asked(state: &mut State, at_ms: i64, out: &mut Vec<Decision>) {
    state.undo_asked = true;
    match state.status {
        Status::Compensating => {}
        Status::Compensated => out.push(Decision::ReportUndo),
        Status::Completed | Status::Failed | Status::Cancelled => {
            let units = units(state);
            if units.is_empty() {
                return out.push(Decision::ReportUndo);
            }
            // What a rollback that was stopped by force has left is tried again.
            state.steps.iter_mut().for_each(|step| step.undone.retain(|_, undone| !undone.leaves_result()));
            state.cancel.iter_mut().for_each(|cancel| cancel.force = false);
            state.ended_ms = None;
            begin(state, units, out);
        }
        Status::Queued | Status::Running | Status::Waiting | Status::Paused | Status::Cancelling => {
            let reason = String::from("the execution it belongs to is rolled back");
            super::stop::cancel(state, reason, false, at_ms, out);
        }
    }
}

/// How many units are undone.
pub fn count_done(state: &State) -> usize {
    state.steps.iter().flat_map(|step| step.undone.values()).filter(|one| matches!(one, Undone::Done)).count()
}

/// What is not undone of what a rollback has begun with, in the order in which it is undone.
pub fn left(state: &State) -> Vec<Left<'_>> {
    let Some(waiting) = &state.undoing else { return Vec::new() };
    let open = |task: &Task| waiting.contains(&task.undoing()) || state.work.contains_key(&task.undoing());
    let one = |task: &Task| match state.steps[task.step].undone.get(&task.part) {
        Some(Undone::Done) => None,
        Some(Undone::Failed(fault)) => Some(Left { task: *task, fault: Some(fault) }),
        None => open(task).then_some(Left { task: *task, fault: None }),
    };
    state.completed.iter().rev().filter_map(one).collect()
}
