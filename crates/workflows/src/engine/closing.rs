//! Handlers: the steps of `onFailure` and `finally`, which run when the body of a definition has ended (ADR 48).
//!
//! The order is body, rollback, `onFailure`, `finally`, final state. Handlers run once for each end of the body. One that fails is
//! listed after the error of the body and keeps no other from running.

use std::ops::Range;

use orchestr8_contract::error::StoredFault;
use orchestr8_contract::{Code, Fault};
use serde_json::{Value, json};

use super::event::{Decision, Note, Status};
use super::graph::{self, finish};
use super::state::{Cancel, Outcome, Phase, Problem, Skip, State};
use super::undo;
use crate::definition::model::StepSection;

/// The body has ended, and its handlers run or have run.
#[derive(Debug, Clone)]
pub struct Closing {
    /// How the body ended, its rollback included.
    pub outcome: Status,
    /// Whose steps run; none when all handlers have ended.
    pub section: Option<StepSection>,
    /// A handler failed, and nothing tolerates it.
    pub has_failed: bool,
    /// Steps of the body were abandoned when the grace of a cancellation was over.
    pub forced: bool,
}

impl State {
    /// The handlers that run.
    pub fn closing_section(&self) -> Option<StepSection> {
        self.closing.as_ref()?.section
    }

    /// The places of the steps that may run now: those of the body, or of the handlers.
    pub fn current_steps(&self) -> Range<usize> {
        self.workflow().section(self.closing_section().unwrap_or_default())
    }

    /// Every step of the body, or of the handlers that run, has ended.
    pub fn all_ended(&self) -> bool {
        self.steps[self.current_steps()].iter().all(|step| step.outcome.is_some())
    }
}

/// The body has ended: its handlers run, then the execution ends.
pub fn close(state: &mut State, outcome: Status, forced: bool, at_ms: i64, out: &mut Vec<Decision>) {
    if let Some(closing) = &state.closing {
        let forced = forced || closing.forced;
        return finish(state, outcome, forced, at_ms, out);
    }
    let is_forced = state.cancel.as_ref().is_some_and(|cancel| cancel.force);
    if is_forced || !state.has_begun() || !state.workflow().has_closing_steps() {
        return finish(state, outcome, forced, at_ms, out);
    }
    if state.pause.is_some() {
        // Nothing new begins until it is resumed.
        return;
    }
    // The time limit is one for the body.
    if state.timeout_ms().is_some() {
        out.push(Decision::Forget { task: None });
    }
    for step in &mut state.steps[state.identity.workflow.section(StepSection::Body)] {
        step.outcome.get_or_insert(Outcome::Cancelled);
    }
    state.closing = Some(Closing { outcome, section: None, has_failed: false, forced });
    enter(state, StepSection::OnFailure, at_ms, out);
    advance(state, at_ms, out);
}

fn enter(state: &mut State, section: StepSection, at_ms: i64, out: &mut Vec<Decision>) {
    if let Some(closing) = &mut state.closing {
        closing.section = Some(section);
    }
    let places = state.workflow().section(section);
    let is_open = |place: usize| state.steps[place].outcome.is_none();
    if !places.clone().any(is_open) {
        return;
    }
    let reason = match section {
        StepSection::Body | StepSection::Finally => None,
        StepSection::OnFailure if undo::is_cancelled(state) => Some("The execution was cancelled"),
        StepSection::OnFailure if state.failing.is_none() => Some("The execution did not fail"),
        StepSection::OnFailure => None,
    };
    let Some(reason) = reason else {
        return out.push(Decision::Note(Note::Closing { section }));
    };
    for place in places {
        if state.steps[place].outcome.is_none() {
            graph::skip(state, place, Skip { reason: reason.to_owned(), by_failure: false }, at_ms, out);
        }
    }
}

