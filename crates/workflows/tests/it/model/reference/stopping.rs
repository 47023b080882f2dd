//! The reference interpreter: what is stopped when a step has failed, and when the execution was told to stop.

use super::definition::{Join, Repeat, Section};
use super::run::{End, Open, Run, Unit, Work};

impl Run {
    /// "Nothing new begins, and what runs ends", but for steps with `join: "always"`.
    pub fn fail_execution(&mut self) {
        if let Some(closing) = &mut self.closing {
            closing.has_failed = true;
            return;
        }
        if self.is_stopping() || self.has_failed {
            return;
        }
        self.has_failed = true;
        let goes_on: Vec<bool> = self.definition.steps.iter().map(|step| step.join == Join::Always).collect();
        // What runs ends; a step between two attempts runs.
        let runs = |work: &Work| {
            let is_tried = work.open == Open::Ready && work.attempts > 0;
            is_tried || matches!(work.open, Open::Unknown | Open::Backoff)
        };
        let tried: Vec<Unit> =
            self.work.iter().filter(|(_, work)| runs(work)).map(|(unit, _)| *unit).collect();
        self.stop(|step| goes_on[step], &tried);
    }

    /// Stops what has not begun and what only waits; what runs is told to stop if it is a child.
    pub fn stop(&mut self, goes_on: impl Fn(usize) -> bool, tried: &[Unit]) {
        let body = self.definition.range(Section::Body);
        for (step, own) in self.steps[body].iter_mut().enumerate() {
            if !own.begun && own.end.is_none() && !goes_on(step) {
                own.end = Some(End::Stopped);
            }
        }
        let units: Vec<Unit> = self.work.keys().copied().collect();
        for unit in units.into_iter().filter(|unit| !goes_on(unit.0) && !tried.contains(unit)) {
            self.stop_unit(unit);
        }
    }

    /// Stops what only waits; what runs is told to stop.
    pub fn stop_unit(&mut self, unit: Unit) {
        match self.work[&unit].open {
            Open::Call => {}
            Open::Child => {
                if let Some(child) = self.children.get_mut(&unit) {
                    child.cancel(false);
                }
            }
            Open::Timer
            | Open::Event
            | Open::Approval
            | Open::Rest
            | Open::Backoff
            | Open::Ready
            | Open::Unknown
            | Open::Beginning => self.abandon(unit),
        }
    }

    /// It is not waited for any more. What may have happened is noted.
    pub fn abandon(&mut self, unit: Unit) {
        let Some(work) = self.work.remove(&unit) else { return };
        let may_have_happened = match work.open {
            Open::Call | Open::Child | Open::Unknown => true,
            Open::Ready | Open::Backoff => work.maybe,
            Open::Timer | Open::Event | Open::Approval | Open::Rest | Open::Beginning => false,
        };
        if may_have_happened {
            self.unknown.insert(unit);
            self.done.push(unit);
        }
        match self.definition.steps[unit.0].repeat {
            Repeat::Once => self.steps[unit.0].end = Some(End::Stopped),
            Repeat::Each { .. } | Repeat::While { .. } => self.steps[unit.0].is_stopped = true,
        }
    }
}
