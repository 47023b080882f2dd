//! Taking a failed, cancelled or compensated execution up again: what holds stays, the rest runs.

use orchestr8_contract::json;

use super::arm_timeout;
use super::event::{Decision, Status, Task};
use super::state::{Outcome, Parts, State, Step};
use crate::definition::model::{OnError, Workflow};

/// Takes it up again. What was undone is not done: it runs under new keys.
pub fn begin_again(state: &mut State, at_ms: i64, out: &mut Vec<Decision>) {
    if !matches!(state.status, Status::Failed | Status::Cancelled | Status::Compensated) {
        return;
    }
    let workflow = state.workflow().clone();
    let (again, follows) = due(state, &workflow);
    for step in 0..again.len() {
        if again[step] {
            reset(state, step, follows[step], workflow.steps[step].each.is_some());
        } else {
            // What could not be undone holds, and is tried again by the next rollback.
            state.steps[step].undone.retain(|_, undone| !undone.leaves_result());
        }
    }
    let steps = &state.steps;
    let holds = |task: &Task| {
        let kept = |parts: &Parts| task.part.is_some_and(|part| has_output(parts, part));
        !again[task.step] || steps[task.step].parts.as_ref().is_some_and(kept)
    };
    state.completed.retain(holds);
    state.children.retain(|task, _| holds(task));
    state.work.clear();
    state.errors.clear();
    state.failing = None;
    state.cancel = None;
    state.undoing = None;
    state.undo_asked = false;
    state.ended_ms = None;
    if state.has_begun() {
        state.status = Status::Running;
        arm_timeout(state, at_ms, out);
    } else {
        state.status = Status::Queued;
        out.push(Decision::LineUp);
    }
}

/// Which steps run again, and which of them because something before them does.
fn due(state: &State, workflow: &Workflow) -> (Vec<bool>, Vec<bool>) {
    let was_undone = |own: &Step| own.undone.values().any(|undone| !undone.leaves_result());
    let mut again: Vec<bool> = state
        .steps
        .iter()
        .zip(&workflow.steps)
        .map(|(own, definition)| match own.outcome {
            Some(Outcome::Completed) => was_undone(own),
            Some(Outcome::Failed) => definition.on_error != OnError::Continue,
            Some(Outcome::Skipped) => own.skip.as_ref().is_some_and(|skip| skip.by_failure),
            Some(Outcome::Cancelled) | None => true,
        })
        .collect();
    let mut follows = vec![false; again.len()];
    // Whatever was decided from the outcome of such a step is open again too.
    loop {
        let is_led_to = |step: usize| {
            let stands_in =
                workflow.steps.iter().zip(&again).any(|(one, again)| *again && one.fallback == Some(step));
            stands_in || workflow.steps[step].dependencies.iter().any(|one| again[*one])
        };
        let more: Vec<usize> = (0..again.len()).filter(|step| !follows[*step] && is_led_to(*step)).collect();
        if more.is_empty() {
            return (again, follows);
        }
        for step in more {
            (again[step], follows[step]) = (true, true);
        }
    }
}

fn has_output(parts: &Parts, part: u32) -> bool {
    usize::try_from(part).ok().and_then(|part| parts.outputs.get(part)).is_some_and(Option::is_some)
}

/// A step runs again. Items that still hold keep their outputs, unless what they follow from is done again.
fn reset(state: &mut State, step: usize, follows: bool, is_each: bool) {
    let own = std::mem::take(&mut state.steps[step]);
    let round_bytes: usize = own.parts.iter().flat_map(|parts| parts.rounds.values()).map(json::bytes).sum();
    let bytes = own.output.as_ref().map_or(0, json::bytes) + round_bytes;
    state.outputs_bytes = state.outputs_bytes.saturating_sub(bytes);
    let undone = |part: Option<u32>| own.undone.get(&part).is_some_and(|undone| !undone.leaves_result());
    let mut fresh = Step {
        started_ms: own.started_ms,
        generation: own.generation,
        part_generations: own.part_generations.clone(),
        ..Step::default()
    };
    let has_done = |parts: &Parts| !parts.rounds.is_empty() || parts.outputs.iter().any(Option::is_some);
    let did_something = own.outcome == Some(Outcome::Completed)
        || !own.undone.is_empty()
        || own.parts.as_ref().is_some_and(has_done);
    if is_each && !follows {
        fresh.parts = own.parts.filter(|parts| !parts.outputs.is_empty()).map(|mut parts| {
            for part in own.undone.keys().flatten().filter(|part| undone(Some(**part))) {
                *fresh.part_generations.entry(*part).or_default() += 1;
                let place = usize::try_from(*part).ok().and_then(|part| parts.outputs.get_mut(part));
                place.into_iter().for_each(|output| *output = None);
            }
            parts.failed.clear();
            parts.next = 0;
            parts
        });
        fresh.begun = fresh.parts.is_some();
    } else if (follows && did_something) || own.undone.keys().any(|part| undone(*part)) {
        fresh.generation += 1 + fresh.part_generations.values().max().copied().unwrap_or(0);
        fresh.part_generations.clear();
    }
    state.steps[step] = fresh;
}
