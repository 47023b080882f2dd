//! The state of an execution: what folding its events gives. Nothing here is stored; everything here follows.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock};

use orchestr8_contract::error::StoredFault;
use serde_json::{Map, Value};

use super::attempts::StepAttempt;
pub use super::closing::Closing;
use super::event::{Status, Task};
pub use super::identity::Identity;
pub use super::undo::{Abandoned, Undone};
pub use super::work::{Phase, Work};
use crate::agents::Usage;
use crate::definition::model::{Budget, Workflow};
use crate::limits;

#[derive(Debug, Clone)]
pub struct State {
    pub identity: Arc<Identity>,
    pub env: Map<String, Value>,
    pub status: Status,
    pub started_ms: Option<i64>,
    pub ended_ms: Option<i64>,
    /// As in the definition.
    pub steps: Vec<Step>,
    /// What is under way or about to be, in the order of the definition.
    pub work: BTreeMap<Task, Work>,
    /// Events that nobody has waited for yet, oldest first.
    pub signals: VecDeque<(String, Value)>,
    /// The ids of events that came, oldest first.
    pub heard: VecDeque<String>,
    /// What may have to be undone, in the order in which it completed: steps, items and rounds, children, and what may have
    /// happened or not.
    pub completed: Vec<Task>,
    /// The executions that do the work of a step or an item.
    pub children: BTreeMap<Task, Child>,
    pub failing: Option<Failing>,
    pub cancel: Option<Cancel>,
    pub pause: Option<Pause>,
    /// Effects of earlier runs that could not be undone, of steps that were done again.
    pub abandoned: Vec<Abandoned>,
    /// What is still to be undone, the next one last. None: no rollback has begun.
    pub undoing: Option<Vec<Task>>,
    /// The body has ended and handlers run or have run. None in the body and in its rollback.
    pub closing: Option<Closing>,
    /// The execution that it belongs to rolls back and wants to hear what was undone.
    pub undo_asked: bool,
    /// When the undo that runs began.
    pub undo_started_ms: Option<i64>,
    /// When its time limit is over.
    pub deadline_ms: Option<i64>,
    pub budget: Budget,
    pub usage: Usage,
    /// Attempts so far, retries included.
    pub attempts: u64,
    pub errors: Vec<Problem>,
    /// The size of all outputs together.
    pub outputs_bytes: usize,
    /// The size of the variables, once it was asked for.
    pub variables_bytes: OnceLock<usize>,
    /// The size of the largest list or last output that a loop held.
    pub loop_bytes: usize,
    /// What evaluating its conditions, switches and lists has cost so far.
    pub fuel_used: u64,
}

/// Something that went wrong, with the step it went wrong in.
#[derive(Debug, Clone)]
pub struct Problem {
    pub step: Option<usize>,
    pub fault: StoredFault,
}

#[derive(Debug, Clone)]
pub struct Failing {
    /// The step that failed, or none when the whole ran out of time.
    pub step: Option<usize>,
    /// It failed because something was cancelled, which makes it cancelled and not failed.
    pub cancelled: bool,
    /// The whole ran out of time, then or later: what runs was told to stop, and nothing begins.
    pub stops: bool,
}

#[derive(Debug, Clone)]
pub struct Cancel {
    pub reason: String,
    pub asked_ms: i64,
    /// Without a rollback.
    pub force: bool,
    /// It came while a rollback or handlers ran, whose cause it is not.
    pub is_during_rollback: bool,
}

/// An execution that does the work of a step.
#[derive(Debug, Clone)]
pub struct Child {
    pub execution: Arc<str>,
    /// It may have something to undo.
    pub undoable: bool,
}

#[derive(Debug, Clone)]
pub struct Pause {
    pub reason: String,
    /// A budget is used up: resuming takes a larger one.
    pub by_budget: bool,
    /// It waits for its turn to begin.
    pub in_queue: bool,
}

