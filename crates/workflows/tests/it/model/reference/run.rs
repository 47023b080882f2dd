//! One execution as the contract describes it: its steps, what is open, and what was done in which order.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::{Value, json};

use super::definition::{Definition, Repeat, Section, id};

/// A step, or one item or round of it.
pub type Unit = (usize, Option<u32>);

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Status {
    Running,
    Paused,
    Cancelling,
    Compensating,
    Completed,
    Failed,
    Cancelled,
    Compensated,
}

impl Status {
    pub fn is_final(self) -> bool {
        matches!(self, Status::Completed | Status::Failed | Status::Cancelled | Status::Compensated)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Status::Running => "running",
            Status::Paused => "paused",
            Status::Cancelling => "cancelling",
            Status::Compensating => "compensating",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
            Status::Compensated => "compensated",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum End {
    Completed,
    Failed,
    Skipped,
    /// It did not run, or did not run to its end, because of a failure or a cancellation.
    Stopped,
}

/// What is open, as the world around the execution sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Open {
    /// An attempt runs.
    Call,
    /// The next attempt is due later.
    Backoff,
    Timer,
    Event,
    Approval,
    /// The time between two rounds.
    Rest,
    /// An attempt was lost, and a person must say what became of it.
    Unknown,
    /// It has not begun: the execution is paused.
    Ready,
    /// Another execution does it.
    Child,
    /// Another execution will do it.
    Beginning,
}

#[derive(Debug, Clone)]
pub struct Work {
    pub open: Open,
    pub attempts: u32,
    /// An attempt that failed may have had its effect.
    pub maybe: bool,
}

#[derive(Debug, Clone, Default)]
pub struct StepRun {
    pub begun: bool,
    pub end: Option<End>,
    pub output: Option<Value>,
    /// As a fallback: a step that failed needs it.
    pub needed: bool,
    /// As a switch: the steps that go on.
    pub chosen: Vec<usize>,
    /// As a loop.
    pub next: u32,
    pub results: BTreeMap<u32, Value>,
    pub failed: BTreeSet<u32>,
    pub last: Value,
    pub rested: bool,
    /// As a loop: a part of it was told to stop and did.
    pub is_stopped: bool,
    /// The race that it lost.
    pub lost: Option<usize>,
    /// How often it was done and undone, for a step and for single items.
    pub generation: u32,
    pub part_generations: BTreeMap<u32, u32>,
}

impl StepRun {
    /// How often this piece of work was done and undone.
    pub fn generation_of(&self, part: Option<u32>) -> u32 {
        self.generation + part.and_then(|part| self.part_generations.get(&part)).copied().unwrap_or(0)
    }
}

/// Stands before the number of a detached child, where a unit names a child.
pub const DETACHED: usize = 1_000_000;

/// The handlers of an execution whose body has ended.
#[derive(Debug, Clone)]
pub struct Closing {
    pub outcome: Status,
    /// Whose steps run; none: all have ended.
    pub section: Option<Section>,
    pub has_failed: bool,
}

/// Where something is open: the children on the way, then the step.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    pub path: Vec<Unit>,
    pub unit: Unit,
}

#[derive(Debug, Clone)]
pub struct Run {
    pub definition: Rc<Definition>,
    /// The steps of its parents that it does the work of.
    pub path: String,
    pub status: Status,
    pub steps: Vec<StepRun>,
    pub work: BTreeMap<Unit, Work>,
    /// What was done or may have been done, in this order.
    pub done: Vec<Unit>,
    /// What of it may have been done or not.
    pub unknown: BTreeSet<Unit>,
    /// What a rollback made of it: true if it was undone.
    pub undone: BTreeMap<Unit, bool>,
    /// Children of which a part was undone: their results do not hold either.
    pub partly_undone: BTreeSet<Unit>,
    pub children: BTreeMap<Unit, Run>,
    /// Children that it started and does not wait for, in the order of their start.
    pub detached: Vec<Run>,
    pub closing: Option<Closing>,
    /// How many executions were begun for a step.
    pub instances: BTreeMap<Unit, u32>,
    /// Events that no step has taken yet.
    pub events: u32,
    pub has_failed: bool,
    pub is_cancelled: bool,
    pub is_out_of_time: bool,
    pub is_forced: bool,
    /// What is still to be undone, the next one last.
    pub rollback: Option<Vec<Unit>>,
    /// The undo that is open.
    pub undoing: Option<(Unit, Work)>,
    /// Its parent wants it undone.
    pub is_asked: bool,
    /// Ends of children are heard of later.
    pub is_deaf: bool,
}

