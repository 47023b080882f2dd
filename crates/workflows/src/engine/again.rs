//! Taking a failed, cancelled or compensated execution up again: what holds stays, the rest runs.

use orchestr8_contract::json;

use super::deadline;
use super::event::{Decision, Status, Task};
use super::parts;
use super::state::{Abandoned, Outcome, Parts, State, Step, Undone};
use crate::definition::model::{OnError, StepSection, Workflow};
use crate::limits;

/// Takes it up again. What was undone is not done: it runs under new keys. What could not be undone holds and is not done again;
/// where that cannot be told apart (rounds of a loop, a child that is undone in part) it stays listed.
pub fn begin_again(state: &mut State, is_queued: bool, at_ms: i64, out: &mut Vec<Decision>) {
    if !state.may_begin_again() {
        return;
    }
    let workflow = state.workflow().clone();
    let (again, follows) = due(state, &workflow);
    for step in 0..again.len() {
        if again[step] {
            reset(state, step, follows[step], workflow.steps[step].each.is_some(), at_ms);
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
    state.closing = None;
    state.undo_asked = false;
    state.ended_ms = None;
    if state.has_begun() && !is_queued {
        state.status = Status::Running;
        deadline::begin(state, at_ms, out);
    } else {
        state.status = Status::Queued;
        out.push(Decision::LineUp);
    }
}

impl State {
    /// It has ended without success.
    pub fn may_begin_again(&self) -> bool {
        matches!(self.status, Status::Failed | Status::Cancelled | Status::Compensated)
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
            Some(Outcome::Failed) => match definition.fallback {
                // What stands in for it still holds.
                Some(fallback) => state.output(fallback).is_none() || was_undone(&state.steps[fallback]),
                None => definition.on_error != OnError::Continue,
            },
            Some(Outcome::Skipped) => own.skip.as_ref().is_some_and(|skip| skip.by_failure),
            // A race that holds is not run again.
            Some(Outcome::Cancelled) => own.lost.is_none(),
            None => true,
        })
        .collect();
    let mut follows = vec![false; again.len()];
    let holds = |step: usize| state.steps[step].undone.values().any(Undone::leaves_result);
    // Whatever was decided from the outcome of such a step is open again too. What could not be undone holds: its effect is there.
    loop {
        let is_led_to = |step: usize| {
            let stands_in =
                workflow.steps.iter().zip(&again).any(|(one, again)| *again && one.fallback == Some(step));
            let races_again = state.steps[step].lost.is_some_and(|race| follows[race]);
            let depends = || workflow.steps[step].dependencies.iter().any(|one| again[*one]);
            !holds(step) && (stands_in || races_again || depends())
        };
        let more: Vec<usize> = (0..again.len()).filter(|step| !follows[*step] && is_led_to(*step)).collect();
        if more.is_empty() {
            break;
        }
        for step in more {
            (again[step], follows[step]) = (true, true);
        }
    }
    // Handlers are for one end of the body: after another one they run again. A body that did not complete ends in another way, even
    // if none of its steps runs again: it was cancelled with its last step, for example.
    let body = workflow.section(StepSection::Body);
    let has_completed = state.closing.as_ref().is_some_and(|closing| closing.outcome == Status::Completed);
    if !has_completed || again[body.clone()].contains(&true) {
        again[body.end..].fill(true);
        follows[body.end..].fill(true);
    }
    (again, follows)
}

fn has_output(parts: &Parts, part: u32) -> bool {
    usize::try_from(part).ok().and_then(|part| parts.outputs.get(part)).is_some_and(Option::is_some)
}

/// A step runs again. Items that still hold keep their outputs, unless what they follow from is done again.
fn reset(state: &mut State, step: usize, follows: bool, is_each: bool, at_ms: i64) {
    let own = std::mem::take(&mut state.steps[step]);
    let round_bytes: usize = own.parts.iter().flat_map(|parts| parts.rounds.values()).map(json::bytes).sum();
    let bytes = own.output.as_ref().map_or(0, json::bytes) + round_bytes;
    state.outputs_bytes = state.outputs_bytes.saturating_sub(bytes);
    let is_undone = |undone: &Undone| !undone.leaves_result();
    let keeps_items = is_each && !follows;
    let is_renewed = !keeps_items && ((follows && did_something(&own)) || own.undone.values().any(is_undone));
    abandon(state, step, &own, |undone| is_renewed || (keeps_items && is_undone(undone)));
    let mut fresh = Step {
        generation: own.generation,
        part_generations: own.part_generations.clone(),
        ..Step::default()
    };
    if keeps_items {
        fresh.parts = own.parts.filter(|parts| !parts.outputs.is_empty()).map(|mut parts| {
            let undone = own.undone.iter().filter(|(_, undone)| is_undone(undone));
            for part in undone.filter_map(|(part, _)| *part) {
                *fresh.part_generations.entry(part).or_default() += 1;
                let place = usize::try_from(part).ok().and_then(|part| parts.outputs.get_mut(part));
                place.into_iter().for_each(|output| *output = None);
            }
            parts.failed.clear();
            parts.next = 0;
            parts::measure(&mut parts);
            parts
        });
        fresh.begun = fresh.parts.is_some();
        fresh.started_ms = fresh.begun.then_some(at_ms);
    } else if is_renewed {
        let of_parts = fresh.part_generations.values().max().copied().unwrap_or(0);
        fresh.generation = fresh.generation.saturating_add(of_parts).saturating_add(1);
        fresh.part_generations.clear();
    }
    state.steps[step] = fresh;
}

/// Whether a step has, or may have, had an effect.
fn did_something(own: &Step) -> bool {
    let has_done = |parts: &Parts| parts.rounds_done > 0 || parts.outputs.iter().any(Option::is_some);
    own.outcome == Some(Outcome::Completed)
        || !own.undone.is_empty()
        || own.parts.as_ref().is_some_and(has_done)
}

/// Keeps in the list what could not be undone of a step that is done again under new keys.
fn abandon(state: &mut State, step: usize, own: &Step, is_abandoned: impl Fn(&Undone) -> bool) {
    for (part, undone) in &own.undone {
        if let Undone::Failed(fault) = undone
            && is_abandoned(undone)
            && state.abandoned.len() < limits::ABANDONED_EFFECTS
        {
            state.abandoned.push(Abandoned {
                task: Task { step, part: *part, undo: false },
                generation: own.generation_of(*part),
                is_unknown: own.unknown.contains(part),
                fault: fault.clone(),
            });
        }
    }
}
