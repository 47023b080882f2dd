//! The state of an execution: what folding its events gives. Nothing here is stored; everything here follows.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use orchestr8_contract::error::StoredFault;
use orchestr8_contract::id::CorrelationId;
use serde_json::{Map, Value};

use super::event::{Status, Task};
pub use super::undo::Undone;
use crate::agents::Usage;
use crate::definition::model::{Budget, Workflow};
use crate::limits;

/// Who it is, which never changes.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The name of the principal that started it.
    pub started_by: Arc<str>,
    pub execution: Arc<str>,
    pub correlation: CorrelationId,
    pub workflow: Arc<Workflow>,
    /// The definition's variables with what the submitter gave over them.
    pub variables: Map<String, Value>,
    /// Overrides the definition's own limit.
    pub timeout_ms: Option<u64>,
}

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
    /// What is still to be undone, the next one last. None: no rollback has begun.
    pub undoing: Option<Vec<Task>>,
    /// The execution that it belongs to rolls back and wants to hear what was undone.
    pub undo_asked: bool,
    /// When the undo that runs began.
    pub undo_started_ms: Option<i64>,
    pub budget: Budget,
    pub usage: Usage,
    /// Attempts so far, retries included.
    pub attempts: u64,
    pub errors: Vec<Problem>,
    /// The size of all outputs together.
    pub outputs_bytes: usize,
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
}

#[derive(Debug, Clone)]
pub struct Cancel {
    pub reason: String,
    pub asked_ms: i64,
    /// Without a rollback.
    pub force: bool,
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
    /// As a fallback: the step it stands in for.
    pub alias_for: Option<usize>,
    pub attempts: u32,
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

impl Step {
    /// How often this piece of work was done and undone.
    pub fn generation_of(&self, part: Option<u32>) -> u32 {
        self.generation + part.and_then(|part| self.part_generations.get(&part)).copied().unwrap_or(0)
    }
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
    /// The next item or round to begin.
    pub next: u32,
    /// The output of the last round.
    pub last: Value,
    /// The outputs of all rounds, if a rollback may need them.
    pub rounds: BTreeMap<u32, Value>,
    /// The time between two rounds is over.
    pub rested: bool,
}

/// One piece of work under way.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    pub phase: Phase,
    pub attempts: u32,
    /// What ended attempts and the waits after them have used of the step's time budget.
    pub spent_ms: u64,
    /// When the attempt that runs began.
    pub began_ms: i64,
    /// An attempt of it may have had its effect, although it failed: it timed out.
    pub may_have_happened: bool,
}

impl Work {
    pub fn new(phase: Phase, attempts: u32) -> Self {
        Self { phase, attempts, spent_ms: 0, began_ms: 0, may_have_happened: false }
    }

    /// Whether it waits for an event with this name.
    pub fn waits_for(&self, name: &str) -> bool {
        matches!(&self.phase, Phase::Waiting { event: Some(event), .. } if *event == name)
    }

    /// An attempt of it was made that may have happened, and another one is to come: the process died while it ran and its end was
    /// not heard of since, or it failed and the step is in backoff.
    pub fn is_in_doubt(&self) -> bool {
        self.attempts > 0 && matches!(self.phase, Phase::Ready | Phase::Unknown | Phase::Retrying { .. })
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Phase {
    /// It waits for a slot.
    Ready,
    Running,
    /// In backoff: its last attempt failed, and the next one is due then.
    Retrying {
        at_ms: i64,
    },
    /// Another execution does it; none yet.
    Beginning,
    Child {
        execution: Arc<str>,
        /// It was told to stop.
        stopping: bool,
    },
    Waiting {
        due_ms: Option<i64>,
        event: Option<String>,
    },
    Asking {
        due_ms: Option<i64>,
    },
    /// Between two rounds.
    Resting {
        due_ms: i64,
    },
    /// How its attempt ended is not known, and a person must say.
    Unknown,
}

impl Phase {
    /// Something is going on outside, which must end or be stopped before the execution can end.
    pub fn is_active(&self) -> bool {
        match self {
            Phase::Running | Phase::Child { .. } => true,
            Phase::Ready
            | Phase::Retrying { .. }
            | Phase::Beginning
            | Phase::Waiting { .. }
            | Phase::Asking { .. }
            | Phase::Resting { .. }
            | Phase::Unknown => false,
        }
    }

    /// Tells it to stop. False when that has been said before.
    pub fn stop(&mut self) -> bool {
        match self {
            Phase::Child { stopping, .. } => !std::mem::replace(stopping, true),
            Phase::Ready
            | Phase::Running
            | Phase::Retrying { .. }
            | Phase::Beginning
            | Phase::Waiting { .. }
            | Phase::Asking { .. }
            | Phase::Resting { .. }
            | Phase::Unknown => true,
        }
    }

    /// It has a timer.
    pub fn due_ms(&self) -> Option<i64> {
        match self {
            Phase::Waiting { due_ms, .. } | Phase::Asking { due_ms } => *due_ms,
            Phase::Resting { due_ms } | Phase::Retrying { at_ms: due_ms } => Some(*due_ms),
            Phase::Ready | Phase::Running | Phase::Beginning | Phase::Child { .. } | Phase::Unknown => None,
        }
    }
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
            undoing: None,
            undo_asked: false,
            undo_started_ms: None,
            budget: workflow.policies.budget.clone(),
            usage: Usage::default(),
            attempts: 0,
            errors: Vec::new(),
            outputs_bytes: 0,
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

    /// It has had its turn; one that was paused or cancelled in the queue has not.
    pub fn has_begun(&self) -> bool {
        self.started_ms.is_some()
    }

    /// It was cancelled and what runs has a grace to end. A rollback has all the time it needs.
    pub fn is_stopping(&self) -> bool {
        self.cancel.is_some() && self.undoing.is_none()
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
            Phase::Ready => self.pause.is_some(),
            Phase::Running | Phase::Beginning => false,
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
