//! Going back: compensations after a failure, and taking a failed execution up again.

use orchestr8_contract::error::StoredFault;

use super::arm_timeout;
use super::event::{Decision, Note, Status, Task};
use super::graph::launch;
use super::state::{Outcome, Problem, State, Step, Undone};
use crate::definition::model::OnError;

/// Begins the next compensation. False when there is none left.
pub fn advance(state: &mut State, out: &mut Vec<Decision>) -> bool {
    if state.undoing.is_none() {
        let workflow = state.workflow().clone();
        let rest: Vec<usize> = state
            .completed
            .iter()
            .copied()
            .filter(|step| workflow.steps[*step].compensate.is_some() && state.steps[*step].undone.is_none())
            .collect();
        if !rest.is_empty() {
            out.push(Decision::Note(Note::Compensating));
        }
        state.undoing = Some(rest);
    }
    // The list is in order of completion, so its end is what completed last.
    let Some(step) = state.undoing.as_mut().and_then(Vec::pop) else { return false };
    launch(state, Task::undo(step), out);
    true
}

/// One compensation has ended. A failed one is reported and the others still run: half undone is worse than that.
pub fn ended(state: &mut State, task: Task, fault: Option<StoredFault>) {
    state.steps[task.step].undone = Some(if fault.is_some() { Undone::Failed } else { Undone::Done });
    state.errors.extend(fault.map(|fault| Problem { step: Some(task.step), fault }));
}

/// Takes up a failed or cancelled execution: what completed stays, the rest runs.
pub fn begin_again(state: &mut State, at_ms: i64, out: &mut Vec<Decision>) {
    if !matches!(state.status, Status::Failed | Status::Cancelled) {
        return;
    }
    let workflow = state.workflow().clone();
    let mut again: Vec<bool> = state
        .steps
        .iter()
        .zip(&workflow.steps)
        .map(|(own, definition)| match own.outcome {
            Some(Outcome::Completed) => own.undone.is_some(),
            Some(Outcome::Failed) => definition.on_error != OnError::Continue,
            Some(Outcome::Skipped) => own.skip.as_ref().is_some_and(|skip| skip.by_failure),
            Some(Outcome::Cancelled) | None => true,
        })
        .collect();
    // Whatever was decided from the outcome of such a step is open again too.
    loop {
        let more: Vec<usize> = (0..again.len())
            .filter(|step| {
                let definition = &workflow.steps[*step];
                let follows = definition.dependencies.iter().any(|one| again[*one]);
                let stands_in = workflow
                    .steps
                    .iter()
                    .enumerate()
                    .any(|(place, one)| again[place] && one.fallback == Some(*step));
                !again[*step] && (follows || stands_in)
            })
            .collect();
        if more.is_empty() {
            break;
        }
        more.into_iter().for_each(|step| again[step] = true);
    }
    for (step, _) in again.iter().enumerate().filter(|(_, again)| **again) {
        let own = &mut state.steps[step];
        // Items that succeeded keep their outputs.
        let parts = own.parts.take().filter(|parts| !parts.outputs.is_empty()).map(|mut parts| {
            parts.failed.clear();
            parts.next = 0;
            parts
        });
        let generation = own.generation + u32::from(own.outcome == Some(Outcome::Completed));
        *own =
            Step { begun: parts.is_some(), parts, started_ms: own.started_ms, generation, ..Step::default() };
    }
    state.completed.retain(|step| !again[*step]);
    state.work.clear();
    state.errors.clear();
    state.failing = None;
    state.cancel = None;
    state.undoing = None;
    state.ended_ms = None;
    if state.has_begun() {
        state.status = Status::Running;
        arm_timeout(state, at_ms, out);
    } else {
        state.status = Status::Queued;
        out.push(Decision::LineUp);
    }
}