/// Where one step stands.
#[derive(Debug, Clone, Default)]
pub struct Step {
    /// It has begun; without an outcome it is under way.
    pub begun: bool,
    pub outcome: Option<Outcome>,
    pub output: Option<Value>,
    pub fault: Option<StoredFault>,
    pub skip: Option<Skip>,
    /// The race that it has lost.
    pub lost: Option<usize>,
    /// As a fallback: the step it stands in for.
    pub alias_for: Option<usize>,
    pub attempts: u32,
    /// The newest attempts, the oldest of them first.
    pub attempt_times: VecDeque<StepAttempt>,
    pub started_ms: Option<i64>,
    pub ended_ms: Option<i64>,
    pub parts: Option<Parts>,
    /// As a switch: which case was chosen; `None` inside is the default.
    pub chosen: Option<Option<usize>>,
    /// What became of its undo, or of those of its items and rounds.
    pub undone: BTreeMap<Option<u32>, Undone>,
    /// What of it may have happened or not: the step itself, or items and rounds.
    pub unknown: BTreeSet<Option<u32>>,
    /// How often it was done and undone: part of its keys, so that what it calls does it again.
    pub generation: u32,
    /// The same for single items and rounds, on top of that of the step.
    pub part_generations: BTreeMap<u32, u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Completed,
    Failed,
    Skipped,
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip {
    pub reason: String,
    /// Because something failed: what depends on it is skipped too.
    pub by_failure: bool,
}

/// The items of a `forEach` or the rounds of a `while`.
#[derive(Debug, Clone, Default)]
pub struct Parts {
    pub items: Vec<Value>,
    /// One place for each item; filled as they succeed.
    pub outputs: Vec<Option<Value>>,
    pub failed: BTreeMap<u32, StoredFault>,
    /// How many `outputs` there are, and their size.
    pub kept: usize,
    pub bytes: usize,
    /// The item with which all outputs together are too large to keep.
    pub exceeded: Option<u32>,
    /// The next item or round to begin.
    pub next: u32,
    /// The output of the last round.
    pub last: Value,
    /// How many rounds completed.
    pub rounds_done: u32,
    /// The outputs of all rounds, if a rollback may need them.
    pub rounds: BTreeMap<u32, Value>,
    /// The time between two rounds is over.
    pub rested: bool,
}

impl State {
    pub fn new(identity: Arc<Identity>) -> Self {
        let workflow = &identity.workflow;
        Self {
            env: Map::new(),
            status: Status::Queued,
            started_ms: None,
            ended_ms: None,
            steps: vec![Step::default(); workflow.steps.len()],
            work: BTreeMap::new(),
            signals: VecDeque::new(),
            heard: VecDeque::new(),
            completed: Vec::new(),
            children: BTreeMap::new(),
            failing: None,
            cancel: None,
            pause: None,
            abandoned: Vec::new(),
            undoing: None,
            closing: None,
            undo_asked: false,
            undo_started_ms: None,
            deadline_ms: None,
            budget: workflow.policies.budget.clone(),
            usage: Usage::default(),
            attempts: 0,
            errors: Vec::new(),
            outputs_bytes: 0,
            variables_bytes: OnceLock::new(),
            loop_bytes: 0,
            fuel_used: 0,
            identity,
        }
    }

    pub fn workflow(&self) -> &Arc<Workflow> {
        &self.identity.workflow
    }

    /// How long the whole may take.
    pub fn timeout_ms(&self) -> Option<u64> {
        self.identity.timeout_ms.or(self.workflow().policies.timeout_ms)
    }

    /// The output of a step, or that of the fallback that stands in for it.
    pub fn output(&self, step: usize) -> Option<&Value> {
        let own = &self.steps[step];
        match own.outcome {
            Some(Outcome::Completed) => own.output.as_ref(),
            Some(Outcome::Failed) => {
                let fallback = self.workflow().steps[step].fallback?;
                self.output(fallback)
            }
            Some(Outcome::Skipped | Outcome::Cancelled) | None => None,
        }
    }

    /// Whether an event with this id came before.
    pub fn has_heard(&self, id: &str) -> bool {
        self.heard.iter().any(|heard| heard == id)
    }

    /// Remembers an id, for the last so many events.
    pub fn hear(&mut self, id: Option<String>) {
        if let Some(id) = id {
            if self.heard.len() >= limits::SIGNAL_IDS {
                self.heard.pop_front();
            }
            self.heard.push_back(id);
        }
    }

    /// It has had its turn; one that was paused or cancelled in the queue has not, and neither has one that is queued again.
    pub fn has_begun(&self) -> bool {
        let is_queued = self.status == Status::Queued || self.pause.as_ref().is_some_and(|one| one.in_queue);
        self.started_ms.is_some() && !is_queued
    }

    /// It was cancelled and what runs has a grace to end. A rollback and handlers have all the time they need.
    pub fn is_stopping(&self) -> bool {
        self.cancel.is_some() && self.undoing.is_none() && self.closing.is_none()
    }

    /// Nothing is under way, and only time, a person or another execution can bring it on.
    pub fn is_idle(&self) -> bool {
        // What is told to stop is not waited for without end.
        if self.is_stopping() && !self.work.is_empty() {
            return false;
        }
        self.work.values().all(|work| match work.phase {
            Phase::Child { .. }
            | Phase::Waiting { .. }
            | Phase::Asking { .. }
            | Phase::Resting { .. }
            | Phase::Retrying { .. }
            | Phase::Unknown => true,
            Phase::Ready | Phase::Beginning => self.pause.is_some(),
            Phase::Running => false,
        })
    }

    /// A start of the process must take it up: nothing else would bring it on.
    pub fn is_awake(&self) -> bool {
        // A child may not have been told to stop, or to undo what it did.
        let must_tell = |(task, work): (&Task, &Work)| match work.phase {
            Phase::Child { stopping, .. } => stopping || task.undo,
            Phase::Ready
            | Phase::Running
            | Phase::Retrying { .. }
            | Phase::Beginning
            | Phase::Waiting { .. }
            | Phase::Asking { .. }
            | Phase::Resting { .. }
            | Phase::Unknown => false,
        };
        !self.status.is_final() && (!self.has_begun() || !self.is_idle() || self.work.iter().any(must_tell))
    }

    /// What ran when the process died: how it ended is not known.
    pub fn interrupted(&self) -> impl Iterator<Item = Task> {
        self.work.iter().filter(|(_, work)| work.phase == Phase::Running).map(|(task, _)| *task)
    }

    /// Whether any piece of work of this step is under way.
    pub fn works_on(&self, step: usize) -> usize {
        self.work.keys().filter(|task| task.step == step && !task.undo).count()
    }
}