/// Goes on with the handlers; the execution ends with the last of them.
pub fn advance(state: &mut State, at_ms: i64, out: &mut Vec<Decision>) {
    while let Some(section) = state.closing_section() {
        while graph::advance(state, at_ms, out) {}
        if state.workflow().section(section).any(|place| state.steps[place].outcome.is_none()) {
            return;
        }
        if section == StepSection::OnFailure {
            enter(state, StepSection::Finally, at_ms, out);
        } else {
            if let Some(closing) = &mut state.closing {
                closing.section = None;
            }
            // An execution that this one belongs to may have asked for a rollback meanwhile.
            undo::conclude(state, false, at_ms, out);
        }
    }
}

/// Stops the handlers: what runs is abandoned, and what has not begun does not.
pub fn interrupt(state: &mut State, reason: String, at_ms: i64, out: &mut Vec<Decision>) {
    out.push(Decision::Withdraw);
    for (task, work) in std::mem::take(&mut state.work) {
        if work.phase.is_active() {
            out.push(Decision::Stop { task });
        }
        if work.phase.due_ms().is_some() {
            out.push(Decision::Forget { task: Some(task) });
        }
        if matches!(work.phase, Phase::Asking { .. }) {
            out.push(Decision::Unask { task });
        }
        let own = &mut state.steps[task.step];
        if own.outcome.is_none() {
            let fault = StoredFault::from(&Fault::new(Code::Cancelled, CANCELLED_BY_FORCE));
            own.outcome = Some(Outcome::Cancelled);
            own.fault = Some(fault.clone());
            own.ended_ms = Some(at_ms);
            state.errors.push(Problem { step: Some(task.step), fault });
        }
    }
    let is_during_rollback = state.cancel.is_none();
    state.cancel = Some(Cancel { reason, asked_ms: at_ms, force: true, is_during_rollback });
    if let Some(closing) = &mut state.closing {
        closing.section = None;
    }
    finish(state, Status::Cancelled, true, at_ms, out);
}

const CANCELLED_BY_FORCE: &str = "the execution was cancelled by force";

/// Ends the handlers that never begin, when the execution ends without them.
pub fn leave_out(state: &mut State) {
    let reason = match state.has_begun() {
        true => "The execution was cancelled by force",
        false => "The execution did not begin",
    };
    let body = state.workflow().section(StepSection::Body).end;
    for own in state.steps[body..].iter_mut().filter(|own| own.outcome.is_none()) {
        own.outcome = Some(Outcome::Skipped);
        own.skip = Some(Skip { reason: reason.to_owned(), by_failure: false });
    }
}

/// The record of a handler is refused by the store: it counts as failed, and the others still run.
pub fn unwritable(state: &mut State, fault: &StoredFault, at_ms: i64, out: &mut Vec<Decision>) {
    out.push(Decision::Withdraw);
    let work: Vec<_> = state.work.iter().map(|(task, work)| (*task, work.attempts)).collect();
    for (task, attempts) in work {
        out.push(Decision::Stop { task });
        super::end_task(state, task, attempts, Err(fault.clone()), at_ms);
    }
}

/// What expressions of handlers see as `${failure}`: why the execution did not complete.
pub fn failure(state: &State) -> Option<Value> {
    state.closing.as_ref()?;
    let problem = match (&state.cancel, &state.failing) {
        (Some(cancel), _) => {
            let fault = StoredFault::from(&Fault::new(Code::Cancelled, cancel.reason.clone()));
            Problem { step: None, fault }
        }
        (None, Some(failing)) => {
            let is_it = |problem: &&Problem| problem.step == failing.step;
            state.errors.iter().find(is_it).or(state.errors.first())?.clone()
        }
        (None, None) => return None,
    };
    let mut failure = error(&problem.fault);
    if let Some(step) = problem.step {
        failure["stepId"] = (*state.workflow().steps[step].id).into();
    }
    Some(failure)
}

/// What expressions see as `${steps.<id>.error}`.
pub fn step_error(state: &State, step: usize) -> Option<Value> {
    let own = &state.steps[step];
    let fault = own.fault.as_ref().filter(|_| own.outcome == Some(Outcome::Failed))?;
    let mut value = error(fault);
    value["attempts"] = own.attempts.into();
    Some(value)
}

fn error(fault: &StoredFault) -> Value {
    json!({"code": fault.code, "message": fault.message, "category": fault.category()})
}
