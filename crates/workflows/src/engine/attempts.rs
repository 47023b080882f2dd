//! When each attempt of a step began and ended. Items, rounds and undos have theirs in the journal only.

use orchestr8_contract::Code;
use orchestr8_contract::error::StoredFault;
use orchestr8_kernel::ports::clock::iso;
use serde_json::{Value, json};

use super::event::Task;
use super::state::{State, Step};
use crate::limits;

/// One attempt of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepAttempt {
    number: u32,
    started_ms: i64,
    ended_ms: Option<i64>,
    /// Why it failed.
    code: Option<Code>,
}

fn own(state: &mut State, task: Task) -> Option<&mut Step> {
    (!task.undo && task.part.is_none()).then(|| &mut state.steps[task.step])
}

pub fn began(state: &mut State, task: Task, number: u32, at_ms: i64) {
    let Some(step) = own(state, task) else { return };
    if step.attempt_times.len() >= limits::ATTEMPTS_SHOWN {
        step.attempt_times.pop_front();
    }
    step.attempt_times.push_back(StepAttempt { number, started_ms: at_ms, ended_ms: None, code: None });
}

pub fn ended(state: &mut State, task: Task, fault: Option<&StoredFault>, at_ms: i64) {
    let Some(attempt) = own(state, task).and_then(|step| step.attempt_times.back_mut()) else { return };
    if attempt.ended_ms.is_none() {
        attempt.ended_ms = Some(at_ms);
        attempt.code = fault.map(|fault| fault.code);
    }
}

/// All of them, if there was more than one.
pub fn shown(step: &Step) -> Option<Value> {
    (step.attempt_times.len() > 1).then(|| step.attempt_times.iter().map(StepAttempt::shown).collect())
}

impl StepAttempt {
    fn shown(&self) -> Value {
        let mut attempt = json!({"attempt": self.number, "startTime": iso(self.started_ms)});
        if let Some(ended_ms) = self.ended_ms {
            attempt["endTime"] = iso(ended_ms).into();
            attempt["duration"] = (ended_ms - self.started_ms).into();
        }
        if let Some(code) = self.code {
            attempt["code"] = code.as_str().into();
        }
        attempt
    }
}
