//! Races: a step with `join: "race"` goes on with the first dependency that completes, and the others are cancelled.
//!
//! The losers are the dependencies that have not ended, and the steps before them that lead to nothing else. What runs of them is told
//! to stop and is not waited for by the race; a loser that completes all the same keeps its result.

use super::event::{Decision, Note, Task};
use super::join::{self, Readiness};
use super::state::{Outcome, Phase, Skip, State, Work};
use super::stop::drop_waiting;
use crate::definition::model::{Join, OnError};

/// Decides the races that have a winner.
pub fn decide_all(state: &mut State, at_ms: i64, out: &mut Vec<Decision>) {
    for step in state.current_steps() {
        let own = &state.steps[step];
        let is_open = !own.begun && own.outcome.is_none();
        if is_open && state.workflow().steps[step].join == Join::Race {
            decide(state, step, at_ms, out);
        }
    }
}

fn decide(state: &mut State, race: usize, at_ms: i64, out: &mut Vec<Decision>) {
    let workflow = state.workflow().clone();
    let winner = join::winner(state, race);
    let (Some(winner), Readiness::Ready) = (winner, join::readiness(state, race)) else { return };
    let lost = losers(state, race);
    if !lost.contains(&true) {
        return;
    }
    let reason = format!("Lost the race of '{}' to '{}'", workflow.steps[race].id, workflow.steps[winner].id);
    for step in (0..lost.len()).filter(|step| lost[*step]) {
        let own = &mut state.steps[step];
        own.lost = Some(race);
        own.skip = Some(Skip { reason: reason.clone(), by_failure: false });
        if own.begun {
            out.push(Decision::Note(Note::Lost { step }));
        } else {
            own.outcome = Some(Outcome::Skipped);
            own.ended_ms = Some(at_ms);
            out.push(Decision::Note(Note::Skipped { step }));
        }
    }
    for (task, work) in state.work.iter_mut().filter(|(task, _)| lost[task.step]) {
        if work.phase.is_active() && work.phase.stop() {
            out.push(Decision::Stop { task: *task });
        }
    }
    withdraw(state, &lost, at_ms, out);
}

/// Ends what of the losers only waits.
fn withdraw(state: &mut State, lost: &[bool], at_ms: i64, out: &mut Vec<Decision>) {
    let is_dropped = |task: &Task, work: &Work| lost[task.step] && !work.phase.is_active();
    let waits_for_slot = |(task, work): (&Task, &Work)| lost[task.step] && work.phase == Phase::Ready;
    let has_ready = state.work.iter().any(waits_for_slot);
    drop_waiting(state, is_dropped, at_ms, out);
    if has_ready {
        out.push(Decision::Withdraw);
        if state.pause.is_none() {
            let ready = state.work.iter().filter(|(_, work)| work.phase == Phase::Ready);
            out.extend(ready.map(|(task, _)| Decision::Run { task: *task }));
        }
    }
}

/// For each step, whether it has lost this race.
fn losers(state: &State, race: usize) -> Vec<bool> {
    let steps = &state.workflow().steps;
    let is_open = |step: usize| state.steps[step].outcome.is_none();
    let mut lost = vec![false; steps.len()];
    for dependency in &steps[race].dependencies {
        let mut step = *dependency;
        // A failed step is open as long as the fallback that stands in for it is.
        while let (false, OnError::Fallback, Some(fallback)) =
            (is_open(step), steps[step].on_error, steps[step].fallback)
        {
            if state.steps[step].outcome != Some(Outcome::Failed) {
                break;
            }
            step = fallback;
        }
        lost[step] = is_open(step);
    }
    loop {
        let leads_nowhere_else = |step: usize| {
            let mut after = (0..steps.len()).filter(|other| {
                steps[*other].dependencies.contains(&step) || steps[*other].fallback == Some(step)
            });
            let mut leads_to_loser = false;
            let none_needs_it = after.all(|other| {
                leads_to_loser |= lost[other];
                lost[other] || !is_open(other)
            });
            none_needs_it && leads_to_loser
        };
        let more: Vec<usize> = (0..steps.len())
            .filter(|step| *step != race && !lost[*step] && is_open(*step) && leads_nowhere_else(*step))
            .collect();
        if more.is_empty() {
            return lost;
        }
        more.into_iter().for_each(|step| lost[step] = true);
    }
}

/// Ends a loop that has lost once nothing of it runs. True when all its items had completed: then it keeps its result.
pub fn ends_whole(state: &mut State, step: usize, at_ms: i64) -> bool {
    if state.works_on(step) > 0 {
        return false;
    }
    let is_whole = |outputs: &[Option<_>]| !outputs.is_empty() && outputs.iter().all(Option::is_some);
    if state.steps[step].parts.as_ref().is_some_and(|parts| is_whole(&parts.outputs)) {
        return true;
    }
    let own = &mut state.steps[step];
    own.outcome = Some(Outcome::Cancelled);
    own.ended_ms = Some(at_ms);
    false
}
