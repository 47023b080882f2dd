//! The reference interpreter: what begins, what is skipped and how it ends, by the table "What a definition means".

use std::rc::Rc;

use serde_json::{Value, json};

use super::definition::{Condition, Join, Kind, OnError, Repeat, Section, Subject};
use super::dice::ITEMS;
use super::run::{End, Open, Run, Status, Unit, Work};

/// How a piece of work ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    Output(Value),
    /// It failed; `maybe`: it may have had its effect all the same.
    Failed {
        maybe: bool,
    },
    /// It was told to stop and did.
    Stopped,
}

impl Run {
    /// It was told to stop: nothing begins any more, whatever its join says.
    pub fn is_stopping(&self) -> bool {
        (self.is_cancelled || self.is_out_of_time) && self.closing.is_none()
    }

    /// It was told to stop, or its step has lost a race.
    pub fn is_told_to_stop(&self, unit: Unit) -> bool {
        self.is_stopping() || self.steps[unit.0].lost.is_some()
    }

    /// Begins, skips and ends what is due.
    pub fn settle(&mut self) {
        self.collect_children();
        if self.status.is_final() {
            return;
        }
        if self.closing_section().is_some() {
            return self.advance_closing_steps();
        }
        if self.rollback.is_some() {
            return self.continue_rollback();
        }
        let body = self.definition.range(Section::Body);
        if self.status == Status::Paused {
            // Nothing begins, no rollback and no handlers either; an execution with nothing left to do ends.
            for step in body.clone() {
                if self.is_out_of_time {
                    self.advance(step);
                }
            }
            let has_ended = self.work.is_empty() && self.steps[body].iter().all(|step| step.end.is_some());
            return if has_ended && !self.is_rollback_due() && !self.definition.has_closing_steps() {
                self.conclude()
            };
        }
        self.run_steps(body.clone());
        if self.work.is_empty() && self.steps[body].iter().all(|step| step.end.is_some()) {
            self.conclude();
        }
    }

    /// Begins, skips and ends what is due of these steps.
    pub fn run_steps(&mut self, steps: std::ops::Range<usize>) {
        loop {
            let changed = self.look_at(steps.clone()) | self.collect_children();
            // What is due begins when everything that ended has been seen.
            if !changed && !self.start_ready() {
                break;
            }
        }
    }

    fn look_at(&mut self, steps: std::ops::Range<usize>) -> bool {
        self.decide_races(steps.clone());
        let mut changed = false;
        for step in steps {
            changed |= self.begin(step) | self.advance(step);
        }
        changed
    }

    /// Takes in the ends of children. True if there was one.
    fn collect_children(&mut self) -> bool {
        if self.is_deaf {
            return false;
        }
        let ended = |unit: &Unit| self.children.get(unit).is_some_and(|child| child.status.is_final());
        let units: Vec<Unit> = self
            .work
            .iter()
            .filter(|(unit, work)| work.open == Open::Child && ended(unit))
            .map(|(unit, _)| *unit)
            .collect();
        let has_ended = !units.is_empty();
        for unit in units {
            let child = &self.children[&unit];
            let end = match child.status {
                Status::Completed => Ended::Output(child.outputs()),
                _ if child.is_cancelled && self.is_told_to_stop(unit) => Ended::Stopped,
                _ => Ended::Failed { maybe: true },
            };
            self.end(unit, end);
        }
        has_ended
    }

    /// Starts the calls and children that are due.
    fn start_ready(&mut self) -> bool {
        let mut changed = false;
        for work in self.work.values_mut().filter(|work| work.open == Open::Ready) {
            // An attempt that was lost keeps its number.
            (work.open, work.attempts) = (Open::Call, work.attempts.max(1));
            changed = true;
        }
        let is_due = |work: &Work| work.open == Open::Beginning && !self.is_deaf;
        let due: Vec<Unit> =
            self.work.iter().filter(|(_, work)| is_due(work)).map(|(unit, _)| *unit).collect();
        changed |= !due.is_empty();
        for unit in due {
            // One that was begun before may have decided a race.
            if self.work.get(&unit).is_some_and(|work| work.open == Open::Beginning) {
                self.begin_child(unit);
            }
        }
        changed
    }

