//! The world around an execution, decided by a seed: it plays the same acts to the interpreter and to a system, and compares them.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Value, json};

use super::definition::{Definition, Kind};
use super::dice::{Dice, Range, definition};
use super::interpreter::Ended;
use super::run::{End, Open, Place, Run, Status, Unit};

/// How an attempt of a call ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum How {
    Output(i64),
    /// The agent's own no.
    Fails,
    /// It may be tried again.
    Unavailable,
    /// It may be tried again, and may have had its effect.
    TimesOut,
    /// It did its work, and its output is larger than the limit.
    TooLarge,
    /// It stops, as it was told to.
    Stops,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Resolution {
    Retry,
    Fail,
    Complete,
}

/// Something that happens. Keys are those of the calls.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// An attempt ends; `again`: another one follows.
    End {
        key: String,
        how: How,
        again: bool,
    },
    Due {
        key: String,
    },
    Decide {
        key: String,
        approved: bool,
    },
    Resolve {
        key: String,
        how: Resolution,
    },
    /// An event for the outermost execution, or for a child.
    Signal {
        path: String,
    },
    Cancel {
        force: bool,
    },
    GraceOver {
        path: String,
    },
    TimeOut,
    Pause,
    Resume,
    Crash,
    Retry,
    /// A new execution, with a path of its own.
    Fork {
        from: usize,
        path: String,
    },
}

/// An execution as it is seen.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    pub status: String,
    /// The word for each step, and its output.
    pub steps: Vec<(String, Option<Value>)>,
    /// What is not undone.
    pub left: Vec<String>,
}

/// What is compared with the interpreter.
pub trait System {
    fn start(&mut self, definition: &Definition);
    fn act(&mut self, act: &Act);
    /// What is open, by key. A system that needs time returns when it has what is expected, or gives up.
    fn open(&mut self, expected: &BTreeMap<String, Open>) -> BTreeMap<String, Open>;
    /// The execution with this path.
    fn view(&mut self, path: &str, expected: &str) -> Option<View>;
}

/// What a seed may do.
#[derive(Debug, Clone, Copy)]
pub struct Script {
    pub seed: u64,
    pub range: Range,
    /// Kills, on average one in so many acts.
    pub crash_in: usize,
    /// How often an execution that ended is taken up again or forked at most.
    pub revivals: usize,
}

impl Script {
    /// Plays it. The error tells the difference.
    pub fn play(self, system: &mut dyn System) -> Result<(), String> {
        let mut dice = Dice(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed);
        let definition = definition(&mut dice, self.range);
        let mut acts = Vec::new();
        let tell = |broken: String, acts: &[Act], definition: &Definition| {
            format!("{broken}\n  after {acts:?}\n  in {}", definition.to_json())
        };
        system.start(&definition);
        let mut play = Play {
            script: self,
            root: Run::new(Rc::new(definition.clone()), String::new()),
            dice,
            revivals: self.revivals,
        };
        play.root.settle();
        for _ in 0..3000 {
            play.compare(system).map_err(|broken| tell(broken, &acts, &definition))?;
            let act = match play.choose() {
                Ok(Some(act)) => act,
                Ok(None) => return Ok(()),
                Err(broken) => return Err(tell(broken, &acts, &definition)),
            };
            acts.push(act.clone());
            play.apply(&act);
            system.act(&act);
        }
        Err(tell("it does not end".to_owned(), &acts[..50], &definition))
    }
}

struct Play {
    script: Script,
    root: Run,
    dice: Dice,
    revivals: usize,
}

impl Play {
    fn compare(&self, system: &mut dyn System) -> Result<(), String> {
        let expected = self.root.open().into_iter().map(|(key, (_, open))| (key, open)).collect();
        let found = system.open(&expected);
        if found != expected {
            return Err(format!("open: {found:?}\n  instead of {expected:?}"));
        }
        self.compare_run(&self.root, system)
    }

