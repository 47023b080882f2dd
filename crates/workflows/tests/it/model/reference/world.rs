//! What the world does to an execution of the interpreter: attempts end, time passes, people decide, the process dies.

use serde_json::json;

use super::definition::{Kind, OnTimeout, OnUnknown};
use super::interpreter::Ended;
use super::run::{Open, Run, Status, Unit};
use super::script::{How, Resolution, decision};

impl Run {
    pub fn end_attempt(&mut self, unit: Unit, how: How, again: bool) {
        if let Some((unit, work)) = &mut self.undoing {
            if again {
                work.open = Open::Backoff;
                return;
            }
            let unit = *unit;
            return self.undo_ended(unit, matches!(how, How::Output(_)));
        }
        let maybe = matches!(how, How::TimesOut | How::TooLarge);
        match how {
            How::Output(n) => self.end(unit, Ended::Output(json!({"n": n}))),
            How::Stops => self.end(unit, Ended::Stopped),
            How::Unavailable | How::TimesOut if again => {
                if let Some(work) = self.work.get_mut(&unit) {
                    work.open = Open::Backoff;
                    work.maybe |= maybe;
                }
            }
            How::Fails | How::Unavailable | How::TimesOut | How::TooLarge => {
                self.end(unit, Ended::Failed { maybe })
            }
        }
    }

    pub fn due(&mut self, unit: Unit) {
        if let Some((_, work)) = &mut self.undoing {
            work.open = Open::Call;
            work.attempts += 1;
            return;
        }
        let Some(work) = self.work.get_mut(&unit) else { return };
        match work.open {
            Open::Backoff => {
                work.open = Open::Ready;
                work.attempts += 1;
            }
            Open::Timer => self.end(unit, Ended::Output(json!("timer"))),
            Open::Rest => {
                self.work.remove(&unit);
                self.steps[unit.0].rested = true;
            }
            Open::Approval => match self.definition.steps[unit.0].kind {
                Kind::Approval { on_timeout: Some(OnTimeout::Approve) } => {
                    self.end(unit, Ended::Output(decision(true, "timeout")));
                }
                Kind::Approval { on_timeout: Some(OnTimeout::Reject) } => {
                    self.end(unit, Ended::Output(decision(false, "timeout")));
                }
                _ => self.end(unit, Ended::Failed { maybe: false }),
            },
            Open::Event => self.end(unit, Ended::Failed { maybe: false }),
            Open::Call | Open::Unknown | Open::Ready | Open::Child | Open::Beginning => {}
        }
    }

    pub fn resolve(&mut self, unit: Unit, how: Resolution) {
        match how {
            Resolution::Retry => {
                if let Some(work) = self.work.get_mut(&unit) {
                    (work.open, work.maybe) = (Open::Ready, true);
                }
            }
            Resolution::Fail => self.end(unit, Ended::Failed { maybe: true }),
            Resolution::Complete => self.end(unit, Ended::Output(json!({"n": 1}))),
        }
    }

    /// The first step that waits takes it; otherwise it is kept.
    pub fn signal(&mut self) {
        if self.status.is_final() {
            return;
        }
        match self.work.iter().find(|(_, work)| work.open == Open::Event).map(|(unit, _)| *unit) {
            Some(unit) => self.end(unit, Ended::Output(json!("event"))),
            None => self.events += 1,
        }
    }

    pub fn pause(&mut self) {
        if self.status == Status::Running && self.closing.is_none() {
            self.status = Status::Paused;
        }
    }

    pub fn resume(&mut self) {
        if self.status == Status::Paused {
            self.status = Status::Running;
        }
        self.settle();
    }

    /// The process dies and comes back. Every execution is taken up by itself; what they tell each other comes after that.
    pub fn crash(&mut self) {
        self.lose_attempts();
        self.listen();
    }

    /// "A running attempt is unknown and follows `onUnknown`"; what was told to stop has stopped, and an undo is called again.
    fn lose_attempts(&mut self) {
        self.children.values_mut().chain(&mut self.detached).for_each(Run::lose_attempts);
        self.is_deaf = true;
        let running: Vec<Unit> =
            self.work.iter().filter(|(_, work)| work.open == Open::Call).map(|(unit, _)| *unit).collect();
        for unit in running {
            let on_unknown = self.definition.steps[unit.0].on_unknown;
            let is_told = self.is_told_to_stop(unit);
            let Some(work) = self.work.get_mut(&unit) else { continue };
            match on_unknown {
                _ if is_told => self.end(unit, Ended::Stopped),
                OnUnknown::Retry => (work.open, work.maybe) = (Open::Ready, true),
                OnUnknown::Fail => self.end(unit, Ended::Failed { maybe: true }),
                OnUnknown::Ask => (work.open, work.maybe) = (Open::Unknown, true),
            }
            self.settle();
        }
    }

    fn listen(&mut self) {
        self.children.values_mut().chain(&mut self.detached).for_each(Run::listen);
        self.is_deaf = false;
        self.settle();
    }
}