    fn begin_child(&mut self, unit: Unit) {
        let Kind::Child(inner) = &self.definition.steps[unit.0].kind else { return };
        let instance = self.instances.entry(unit).or_default();
        *instance += 1;
        let part = unit.1.map_or_else(String::new, |part| format!(":{part}"));
        let path = format!("{}s{}{part}#{instance}/", self.path, unit.0);
        let mut child = Run::new(Rc::clone(inner), path);
        // What a child does again after a rollback is done under new keys.
        let generation = self.steps[unit.0].generation_of(unit.1);
        child.steps.iter_mut().for_each(|step| step.generation = generation);
        child.settle();
        if self.definition.steps[unit.0].is_detached {
            let output = json!({"executionId": child.path});
            self.detached.push(child);
            self.work.insert(unit, Work { open: Open::Child, attempts: 1, maybe: false });
            self.end(unit, Ended::Output(output));
            // The step is done at once, and what waits for it begins.
            let section = self.closing_section().unwrap_or(Section::Body);
            return while self.look_at(self.definition.range(section)) {};
        }
        self.children.insert(unit, child);
        self.work.insert(unit, Work { open: Open::Child, attempts: 1, maybe: false });
    }

    /// The end of a step as its dependents see it: that of its fallback, if one stands in.
    fn end_seen(&self, step: usize) -> Option<End> {
        match (self.steps[step].end, self.definition.steps[step].on_error) {
            (Some(End::Failed), OnError::Fallback(fallback)) if self.steps[fallback].needed => {
                self.end_seen(fallback)
            }
            (Some(End::Stopped), _) if self.steps[step].lost.is_some() => Some(End::Skipped),
            (end, _) => end,
        }
    }

    fn is_tolerated(&self, step: usize) -> bool {
        match self.definition.steps[step].on_error {
            OnError::Fallback(fallback) => self.is_tolerated(fallback),
            OnError::Continue => true,
            OnError::Fail => false,
        }
    }

    /// "May a step run?" None: that is not decided yet.
    fn may_run(&self, step: usize) -> Option<bool> {
        let own = &self.definition.steps[step];
        let (mut completed, mut failed, mut tolerated, mut rejected, mut skipped, mut open) =
            (0, 0, 0, 0, 0, 0);
        for one in &own.dependencies {
            let is_approval = matches!(self.definition.steps[*one].kind, Kind::Approval { .. });
            let is_rejection = is_approval && self.decision(*one) == Some("rejected");
            let counter = match self.end_seen(*one) {
                Some(End::Completed) if is_rejection && !self.reads_decision(step, *one) => &mut rejected,
                Some(End::Completed) => &mut completed,
                Some(End::Failed) if self.is_tolerated(*one) => &mut tolerated,
                Some(End::Failed | End::Stopped) => &mut failed,
                Some(End::Skipped) => &mut skipped,
                None => &mut open,
            };
            *counter += 1;
        }
        let all = own.dependencies.len();
        Some(match own.join {
            _ if all == 0 => true,
            Join::Any | Join::Race if completed > 0 => true,
            _ if open > 0 => return None,
            Join::Always => true,
            _ if failed > 0 => false,
            Join::All => completed == all,
            Join::Any | Join::Race => false,
            Join::Default => rejected == 0 && skipped < all,
        })
    }

    /// A dependency has completed, as a race sees it.
    pub fn has_winner(&self, race: usize) -> bool {
        self.definition.steps[race].dependencies.iter().any(|one| {
            let is_approval = matches!(self.definition.steps[*one].kind, Kind::Approval { .. });
            let is_rejection = is_approval && self.decision(*one) == Some("rejected");
            self.end_seen(*one) == Some(End::Completed) && (!is_rejection || self.reads_decision(race, *one))
        })
    }

    /// The step itself, or a switch that lists it, reads the decision of the approval.
    fn reads_decision(&self, step: usize, approval: usize) -> bool {
        let lists = |cases: &[(i64, Vec<usize>)], default: &[usize]| {
            default.contains(&step) || cases.iter().any(|(_, steps)| steps.contains(&step))
        };
        self.definition.steps[step].reads_decision_of(approval)
            || self.definition.steps.iter().any(|one| {
                matches!(&one.kind, Kind::Switch { on: Subject::Decision(read), cases, default }
                    if *read == approval && lists(cases, default))
            })
    }

    /// "What is not chosen is skipped."
    fn is_unchosen(&self, step: usize) -> bool {
        self.definition.steps.iter().zip(&self.steps).any(|(one, run)| {
            let Kind::Switch { cases, default, .. } = &one.kind else { return false };
            let is_listed = default.contains(&step) || cases.iter().any(|(_, steps)| steps.contains(&step));
            is_listed && !(run.end == Some(End::Completed) && run.chosen.contains(&step))
        })
    }

    fn holds(&self, step: usize) -> bool {
        let own = &self.definition.steps[step];
        let Some(condition) = own.condition else { return true };
        let holds = match condition {
            Condition::Constant(holds) => holds,
            Condition::Above(one, least) => self.number(one) > least,
            Condition::Approved(one) => self.decision(one) == Some("approved"),
            Condition::Rejected(one) => self.decision(one) == Some("rejected"),
            Condition::Status(status) => {
                self.closing.as_ref().is_some_and(|closing| closing.outcome.as_str() == status)
            }
            Condition::HasFailure => self.is_cancelled || self.has_failed,
            Condition::HasError(one) => self.steps[one].end == Some(End::Failed),
        };
        holds != own.is_unless
    }

