//! What happens to an execution, and what follows from it. Events are stored; decisions are not, since they follow.

use std::fmt;
use std::sync::Arc;

use orchestr8_contract::error::StoredFault;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::agents::Usage;
use crate::definition::model::{Budget, StepSection};

pub use super::status::Status;

/// One piece of work: a step, one item or round of it, or its undoing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Task {
    /// The place of the step in the definition, to which the execution is pinned.
    #[serde(rename = "s")]
    pub step: usize,
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub part: Option<u32>,
    #[serde(rename = "u", default, skip_serializing_if = "is_false")]
    pub undo: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

impl Task {
    pub fn of(step: usize) -> Self {
        Self { step, part: None, undo: false }
    }

    pub fn part(step: usize, part: u32) -> Self {
        Self { step, part: Some(part), undo: false }
    }

    #[cfg(test)]
    pub fn undo(step: usize) -> Self {
        Self::of(step).undoing()
    }

    /// What undoes this.
    pub fn undoing(self) -> Self {
        Self { undo: true, ..self }
    }

    /// What this undoes.
    pub fn undone(self) -> Self {
        Self { undo: false, ..self }
    }
}

impl fmt::Display for Task {
    /// As timers and workers name it: `3`, `3.17`, `3u`, `3.17u`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.step)?;
        if let Some(part) = self.part {
            write!(out, ".{part}")?;
        }
        if self.undo { out.write_str("u") } else { Ok(()) }
    }
}

/// What happened. The stored form of an execution: folding its events gives its state.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "e", rename_all = "camelCase")]
pub enum Event {
    /// It leaves the queue. What the environment says is fixed here, so that folding gives the same after a restart.
    Begun {
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        env: Map<String, Value>,
        /// Outputs taken over from the execution it was forked from.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        kept: Vec<(usize, Value)>,
        /// How often other executions did and undid these steps before: part of their keys.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        generations: Vec<(usize, u32)>,
    },
    /// An attempt begins.
    Started {
        task: Task,
        attempt: u32,
    },
    /// An attempt failed, and the next one is due after a wait.
    Retrying {
        task: Task,
        attempt: u32,
        fault: StoredFault,
        wait_ms: u64,
    },
    Succeeded {
        task: Task,
        attempts: u32,
        output: Value,
        #[serde(default, skip_serializing_if = "is_nothing")]
        usage: Usage,
    },
    Failed {
        task: Task,
        attempts: u32,
        fault: StoredFault,
    },
    /// Another execution does it.
    ChildBegun {
        task: Task,
        execution: Arc<str>,
        /// A rollback must ask it to undo what it did.
        #[serde(default, skip_serializing_if = "is_false")]
        undoable: bool,
        /// It goes on by itself, so the work is done.
        #[serde(default, skip_serializing_if = "is_false")]
        detached: bool,
    },
    /// The end of an attempt is not known: its process died.
    Lost {
        task: Task,
    },
    /// A person said what became of an attempt whose end is not known.
    Resolved {
        task: Task,
        how: Resolution,
    },
    /// The time of a wait, an approval, a backoff or a pause between rounds has come; without a task, that of the whole execution.
    Due {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<Task>,
    },
    Signal {
        name: String,
        payload: Value,
        /// The sender's own name for it: the second of the same name is the first one sent again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    Decided {
        task: Task,
        approved: bool,
        /// The authenticated principal.
        by: String,
        /// The person for whom the principal says that it decides. Not verified.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on_behalf_of: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        comment: Option<String>,
        #[serde(default)]
        data: Value,
    },
    CancelAsked {
        reason: String,
        graceful: bool,
        /// Nothing is rolled back, and a rollback that runs is stopped.
        #[serde(default, skip_serializing_if = "is_false")]
        force: bool,
    },
    /// The execution that this one belongs to rolls back: this one undoes what it did, however it ended, and reports it.
    UndoAsked,
    /// The time for clean-up is over.
    Forced,
    /// The store refuses what the execution did next, so it fails.
    Unwritable {
        fault: StoredFault,
    },
    Paused {
        reason: String,
    },
    Resumed {
        #[serde(default)]
        budget: NewBudget,
    },
    /// A failed or cancelled execution is taken up again.
    Again,
    /// The same, and the limit of its key is reached: it waits for its turn as one that starts.
    AgainQueued,
}

