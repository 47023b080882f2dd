//! The reference interpreter: races, by the section "Races" of the guide.

use std::ops::Range;

use super::definition::{Join, OnError};
use super::run::{End, Run, Unit};

impl Run {
    /// "The race is decided by the first dependency that completes."
    pub fn decide_races(&mut self, steps: Range<usize>) {
        for race in steps {
            let own = &self.steps[race];
            let is_open = !own.begun && own.end.is_none() && self.definition.steps[race].join == Join::Race;
            if is_open && self.has_winner(race) {
                self.lose(race);
            }
        }
    }

    fn lose(&mut self, race: usize) {
        let lost = self.losers(race);
        for step in (0..lost.len()).filter(|step| lost[*step]) {
            let own = &mut self.steps[step];
            own.lost = Some(race);
            if !own.begun {
                own.end = Some(End::Skipped);
            }
        }
        let units: Vec<Unit> = self.work.keys().copied().filter(|unit| lost[unit.0]).collect();
        units.into_iter().for_each(|unit| self.stop_unit(unit));
    }

    /// "The losers are the dependencies that have not ended, and the steps before them that lead to nothing but losers."
    fn losers(&self, race: usize) -> Vec<bool> {
        let steps = &self.definition.steps;
        let is_open = |step: usize| self.steps[step].end.is_none();
        let mut lost = vec![false; steps.len()];
        for dependency in &steps[race].dependencies {
            let mut step = *dependency;
            // What stands in for a failed step has not ended.
            while let (Some(End::Failed), OnError::Fallback(fallback)) =
                (self.steps[step].end, steps[step].on_error)
            {
                step = fallback;
            }
            lost[step] |= is_open(step);
        }
        loop {
            let leads_to = |step: usize, other: usize| {
                steps[other].dependencies.contains(&step) || steps[other].on_error == OnError::Fallback(step)
            };
            let loses = |step: usize| {
                let mut next = (0..steps.len()).filter(|other| leads_to(step, *other)).peekable();
                let is_before_one = (0..steps.len()).any(|other| leads_to(step, other) && lost[other]);
                is_before_one && next.all(|other| lost[other] || !is_open(other))
            };
            let more: Vec<usize> = (0..steps.len())
                .filter(|step| *step != race && !lost[*step] && is_open(*step) && loses(*step))
                .collect();
            if more.is_empty() {
                return lost;
            }
            more.into_iter().for_each(|step| lost[step] = true);
        }
    }
}
