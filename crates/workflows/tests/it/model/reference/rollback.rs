//! The reference interpreter: cancellation, rollback, retry and fork, by the rows "compensation", "keys" and "retry, fork".

use std::collections::BTreeSet;

use super::definition::{Definition, Kind, OnError, Repeat, Section};
use super::dice::ITEMS;
use super::run::{End, Open, Run, Status, StepRun, Unit, Work};

impl Run {
    /// "It runs on failure, and on cancel if `compensateOn` has it."
    pub fn conclude(&mut self) {
        if self.rollback.is_some() || !self.is_rollback_due() {
            return self.close();
        }
        self.rollback = Some(self.units());
        self.status = Status::Compensating;
        if self.is_forced {
            return self.leave_rest();
        }
        self.continue_rollback();
    }

    /// The status without a rollback.
    pub fn plain_status(&self) -> Status {
        let has_failed = self.has_failed || self.closing.as_ref().is_some_and(|closing| closing.has_failed);
        match (self.is_cancelled, has_failed) {
            (true, _) => Status::Cancelled,
            (false, true) => Status::Failed,
            (false, false) => Status::Completed,
        }
    }

    pub fn is_rollback_due(&self) -> bool {
        let is_wanted = self.is_asked
            || (self.has_failed && self.definition.on_failed)
            || (self.is_cancelled && self.definition.on_cancelled);
        is_wanted && !self.units().is_empty()
    }

    /// What a rollback has to undo, the next one last.
    fn units(&self) -> Vec<Unit> {
        let is_due = |unit: &&Unit| self.has_undo(**unit) && self.undone.get(*unit) != Some(&true);
        self.done.iter().filter(is_due).copied().collect()
    }

    /// A child is undone by its own rollback, unless it completed and its step has a `compensate`.
    fn undoes_by_call(&self, unit: Unit) -> bool {
        let own = &self.definition.steps[unit.0];
        let is_child = matches!(own.kind, Kind::Child(_));
        own.compensate && (!is_child || !self.unknown.contains(&unit))
    }

    pub fn has_undo(&self, unit: Unit) -> bool {
        if self.definition.is_closing_step(unit.0) {
            return false;
        }
        let inner = match &self.definition.steps[unit.0].kind {
            Kind::Child(inner) => !self.definition.steps[unit.0].is_detached && inner.is_undoable(),
            Kind::Agent
            | Kind::Worker
            | Kind::Timer
            | Kind::Event { .. }
            | Kind::Approval { .. }
            | Kind::Switch { .. } => false,
        };
        self.undoes_by_call(unit) || inner
    }

    /// "In reverse order of completion", one at a time.
    pub fn continue_rollback(&mut self) {
        loop {
            if let Some((unit, work)) = &self.undoing {
                let child = self.children.get(unit).filter(|_| work.open == Open::Child);
                match child {
                    Some(child) if child.status.is_final() => {
                        let (unit, is_undone) = (*unit, child.left().is_empty());
                        let has_undone = child.undone.values().any(|undone| *undone);
                        match is_undone && !has_undone {
                            // It had nothing to undo.
                            true => self.undo_finished(),
                            false => {
                                self.partly_undone.extend(has_undone.then_some(unit));
                                self.undo_ended(unit, is_undone);
                            }
                        }
                    }
                    Some(_) | None => return,
                }
            }
            let Some(unit) = self.rollback.as_ref().and_then(|left| left.last()).copied() else { break };
            let open = if self.undoes_by_call(unit) { Open::Call } else { Open::Child };
            self.undoing = Some((unit, Work { open, attempts: 1, maybe: false }));
            if open == Open::Child
                && let Some(child) = self.children.get_mut(&unit)
            {
                child.ask_undo();
            }
        }
        self.close();
    }

    pub fn undo_ended(&mut self, unit: Unit, is_undone: bool) {
        self.undone.insert(unit, is_undone);
        self.undo_finished();
    }

    fn undo_finished(&mut self) {
        self.undoing = None;
        if let Some(left) = &mut self.rollback {
            left.pop();
        }
    }

    /// Its parent rolls back: it undoes what it did, however it ended.
    fn ask_undo(&mut self) {
        self.is_asked = true;
        if !self.status.is_final() {
            return if self.rollback.is_none() {
                self.cancel(false)
            };
        }
        let units = self.units();
        // One that was rolled back has tried everything.
        if !units.is_empty() && self.status != Status::Compensated {
            self.rollback = Some(units);
            self.status = Status::Compensating;
            self.continue_rollback();
        }
    }