impl Run {
    pub fn new(definition: Rc<Definition>, path: String) -> Self {
        let steps = vec![StepRun::default(); definition.steps.len()];
        Self {
            definition,
            path,
            status: Status::Running,
            steps,
            work: BTreeMap::new(),
            done: Vec::new(),
            unknown: BTreeSet::new(),
            undone: BTreeMap::new(),
            partly_undone: BTreeSet::new(),
            children: BTreeMap::new(),
            detached: Vec::new(),
            closing: None,
            instances: BTreeMap::new(),
            events: 0,
            has_failed: false,
            is_cancelled: false,
            is_out_of_time: false,
            is_forced: false,
            rollback: None,
            undoing: None,
            is_asked: false,
            is_deaf: false,
        }
    }

    /// The handlers that run.
    pub fn closing_section(&self) -> Option<Section> {
        self.closing.as_ref()?.section
    }

    pub fn child_at(&mut self, unit: Unit) -> &mut Run {
        match unit.0.checked_sub(DETACHED) {
            Some(number) => &mut self.detached[number],
            None => self.children.get_mut(&unit).unwrap(),
        }
    }

    /// All children, with the unit that leads to each.
    pub fn all_children(&self) -> impl Iterator<Item = (Unit, &Run)> {
        let detached =
            self.detached.iter().enumerate().map(|(number, child)| ((DETACHED + number, None), child));
        self.children.iter().map(|(unit, child)| (*unit, child)).chain(detached)
    }

    /// The key of a call: `step[:item][:gN][:compensate]`, with the way to its execution before it.
    pub fn key(&self, (step, part): Unit, is_undo: bool) -> String {
        let own = &self.steps[step];
        let definition = &self.definition.steps[step];
        let mut key = match definition.has_own_key {
            true => format!("{}own-{step}", self.path),
            false => format!("{}{}", self.path, id(step)),
        };
        if let Some(part) = part.filter(|_| definition.repeat != Repeat::Once) {
            let between = if definition.has_own_key { '-' } else { ':' };
            key.push_str(&format!("{between}{part}"));
        }
        let generation = own.generation_of(part);
        if generation > 0 {
            key.push_str(&format!(":g{}", generation + 1));
        }
        if is_undo {
            key.push_str(":compensate");
        }
        key
    }

    /// Everything that is open, here and in all children.
    pub fn open(&self) -> BTreeMap<String, (Place, Open)> {
        let mut all = BTreeMap::new();
        self.collect_open(&[], &mut all);
        all
    }

    fn collect_open(&self, path: &[Unit], all: &mut BTreeMap<String, (Place, Open)>) {
        let is_shown = |work: &Work| !matches!(work.open, Open::Ready | Open::Child | Open::Beginning);
        for (unit, work) in self.work.iter().filter(|(_, work)| is_shown(work)) {
            all.insert(self.key(*unit, false), (Place { path: path.to_vec(), unit: *unit }, work.open));
        }
        if let Some((unit, work)) = &self.undoing
            && is_shown(work)
        {
            all.insert(self.key(*unit, true), (Place { path: path.to_vec(), unit: *unit }, work.open));
        }
        for (unit, child) in &self.children {
            child.collect_open(&[path, &[*unit]].concat(), all);
        }
        for (number, child) in self.detached.iter().enumerate() {
            child.collect_open(&[path, &[(DETACHED + number, None)]].concat(), all);
        }
    }

    /// The output of a step, or that of the fallback that stands in for it.
    pub fn output(&self, step: usize) -> Option<&Value> {
        match (self.steps[step].end, self.definition.steps[step].on_error) {
            (Some(End::Completed), _) => self.steps[step].output.as_ref(),
            (Some(End::Failed), super::definition::OnError::Fallback(fallback)) => self.output(fallback),
            _ => None,
        }
    }

    pub fn outputs(&self) -> Value {
        let with_output =
            (0..self.steps.len()).filter_map(|step| Some((id(step), self.output(step)?.clone())));
        Value::Object(with_output.collect())
    }

    /// The number that a step gave, or 0.
    pub fn number(&self, step: usize) -> i64 {
        self.output(step).and_then(|output| output["n"].as_i64()).unwrap_or(0)
    }

    pub fn decision(&self, step: usize) -> Option<&str> {
        self.output(step)?["decision"].as_str()
    }

    /// What a rollback that was due has not undone.
    pub fn left(&self) -> Vec<String> {
        let Some(rest) = &self.rollback else { return Vec::new() };
        let is_left = |unit: &&Unit| rest.contains(*unit) || self.undone.get(*unit) == Some(&false);
        let mut left: Vec<String> = self
            .done
            .iter()
            .filter(is_left)
            .map(|(step, part)| json!([id(*step), part]).to_string())
            .collect();
        left.sort();
        left
    }
}