impl Event {
    /// It is for an execution that has ended, too.
    pub fn concerns_ended(&self) -> bool {
        matches!(self, Event::Again | Event::AgainQueued | Event::UndoAsked)
    }

    /// The piece of work it is about.
    pub fn task(&self) -> Option<Task> {
        match self {
            Event::Started { task, .. }
            | Event::Retrying { task, .. }
            | Event::Succeeded { task, .. }
            | Event::Failed { task, .. }
            | Event::ChildBegun { task, .. }
            | Event::Lost { task }
            | Event::Resolved { task, .. }
            | Event::Decided { task, .. } => Some(*task),
            Event::Due { task } => *task,
            Event::Begun { .. }
            | Event::Signal { .. }
            | Event::CancelAsked { .. }
            | Event::UndoAsked
            | Event::Forced
            | Event::Unwritable { .. }
            | Event::Paused { .. }
            | Event::Resumed { .. }
            | Event::Again
            | Event::AgainQueued => None,
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_nothing(usage: &Usage) -> bool {
    *usage == Usage::default()
}

/// How a person resolves an attempt whose end is not known.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "lowercase")]
pub enum Resolution {
    Retry,
    Fail,
    Complete { output: Value },
}

/// Limits that take the place of the ones before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewBudget {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_clock_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl NewBudget {
    pub fn over(&self, old: &Budget) -> Budget {
        Budget {
            wall_clock_ms: self.wall_clock_ms.or(old.wall_clock_ms),
            steps: self.steps.or(old.steps),
            tokens: self.tokens.or(old.tokens),
            cost: self.cost.or(old.cost),
        }
    }
}

/// What follows from an event. Whoever drives the execution does it, after the event is durable.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Run an attempt of this as soon as there is a slot.
    Run {
        task: Task,
    },
    /// Begin another execution for this.
    Begin {
        task: Task,
    },
    /// It has not begun: let it wait for its turn.
    LineUp,
    /// Wake it at this time, with `Event::Due`.
    Wake {
        task: Option<Task>,
        due_ms: i64,
    },
    /// It need not be woken any more.
    Forget {
        task: Option<Task>,
    },
    /// Somebody must be asked.
    Ask {
        task: Task,
        due_ms: Option<i64>,
    },
    /// Nobody needs to be asked any more.
    Unask {
        task: Task,
    },
    /// It waits for an event that may be sent to a key.
    Expect {
        name: String,
        key: String,
    },
    /// Stop the attempt that runs.
    Stop {
        task: Task,
    },
    /// Ask the child execution of this undo to undo what it did.
    UndoChild {
        task: Task,
    },
    /// Tell the execution that this one belongs to what was undone.
    ReportUndo,
    /// Take back what waits for a slot.
    Withdraw,
    /// Something to tell people that is no event of its own.
    Note(Note),
    Finish,
}

/// News for the journal.
#[derive(Debug, Clone, PartialEq)]
pub enum Note {
    Completed {
        step: usize,
    },
    Failed {
        step: usize,
    },
    Skipped {
        step: usize,
    },
    /// It has begun and has lost a race: it is told to stop.
    Lost {
        step: usize,
    },
    Paused,
    Waiting {
        step: usize,
    },
    /// A rollback begins, with so much to undo.
    Compensating {
        units: usize,
    },
    /// The handlers of this section begin.
    Closing {
        section: StepSection,
    },
    /// A child is asked to undo what it did.
    UndoingChild {
        task: Task,
    },
    Finished {
        forced: bool,
    },
}