    /// Begins or skips a step, if that is due.
    fn begin(&mut self, step: usize) -> bool {
        if self.steps[step].begun || self.steps[step].end.is_some() {
            return false;
        }
        let own = self.definition.steps[step].clone();
        let Some(mut runs) = self.may_run(step) else { return false };
        if runs && own.is_fallback && !self.steps[step].needed {
            let users = self.definition.steps.iter().zip(&self.steps);
            let mut users = users.filter(|(one, _)| one.on_error == OnError::Fallback(step));
            if users.any(|(_, run)| run.end.is_none()) {
                return false;
            }
            runs = false;
        }
        let has_needs = own.needs.is_none_or(|one| self.output(one).is_some());
        if !runs || self.is_unchosen(step) || !self.holds(step) || !has_needs {
            self.steps[step].end = Some(End::Skipped);
            if self.steps[step].needed {
                self.fail_execution();
            }
            return true;
        }
        self.steps[step].begun = true;
        match own.repeat {
            Repeat::Once => self.begin_unit((step, None)),
            // "Every limit refuses one beyond it, before work is done."
            Repeat::Each { items, .. } if items > ITEMS => self.fail_step(step),
            Repeat::Each { .. } | Repeat::While { .. } => {}
        }
        true
    }

    pub fn begin_unit(&mut self, unit: Unit) {
        let open = match &self.definition.steps[unit.0].kind {
            Kind::Agent | Kind::Worker => Open::Ready,
            Kind::Child(_) => Open::Beginning,
            Kind::Timer => Open::Timer,
            Kind::Event { .. } if self.events > 0 => {
                self.events -= 1;
                return self.complete(unit.0, json!("event"));
            }
            Kind::Event { .. } => Open::Event,
            Kind::Approval { .. } => Open::Approval,
            Kind::Switch { .. } => return self.choose(unit.0),
        };
        self.work.insert(unit, Work { open, attempts: 0, maybe: false });
    }

    fn choose(&mut self, step: usize) {
        let Kind::Switch { on, cases, default } = &self.definition.steps[step].kind else { return };
        let value = match on {
            Subject::Number(one) => Some(self.number(*one)),
            Subject::Decision(one) => match self.decision(*one) {
                Some("approved") => Some(1),
                Some("rejected") => Some(0),
                _ => None,
            },
        };
        let case = cases.iter().find(|(case, _)| Some(*case) == value);
        self.steps[step].chosen = case.map_or(default, |(_, steps)| steps).clone();
        self.complete(step, Value::Null);
    }

    pub fn complete(&mut self, step: usize, output: Value) {
        self.steps[step].output = Some(output);
        self.steps[step].end = Some(End::Completed);
        // "A loser that completes before it stops is completed and keeps its result."
        self.steps[step].lost = None;
    }

    /// A piece of work ends.
    pub fn end(&mut self, unit: Unit, ended: Ended) {
        let Some(work) = self.work.remove(&unit) else { return };
        let (step, part) = unit;
        let is_unknown = match ended {
            Ended::Output(_) => false,
            Ended::Failed { maybe } => maybe || work.maybe,
            Ended::Stopped => true,
        };
        if is_unknown {
            self.unknown.insert(unit);
        }
        if is_unknown || matches!(ended, Ended::Output(_)) {
            self.done.push(unit);
        }
        let Some(part) = part else {
            return match ended {
                Ended::Output(output) => self.complete(step, output),
                Ended::Failed { .. } => self.fail_step(step),
                Ended::Stopped => self.steps[step].end = Some(End::Stopped),
            };
        };
        let own = &mut self.steps[step];
        match ended {
            Ended::Output(output) => {
                own.last = output.clone();
                own.results.insert(part, output);
            }
            Ended::Failed { .. } => {
                own.failed.insert(part);
            }
            Ended::Stopped => own.is_stopped = true,
        }
    }

    pub fn fail_step(&mut self, step: usize) {
        if self.steps[step].lost.is_some() {
            // "A loser that fails is no error of the execution, and its fallback does not run."
            self.steps[step].end = Some(End::Stopped);
            return;
        }
        self.steps[step].end = Some(End::Failed);
        match self.definition.steps[step].on_error {
            OnError::Continue => {}
            OnError::Fallback(fallback)
                if !matches!(self.steps[fallback].end, Some(End::Skipped | End::Stopped)) =>
            {
                self.steps[fallback].needed = true;
            }
            OnError::Fail | OnError::Fallback(_) => self.fail_execution(),
        }
    }
}