    /// "Cancel does not stop a rollback; `force` does and says what is left."
    pub fn cancel(&mut self, force: bool) {
        if self.status.is_final() {
            return;
        }
        if self.closing_section().is_some() {
            // "Cancel while handlers run: they go on."
            return if force {
                self.stop_closing_steps()
            };
        }
        if self.rollback.is_some() {
            if force {
                if let Some((unit, work)) = self.undoing.take()
                    && work.open == Open::Child
                    && let Some(child) = self.children.get_mut(&unit)
                {
                    child.cancel(true);
                }
                self.leave_rest();
            }
            return;
        }
        if !self.is_cancelled {
            self.is_cancelled = true;
            self.status = Status::Cancelling;
            self.stop(|_| false, &[]);
        }
        if force {
            self.is_forced = true;
            self.grace_over();
        }
        self.settle();
    }

    fn leave_rest(&mut self) {
        self.finish(Status::Cancelled);
        for unit in self.rollback.clone().unwrap_or_default() {
            self.undone.insert(unit, false);
        }
    }

    /// The time for clean-up is over: what still runs is not waited for.
    pub fn grace_over(&mut self) {
        if self.status != Status::Cancelling || self.closing.is_some() {
            return;
        }
        let units: Vec<Unit> = self.work.keys().copied().collect();
        for unit in units {
            self.abandon(unit);
        }
        self.settle();
    }

    /// The time limit of the whole is over.
    pub fn time_out(&mut self) {
        // "It is one for the body."
        if self.status.is_final() || self.rollback.is_some() || self.is_cancelled || self.closing.is_some() {
            return;
        }
        self.is_out_of_time = true;
        self.has_failed = true;
        self.stop(|_| false, &[]);
        self.settle();
    }

    /// Whether anything of a step was undone.
    fn has_undone(&self, step: usize) -> bool {
        self.undone.keys().any(|unit| unit.0 == step && self.is_undone(*unit))
    }

    /// Whether something of it could not be undone: its effect is there.
    fn holds_on(&self, step: usize) -> bool {
        self.undone.keys().any(|unit| unit.0 == step && !self.is_undone(*unit))
    }

    fn is_undone(&self, unit: Unit) -> bool {
        self.undone.get(&unit) == Some(&true) || self.partly_undone.contains(&unit)
    }

    /// "What was undone is not done": which steps run again, and which of them because something before them does.
    fn due_again(&self) -> (Vec<bool>, Vec<bool>) {
        let steps = &self.definition.steps;
        let was_undone = |step: usize| self.has_undone(step);
        let mut again: Vec<bool> = (0..steps.len())
            .map(|step| match self.steps[step].end {
                Some(End::Completed) => was_undone(step),
                Some(End::Failed) => match steps[step].on_error {
                    OnError::Continue => false,
                    OnError::Fail => true,
                    // What stands in for it still holds.
                    OnError::Fallback(fallback) => self.output(fallback).is_none() || was_undone(fallback),
                },
                Some(End::Skipped) => false,
                // "Otherwise the race holds."
                Some(End::Stopped) => self.steps[step].lost.is_none(),
                None => true,
            })
            .collect();
        let mut follows = vec![false; again.len()];
        loop {
            let is_led_to = |step: usize| {
                let leads = |one: usize| again[one] && steps[one].on_error == OnError::Fallback(step);
                let races_again = self.steps[step].lost.is_some_and(|race| follows[race]);
                let is_after = races_again
                    || steps[step].dependencies.iter().any(|one| again[*one])
                    || (0..steps.len()).any(leads);
                is_after && !self.holds_on(step)
            };
            let more: Vec<usize> =
                (0..again.len()).filter(|step| !follows[*step] && is_led_to(*step)).collect();
            if more.is_empty() {
                break;
            }
            more.into_iter().for_each(|step| (again[step], follows[step]) = (true, true));
        }
        // "The handlers run again at the next end. If only handlers failed, only they run."
        let body = self.definition.range(Section::Body);
        let has_completed = self.closing.as_ref().is_some_and(|closing| closing.outcome == Status::Completed);
        if !has_completed || again[body.clone()].contains(&true) {
            again[body.end..].fill(true);
            follows[body.end..].fill(true);
        }
        (again, follows)
    }

