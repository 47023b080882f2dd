//! The reference interpreter: handlers, by the section "At the end" of the guide.

use super::definition::Section;
use super::run::{Closing, End, Run, Status, Unit};

impl Run {
    /// The body and its rollback have ended: "onFailure, finally, the final state".
    pub fn close(&mut self) {
        let has_undone = self.rollback.is_some() && !self.undone.is_empty();
        let outcome = if has_undone { Status::Compensated } else { self.plain_status() };
        if self.closing.is_some() || self.is_forced || !self.definition.has_closing_steps() {
            return self.finish(outcome);
        }
        for own in &mut self.steps[self.definition.range(Section::Body)] {
            own.end.get_or_insert(End::Stopped);
        }
        self.closing = Some(Closing { outcome, section: None, has_failed: false });
        self.enter(Section::OnFailure);
        self.advance_closing_steps();
    }

    pub fn finish(&mut self, status: Status) {
        for step in 0..self.steps.len() {
            let never_runs = if self.definition.is_closing_step(step) { End::Skipped } else { End::Stopped };
            self.steps[step].end.get_or_insert(never_runs);
        }
        self.status = status;
    }

    fn enter(&mut self, section: Section) {
        if let Some(closing) = &mut self.closing {
            closing.section = Some(section);
        }
        // "The body failed: onFailure, then finally. Cancelled: finally runs."
        if section == Section::OnFailure && (self.is_cancelled || !self.has_failed) {
            for own in &mut self.steps[self.definition.range(section)] {
                own.end.get_or_insert(End::Skipped);
            }
        }
    }

    pub fn advance_closing_steps(&mut self) {
        while let Some(section) = self.closing_section() {
            let range = self.definition.range(section);
            self.run_steps(range.clone());
            if self.steps[range].iter().any(|step| step.end.is_none()) {
                return;
            }
            match section {
                Section::Body | Section::OnFailure => self.enter(Section::Finally),
                Section::Finally => {
                    if let Some(closing) = &mut self.closing {
                        closing.section = None;
                    }
                    // Its parent may have begun a rollback meanwhile.
                    self.conclude();
                }
            }
        }
    }

    /// "Cancelled with force: handlers that run are stopped."
    pub fn stop_closing_steps(&mut self) {
        let units: Vec<Unit> = self.work.keys().copied().collect();
        for unit in units {
            self.stop_unit(unit);
            self.abandon(unit);
            self.steps[unit.0].end.get_or_insert(End::Stopped);
        }
        if let Some(closing) = &mut self.closing {
            closing.section = None;
        }
        self.is_forced = true;
        self.finish(Status::Cancelled);
    }
}