    fn compare_run(&self, run: &Run, system: &mut dyn System) -> Result<(), String> {
        let status = run.status.as_str();
        let view =
            system.view(&run.path, status).ok_or_else(|| format!("there is no execution '{}'", run.path))?;
        if view.status != status {
            return Err(format!("'{}' is {} instead of {status}", run.path, view.status));
        }
        if run.status.is_final() {
            if view.left != run.left() {
                return Err(format!("'{}' leaves {:?} instead of {:?}", run.path, view.left, run.left()));
            }
            for (step, (word, output)) in view.steps.iter().enumerate() {
                let own = &run.steps[step];
                let is_same = match own.end {
                    Some(End::Completed) => word == "completed",
                    Some(End::Failed) => word == "failed",
                    Some(End::Skipped) => word == "skipped",
                    Some(End::Stopped) => word == "skipped" || word == "cancelled",
                    None => false,
                };
                if !is_same {
                    return Err(format!("'{}s{step}' is {word} instead of {:?}", run.path, own.end));
                }
                let expected = own.output.as_ref().filter(|_| own.end == Some(End::Completed));
                if output.as_ref() != expected {
                    return Err(format!("'{}s{step}' gives {output:?} instead of {expected:?}", run.path));
                }
            }
        }
        run.all_children().try_for_each(|(_, child)| self.compare_run(child, system))
    }

    /// What happens next. None: nothing more.
    fn choose(&mut self) -> Result<Option<Act>, String> {
        let open = self.root.open();
        if self.root.status.is_final() && open.is_empty() {
            return Ok(self.revive());
        }
        if !self.root.status.is_final()
            && let Some(act) = self.disturb()
        {
            return Ok(Some(act));
        }
        if self.root.status == Status::Paused && (open.is_empty() || self.dice.once_in(4)) {
            return Ok(Some(Act::Resume));
        }
        if let Some(path) = stopping(&self.root)
            && self.dice.once_in(6)
        {
            return Ok(Some(Act::GraceOver { path }));
        }
        if open.is_empty() {
            return Err("the model is stuck".to_owned());
        }
        let (key, (place, what)) = open.iter().nth(self.dice.below(open.len())).unwrap();
        Ok(Some(self.act_on(key.clone(), place, *what)))
    }

    fn revive(&mut self) -> Option<Act> {
        if self.revivals == 0 {
            return None;
        }
        self.revivals -= 1;
        match self.dice.below(3) {
            0 => {
                let from = self.dice.below(self.root.definition.ends[0]);
                Some(Act::Fork { from, path: format!("fork{}/", self.revivals) })
            }
            _ if self.root.status == Status::Completed => None,
            _ => Some(Act::Retry),
        }
    }

    fn disturb(&mut self) -> Option<Act> {
        if self.dice.once_in(self.script.crash_in) {
            return Some(Act::Crash);
        }
        match self.dice.below(120) {
            0 | 1 => Some(Act::Cancel { force: false }),
            2 => Some(Act::Cancel { force: true }),
            3 if self.script.range.timers => Some(Act::TimeOut),
            4..=7 => Some(Act::Pause),
            8..=10 => Some(Act::Signal { path: self.root.path.clone() }),
            _ => None,
        }
    }

