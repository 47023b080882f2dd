//! The reference interpreter: `forEach` and `while`.

use serde_json::{Value, json};

use super::definition::{Join, OnItemError, Repeat};
use super::run::{End, Open, Run, Work};

impl Run {
    /// Brings a loop on. True if something changed.
    pub fn advance(&mut self, step: usize) -> bool {
        if !self.steps[step].begun || self.steps[step].end.is_some() {
            return false;
        }
        let may_begin = !self.is_stopping()
            && (!self.has_failed
                || self.closing.is_some()
                || self.definition.steps[step].join == Join::Always);
        let running = self.work.keys().filter(|(one, _)| *one == step).count();
        if self.steps[step].lost.is_some() {
            return running == 0 && self.end_lost_loop(step);
        }
        match self.definition.steps[step].repeat {
            Repeat::Once => false,
            Repeat::Each { items, concurrency, on_item_error } => {
                self.advance_each(step, running, may_begin, (items, concurrency, on_item_error))
            }
            Repeat::While { .. } if running > 0 => false,
            Repeat::While { rounds, until, most, delay } => {
                self.advance_while(step, may_begin, (rounds, until, most, delay));
                true
            }
        }
    }

    /// A loop that has lost a race begins nothing more. If all its items had completed, it has completed.
    fn end_lost_loop(&mut self, step: usize) -> bool {
        let own = &self.steps[step];
        match self.definition.steps[step].repeat {
            Repeat::Once => return false,
            Repeat::Each { items, .. } if own.results.len() == items as usize && !self.is_stopping() => {
                let results: Vec<Value> = own.results.values().cloned().collect();
                self.complete(step, json!({"results": results, "succeeded": items, "failed": []}));
            }
            Repeat::Each { .. } | Repeat::While { .. } => self.steps[step].end = Some(End::Stopped),
        }
        true
    }

    fn advance_each(
        &mut self,
        step: usize,
        mut running: usize,
        may_begin: bool,
        (items, concurrency, on_item_error): (u32, usize, OnItemError),
    ) -> bool {
        let mut changed = false;
        let is_broken = on_item_error == OnItemError::Fail && !self.steps[step].failed.is_empty();
        while may_begin && !is_broken && self.steps[step].next < items && running < concurrency {
            let part = self.steps[step].next;
            self.steps[step].next += 1;
            changed = true;
            if !self.steps[step].results.contains_key(&part) {
                self.begin_unit((step, Some(part)));
                running += 1;
            }
        }
        if running > 0 {
            return changed;
        }
        let own = &self.steps[step];
        // An item that still holds needs no turn.
        let has_more = (own.next..items).any(|part| !own.results.contains_key(&part));
        let failed = own.failed.len() as u32;
        let fails = match on_item_error {
            OnItemError::Fail => failed > 0,
            OnItemError::Continue => false,
            OnItemError::TolerateHalf => failed * 2 > items,
        };
        if self.is_stopping() || (!is_broken && (own.is_stopped || has_more)) {
            self.steps[step].end = Some(End::Stopped);
        } else if fails {
            self.fail_step(step);
        } else {
            let results: Vec<Value> =
                (0..items).map(|part| own.results.get(&part).cloned().unwrap_or_default()).collect();
            let failed: Vec<u32> = own.failed.iter().copied().collect();
            let output = json!({"results": results, "succeeded": own.results.len(), "failed": failed});
            self.complete(step, output);
        }
        true
    }

    fn advance_while(
        &mut self,
        step: usize,
        may_begin: bool,
        (rounds, until, most, delay): (u32, Option<i64>, u32, bool),
    ) {
        let is_stopping = self.is_stopping();
        let own = &mut self.steps[step];
        let last = own.last["n"].as_i64().unwrap_or(0);
        let goes_on = own.next < rounds && until.is_none_or(|until| last < until);
        if is_stopping {
            own.end = Some(End::Stopped);
        } else if !own.failed.is_empty() {
            self.fail_step(step);
        } else if !may_begin || own.is_stopped {
            own.end = Some(End::Stopped);
        } else if !goes_on {
            let output = json!({"iterations": own.next, "last": own.last});
            self.complete(step, output);
        } else if own.next >= most {
            self.fail_step(step);
        } else if delay && own.next > 0 && !own.rested {
            let next = (step, Some(own.next));
            self.work.insert(next, Work { open: Open::Rest, attempts: 0, maybe: false });
        } else {
            let part = own.next;
            own.rested = false;
            own.next += 1;
            self.begin_unit((step, Some(part)));
        }
    }
}