    /// `retry`: the same execution goes on from what failed or was undone.
    pub fn retry(&mut self) {
        let (again, follows) = self.due_again();
        for step in (0..again.len()).filter(|step| again[*step]) {
            self.reset(step, follows[step]);
        }
        self.undone.retain(|_, undone| *undone);
        self.undone.retain(|(step, _), _| !again[*step]);
        self.partly_undone.retain(|(step, _)| !again[*step]);
        self.has_failed = false;
        self.is_cancelled = false;
        self.is_out_of_time = false;
        self.is_forced = false;
        self.is_asked = false;
        self.closing = None;
        self.rollback = None;
        self.undoing = None;
        self.status = Status::Running;
        self.settle();
    }

    /// A step runs again. What was done and undone, or rests on what is done again, gets a new generation.
    fn reset(&mut self, step: usize, follows: bool) {
        let old = std::mem::take(&mut self.steps[step]);
        // A list that is too long is looked at again.
        let is_each =
            matches!(self.definition.steps[step].repeat, Repeat::Each { items, .. } if items <= ITEMS);
        let undone: Vec<Unit> =
            self.undone.keys().copied().filter(|unit| unit.0 == step && self.is_undone(*unit)).collect();
        // What may have happened and was not undone keeps its key, so that it does not happen twice.
        let did_something = self.done.iter().any(|unit| unit.0 == step && !self.unknown.contains(unit))
            || self.undone.keys().any(|unit| unit.0 == step)
            || old.end == Some(End::Completed);
        let mut kept = BTreeSet::new();
        let own = &mut self.steps[step];
        (own.generation, own.part_generations) = (old.generation, old.part_generations.clone());
        if is_each && !follows {
            // Items that still hold keep their results.
            own.begun = old.begun;
            own.results = old.results;
            for part in undone.iter().filter_map(|(_, part)| *part) {
                own.results.remove(&part);
                *own.part_generations.entry(part).or_default() += 1;
            }
            kept = own.results.keys().copied().collect();
        } else if (follows && did_something) || !undone.is_empty() {
            own.generation += 1 + own.part_generations.values().max().copied().unwrap_or(0);
            own.part_generations.clear();
        }
        let holds = |unit: &Unit| unit.0 != step || unit.1.is_some_and(|part| kept.contains(&part));
        self.done.retain(holds);
        self.unknown.retain(holds);
        self.children.retain(|unit, _| holds(unit));
    }

    /// `fork`: a new execution that takes over what came before a step and still holds.
    pub fn fork(&self, from: usize, path: String) -> Run {
        let mut fork = Run::new(self.definition.clone(), path);
        let Definition { steps, .. } = &*self.definition;
        // Steps after the one that is forked from, and those that rest on what was undone, unless their effect is still there.
        let spread = |mut marked: Vec<bool>, may_be: &dyn Fn(usize) -> bool| {
            let is_next = |marked: &[bool], step: usize| {
                !marked[step] && may_be(step) && steps[step].dependencies.iter().any(|one| marked[*one])
            };
            while let Some(more) = (0..steps.len()).find(|step| is_next(&marked, *step)) {
                marked[more] = true;
            }
            marked
        };
        let after = spread((0..steps.len()).map(|step| step == from).collect(), &|_| true);
        let again = (0..steps.len()).map(|step| step == from || self.has_undone(step)).collect();
        let mut again = spread(again, &|step| after[step] || !self.holds_on(step));
        // An approval decides one execution: what runs again behind it is decided again, also where a child asks.
        loop {
            let leads_to = |step: usize| {
                let behind = spread((0..steps.len()).map(|one| one == step).collect(), &|_| true);
                (0..steps.len()).any(|one| one != step && behind[one] && again[one])
            };
            let asks = |step: &usize| !again[*step] && steps[*step].kind.asks() && leads_to(*step);
            let Some(step) = (0..steps.len()).find(asks) else { break };
            again[step] = true;
            again = spread(again, &|step| after[step] || !self.holds_on(step));
        }
        for (step, own) in fork.steps.iter_mut().enumerate() {
            let old = &self.steps[step];
            let of_parts = old.part_generations.values().max().copied().unwrap_or(0);
            own.generation = old.generation + of_parts + u32::from(self.has_undone(step));
        }
        for step in self
            .definition
            .range(Section::Body)
            .filter(|step| !again[*step] && self.steps[*step].end == Some(End::Completed))
        {
            // Which branch was chosen is no result: it is chosen again.
            if matches!(steps[step].kind, Kind::Switch { .. }) {
                continue;
            }
            let old = &self.steps[step];
            fork.steps[step] =
                StepRun { begun: true, end: old.end, output: old.output.clone(), ..StepRun::default() };
        }
        fork.settle();
        fork
    }
}