    fn act_on(&mut self, key: String, place: &Place, what: Open) -> Act {
        let dice = &mut self.dice;
        let run = at(&mut self.root, &place.path);
        let step = &run.definition.steps[place.unit.0];
        match what {
            Open::Call => {
                let is_undo = run.undoing.is_some();
                let attempts = run
                    .undoing
                    .as_ref()
                    .map_or_else(|| run.work[&place.unit].attempts, |(_, work)| work.attempts);
                let how = match dice.below(16) {
                    0 | 1 => How::Fails,
                    2 | 3 => How::Unavailable,
                    4 | 5 => How::TimesOut,
                    6 if !is_undo && dice.once_in(4) => How::TooLarge,
                    _ => How::Output(dice.below(3) as i64),
                };
                // What was told to stop completes or stops; it is not tried again.
                let is_told = run.is_told_to_stop(place.unit) && !is_undo;
                let how = match how {
                    How::Output(_) => how,
                    _ if is_told => How::Stops,
                    _ => how,
                };
                let again = matches!(how, How::Unavailable | How::TimesOut) && attempts < step.attempts;
                Act::End { key, how, again }
            }
            Open::Approval => match &step.kind {
                Kind::Approval { on_timeout: Some(_) } if dice.once_in(4) => Act::Due { key },
                _ => Act::Decide { key, approved: dice.once_in(2) },
            },
            Open::Event => match &step.kind {
                Kind::Event { timeout: true } if dice.once_in(3) => Act::Due { key },
                _ => Act::Signal { path: run.path.clone() },
            },
            Open::Unknown => Act::Resolve {
                key,
                how: dice.one_of(&[Resolution::Retry, Resolution::Fail, Resolution::Complete]),
            },
            Open::Backoff | Open::Timer | Open::Rest | Open::Ready | Open::Child | Open::Beginning => {
                Act::Due { key }
            }
        }
    }

    /// Plays an act to the interpreter.
    fn apply(&mut self, act: &Act) {
        let place = |root: &Run, key: &str| root.open()[key].0.clone();
        match act {
            Act::End { key, how, again } => {
                let Place { path, unit } = place(&self.root, key);
                within(&mut self.root, &path, &mut |run| run.end_attempt(unit, *how, *again));
            }
            Act::Due { key } => {
                let Place { path, unit } = place(&self.root, key);
                within(&mut self.root, &path, &mut |run| run.due(unit));
            }
            Act::Decide { key, approved } => {
                let Place { path, unit } = place(&self.root, key);
                within(&mut self.root, &path, &mut |run| {
                    run.end(unit, Ended::Output(decision(*approved, "ann")))
                });
            }
            Act::Resolve { key, how } => {
                let Place { path, unit } = place(&self.root, key);
                within(&mut self.root, &path, &mut |run| run.resolve(unit, *how));
            }
            Act::Signal { path } => {
                let path = way(&self.root, path).unwrap();
                within(&mut self.root, &path, &mut |run| run.signal());
            }
            Act::Cancel { force } => self.root.cancel(*force),
            Act::GraceOver { path } => {
                let path = way(&self.root, path).unwrap();
                within(&mut self.root, &path, &mut |run| run.grace_over());
            }
            Act::TimeOut => self.root.time_out(),
            Act::Pause => self.root.pause(),
            Act::Resume => self.root.resume(),
            Act::Crash => self.root.crash(),
            Act::Retry => self.root.retry(),
            Act::Fork { from, path } => self.root = self.root.fork(*from, path.clone()),
        }
    }
}

pub fn decision(approved: bool, by: &str) -> Value {
    json!({"decision": if approved { "approved" } else { "rejected" }, "by": by})
}

fn at<'r>(run: &'r mut Run, path: &[Unit]) -> &'r mut Run {
    match path.split_first() {
        None => run,
        Some((unit, rest)) => at(run.child_at(*unit), rest),
    }
}

/// Does something to an execution and lets those that it belongs to follow.
pub fn within(run: &mut Run, path: &[Unit], act: &mut dyn FnMut(&mut Run)) {
    match path.split_first() {
        None => act(run),
        Some((unit, rest)) => within(run.child_at(*unit), rest, act),
    }
    run.settle();
}

/// The way to the execution with this path.
fn way(run: &Run, path: &str) -> Option<Vec<Unit>> {
    if run.path == path {
        return Some(Vec::new());
    }
    run.all_children().find_map(|(unit, child)| way(child, path).map(|rest| [&[unit][..], &rest].concat()))
}

/// An execution that is being cancelled and waits for what runs.
fn stopping(run: &Run) -> Option<String> {
    let inner = run.all_children().find_map(|(_, child)| stopping(child));
    let is_stopping = run.status == Status::Cancelling && run.closing.is_none();
    inner.or_else(|| is_stopping.then(|| run.path.clone()))
}
