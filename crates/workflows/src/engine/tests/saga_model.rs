//! A reference interpreter of compensation, written from the contract's table alone, beside the engine on random definitions.
//!
//! The model keeps a list of what was done, in the order in which it was done, and reads it backwards. Steps, items, rounds and
//! children end as a script of the seed says; both sides end the same piece of work at the same turn.

mod engine_run;
mod script;

use std::collections::BTreeSet;

use orchestr8_testing::every_seed;

use self::engine_run::{Engine, definition};
use self::script::{How, Loop, Script, Step, Unit};
use super::super::event::Status;
use super::whole;

#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Pending,
    Begun,
    Completed,
    Tolerated,
}

/// What the model says of a run.
#[derive(Debug, PartialEq)]
struct Verdict {
    status: Status,
    /// The undo calls, in order.
    undo: Vec<String>,
    /// What is not undone although a rollback was due.
    left: Vec<Unit>,
}

struct Model<'m> {
    script: Script,
    steps: &'m [Step],
    ends: Vec<End>,
    /// Loops: what is begun next, and whether a part has failed.
    loops: Vec<(u32, bool)>,
    running: BTreeSet<Unit>,
    /// What was done or may have been done, in this order, with whether it completed.
    done: Vec<(Unit, bool)>,
    has_failed: bool,
    is_cancelled: bool,
}

impl Model<'_> {
    fn fail(&mut self, step: usize) {
        match self.steps[step].tolerated {
            true => self.ends[step] = End::Tolerated,
            false => self.has_failed |= !self.is_cancelled,
        }
    }

    /// Begins what may begin, until nothing changes.
    fn begin(&mut self) {
        loop {
            let mut changed = false;
            for step in 0..self.steps.len() {
                let own = &self.steps[step];
                let is_led_to = own
                    .dependencies
                    .iter()
                    .all(|one| matches!(self.ends[*one], End::Completed | End::Tolerated));
                if self.has_failed || !is_led_to {
                    continue;
                }
                if self.ends[step] == End::Pending {
                    (self.ends[step], changed) = (End::Begun, true);
                    if own.repeats == Loop::No {
                        self.running.insert((step, None));
                    }
                }
                if self.ends[step] == End::Begun && own.repeats != Loop::No {
                    changed |= self.go_round(step);
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// Begins items or a round, or ends the loop. True when it ended.
    fn go_round(&mut self, step: usize) -> bool {
        let (most, at_once) = match self.steps[step].repeats {
            Loop::Each(items, at_once) => (items, at_once),
            Loop::While(rounds) => (rounds, 1),
            Loop::No => return false,
        };
        let count = |running: &BTreeSet<Unit>| running.iter().filter(|(one, _)| *one == step).count();
        while !self.loops[step].1 && self.loops[step].0 < most && count(&self.running) < at_once {
            self.running.insert((step, Some(self.loops[step].0)));
            self.loops[step].0 += 1;
        }
        if count(&self.running) > 0 {
            return false;
        }
        match self.loops[step].1 {
            true => self.fail(step),
            false => self.ends[step] = End::Completed,
        }
        true
    }

    fn end(&mut self, unit: Unit, how: How) {
        self.running.remove(&unit);
        let (step, part) = unit;
        if how == How::Completes {
            self.done.push((unit, true));
        } else if how == How::Unknown || self.steps[step].child.is_some() {
            self.done.push((unit, false));
        }
        match (how, part) {
            (How::Completes, None) => self.ends[step] = End::Completed,
            (How::Completes, Some(_)) => {}
            (How::Fails | How::Unknown, None) => self.fail(step),
            (How::Fails | How::Unknown, Some(_)) => self.loops[step].1 = true,
        }
    }

    /// "Completed steps, items of loops and children, in reverse order of completion; a step with an unknown outcome too."
    fn undo_call(&self, ((step, part), completed): (Unit, bool)) -> Option<String> {
        let own = &self.steps[step];
        let name = part.map_or_else(|| format!("s{step}"), |part| format!("s{step}:{part}"));
        match own.child {
            None if own.has_undo => Some(format!("exec-1:{name}:compensate")),
            Some(_) if own.has_undo && completed => Some(format!("exec-1:{name}:compensate")),
            Some(true) => Some(format!("child {name}")),
            Some(false) | None => None,
        }
    }

    fn run(mut self) -> Verdict {
        for turn in 0.. {
            if !self.is_cancelled {
                self.begin();
            }
            if self.running.is_empty() {
                break;
            }
            if self.script.cancel() == Some(turn) {
                self.is_cancelled = true;
                if self.script.cancels_by_force() || self.script.grace_ends() {
                    for unit in std::mem::take(&mut self.running) {
                        self.done.push((unit, false));
                    }
                    break;
                }
            }
            let place = self.script.pick(turn, self.running.len());
            let unit = *self.running.iter().nth(place).unwrap();
            let is_child = self.steps[unit.0].child.is_some();
            let is_told = self.is_cancelled || (self.has_failed && is_child);
            let how = match is_told {
                true if self.script.stops(unit) => How::Unknown,
                true => How::Completes,
                false => self.script.how(unit, is_child),
            };
            self.end(unit, how);
        }
        self.conclude()
    }

    /// "It runs on failure, and on cancel if `compensateOn` has it. Cancel does not stop it; `force` does and says what is left."
    fn conclude(&self) -> Verdict {
        let is_cancelled = self.is_cancelled;
        let on = self.script.on();
        let plain = match (is_cancelled, self.has_failed) {
            (true, _) => Status::Cancelled,
            (false, true) => Status::Failed,
            (false, false) => Status::Completed,
        };
        let is_due =
            (self.has_failed && on.contains(&"failed")) || (is_cancelled && on.contains(&"cancelled"));
        let calls: Vec<(Unit, String)> =
            self.done.iter().rev().filter_map(|one| Some((one.0, self.undo_call(*one)?))).collect();
        if !is_due || calls.is_empty() {
            return Verdict { status: plain, undo: Vec::new(), left: Vec::new() };
        }
        let all = calls.iter().map(|(unit, _)| *unit);
        if is_cancelled && self.script.cancels_by_force() {
            return Verdict { status: Status::Cancelled, undo: Vec::new(), left: all.collect() };
        }
        let stop = self
            .script
            .stop_rollback()
            .and_then(|at| usize::try_from(at).ok())
            .filter(|at| *at < calls.len());
        let is_left = |(place, unit): (usize, Unit)| {
            let stopped = stop.is_some_and(|stop| place >= stop);
            (stopped || !self.script.is_undone(unit)).then_some(unit)
        };
        let left = all.enumerate().filter_map(is_left).collect();
        let begun = stop.map_or(calls.len(), |stop| stop + 1);
        let status = if stop.is_some() { Status::Cancelled } else { Status::Compensated };
        Verdict { status, undo: calls.into_iter().map(|(_, call)| call).take(begun).collect(), left }
    }
}

#[test]
fn wf_saga_the_engine_undoes_what_the_table_says_on_random_definitions() {
    every_seed(10_000, |seed| {
        let script = Script(seed);
        let steps = script.steps();
        let source = definition(script, &steps);
        let (undo, forward) = (Vec::new(), Vec::new());
        let mut engine =
            Engine { script, steps: &steps, state: whole(source.clone()), at_ms: 0, forward, undo };
        engine.run().map_err(|broken| format!("{broken} in {source}"))?;
        let count = steps.len();
        let model = Model {
            script,
            steps: &steps,
            ends: vec![End::Pending; count],
            loops: vec![(0, false); count],
            running: BTreeSet::new(),
            done: Vec::new(),
            has_failed: false,
            is_cancelled: false,
        };
        let (wanted, found) = (model.run(), engine.verdict());
        if found != wanted {
            return Err(format!("{found:?} instead of {wanted:?} in {source}"));
        }
        if matches!(wanted.status, Status::Completed) {
            return Ok(());
        }
        let name =
            |(step, part): &Unit| part.map_or_else(|| format!("s{step}"), |part| format!("s{step}:{part}"));
        let left: Vec<String> =
            wanted.left.iter().map(|unit| format!("exec-1:{}:compensate", name(unit))).collect();
        let undone = wanted.undo.iter().filter(|call| call.starts_with("exec-1") && !left.contains(call));
        let undone: Vec<String> =
            undone.map(|call| call.trim_end_matches(":compensate").to_owned()).collect();
        engine.retry(&undone).map_err(|broken| format!("{broken} in {source}"))
    });
}
