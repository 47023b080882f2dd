//! A reference interpreter of compensation, written from the contract's table alone, beside the engine on random definitions.
//!
//! The model keeps a list of what was done, in the order in which it was done, and reads it backwards. Steps, items, rounds and
//! children end as a script of the seed says; both sides end the same piece of work at the same turn.

use std::collections::BTreeSet;

use orchestr8_contract::Code;
use orchestr8_testing::every_seed;
use serde_json::{Value, json};

use super::super::event::{Event, Status, Task};
use super::super::scope::default_key;
use super::super::state::{Outcome, Phase, State};
use super::random::{failed, succeeded};
use super::{begun, next, whole};

type Unit = (usize, Option<u32>);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Loop {
    No,
    /// Items, and how many run at once.
    Each(u32, usize),
    While(u32),
}

#[derive(Debug)]
struct Step {
    /// A child, and whether it has something to undo.
    child: Option<bool>,
    repeats: Loop,
    dependencies: Vec<usize>,
    has_undo: bool,
    tolerated: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    Completes,
    Fails,
    /// It may have happened.
    Unknown,
}

/// What the seed decides, the same for whoever asks.
#[derive(Debug, Clone, Copy)]
struct Script(u64);

impl Script {
    /// A number below `count` for a question (SplitMix64).
    fn lot(self, question: &str, (step, part): Unit, count: u64) -> u64 {
        let bytes = question.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let place = step as u64 * 1009 + part.map_or(0, |part| u64::from(part) + 1);
        let state = self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ bytes.wrapping_mul(0xd6e8_feb8_6659_fd93) ^ place;
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % count
    }

    fn how(self, unit: Unit, is_child: bool) -> How {
        match self.lot("how", unit, 12) {
            0 => How::Fails,
            1 | 2 if !is_child => How::Unknown,
            _ => How::Completes,
        }
    }

    /// How it ends when it is told to stop.
    fn stops(self, unit: Unit) -> bool {
        self.lot("stops", unit, 2) == 0
    }

    fn is_undone(self, unit: Unit) -> bool {
        self.lot("undo", unit, 5) > 0
    }

    fn turn_of(self, question: &str, among: u64) -> u64 {
        self.lot(question, (0, None), among)
    }

    /// The turn in which it is cancelled, if it is.
    fn cancel(self) -> Option<u64> {
        (self.turn_of("cancels", 3) == 0).then(|| self.turn_of("cancel", 6))
    }

    fn cancels_by_force(self) -> bool {
        self.turn_of("force", 4) == 0
    }

    /// Whether the grace ends before what runs does.
    fn grace_ends(self) -> bool {
        self.turn_of("grace", 3) == 0
    }

    /// The undo at which the rollback is stopped by force.
    fn stop_rollback(self) -> Option<u64> {
        (self.turn_of("stops rollback", 8) == 0).then(|| self.turn_of("at", 4))
    }

    fn pick(self, turn: u64, running: usize) -> usize {
        usize::try_from(self.lot("pick", (usize::try_from(turn).unwrap(), None), running as u64)).unwrap()
    }

    fn steps(self) -> Vec<Step> {
        let count = 1 + self.turn_of("steps", 6);
        let step = |place: usize| {
            let lot = |question: &str, count| self.lot(question, (place, None), count);
            let repeats = match lot("loop", 5) {
                0 => Loop::Each(u32::try_from(lot("items", 5)).unwrap(), 1 + usize::try_from(lot("at once", 3)).unwrap()),
                1 => Loop::While(u32::try_from(lot("rounds", 4)).unwrap()),
                _ => Loop::No,
            };
            let before = |one: &usize| self.lot("after", (place, u32::try_from(*one).ok()), 3) == 0;
            Step {
                child: (lot("child", 5) == 0).then(|| lot("undoable", 3) > 0),
                repeats,
                dependencies: (0..place).filter(before).collect(),
                has_undo: lot("has undo", 3) > 0,
                tolerated: lot("tolerated", 5) == 0,
            }
        };
        (0..usize::try_from(count).unwrap()).map(step).collect()
    }

    fn on(self) -> Vec<&'static str> {
        match self.turn_of("on", 4) {
            0 => vec![],
            1 => vec!["cancelled"],
            2 => vec!["failed", "cancelled"],
            _ => vec!["failed"],
        }
    }
}

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
        let is_due = (self.has_failed && on.contains(&"failed")) || (is_cancelled && on.contains(&"cancelled"));
        let calls: Vec<(Unit, String)> =
            self.done.iter().rev().filter_map(|one| Some((one.0, self.undo_call(*one)?))).collect();
        if !is_due || calls.is_empty() {
            return Verdict { status: plain, undo: Vec::new(), left: Vec::new() };
        }
        let all = calls.iter().map(|(unit, _)| *unit);
        if is_cancelled && self.script.cancels_by_force() {
            return Verdict { status: Status::Cancelled, undo: Vec::new(), left: all.collect() };
        }
        let stop = self.script.stop_rollback().and_then(|at| usize::try_from(at).ok()).filter(|at| *at < calls.len());
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

/// The definition as an author writes it.
fn definition(script: Script, steps: &[Step]) -> Value {
    let written = steps.iter().enumerate().map(|(place, step)| {
        let after: Vec<String> = step.dependencies.iter().map(|one| format!("s{one}")).collect();
        let mut json = json!({"id": format!("s{place}"), "dependsOn": after});
        match step.child {
            Some(_) => json["workflow"] = json!({"id": "stored"}),
            None => {
                json["agentId"] = "@test/agent".into();
                json["onUnknown"] = "fail".into();
            }
        }
        match step.repeats {
            Loop::No => {}
            Loop::Each(items, at_once) => {
                let items: Vec<u32> = (0..items).collect();
                json["forEach"] = json!({"items": items, "concurrency": at_once});
            }
            Loop::While(rounds) => {
                let condition = format!("${{iteration}} < {rounds}");
                json["while"] = json!({"condition": condition, "maxIterations": 9});
            }
        }
        if step.has_undo {
            json["compensate"] = json!({"agentId": "@test/agent", "input": {"was": "${output ?? 0}"}});
        }
        if step.tolerated {
            json["onError"] = "continue".into();
        }
        json
    });
    json!({"id": "flow", "version": "1.0.0", "name": "Flow", "compensateOn": script.on(), "steps": written.collect::<Vec<_>>()})
}

/// The engine, with what it calls.
struct Engine<'e> {
    script: Script,
    steps: &'e [Step],
    state: State,
    at_ms: i64,
    /// Keys of the calls of steps and of undo calls.
    forward: Vec<String>,
    undo: Vec<String>,
}

impl Engine<'_> {
    fn give(&mut self, event: Event) {
        self.at_ms += 1;
        // Every event goes through its stored form, as after a kill.
        let stored = serde_json::to_string(&event).unwrap();
        next(&mut self.state, serde_json::from_str(&stored).unwrap(), self.at_ms);
    }

    /// Starts what is ready.
    fn start(&mut self) {
        let begins = |(task, phase): &(Task, Phase)| match phase {
            Phase::Ready => Some(Event::Started { task: *task, attempt: 1 }),
            Phase::Beginning => {
                let undoable = self.steps[task.step].child == Some(true);
                Some(Event::ChildBegun { task: *task, execution: format!("child-{task}").into(), undoable })
            }
            _ => None,
        };
        let work: Vec<(Task, Phase)> =
            self.state.work.iter().map(|(task, work)| (*task, work.phase.clone())).collect();
        for (task, event) in work.iter().filter_map(|one| Some((one.0, begins(one)?))) {
            let key = default_key(&self.state, task);
            if task.undo { self.note_undo(key) } else { self.forward.push(key) }
            self.give(event);
        }
    }

    /// An undo that runs again after a crash is the same call.
    fn note_undo(&mut self, call: String) {
        if self.undo.last() != Some(&call) {
            self.undo.push(call);
        }
    }

    fn run(&mut self) -> Result<(), String> {
        self.give(begun());
        for turn in 0..200 {
            self.start();
            if self.state.status.is_final() || self.state.undoing.is_some() {
                return self.roll_back();
            }
            if self.script.cancel() == Some(turn) {
                let force = self.script.cancels_by_force();
                self.give(Event::CancelAsked { reason: "enough".into(), graceful: !force, force });
                if force || self.script.grace_ends() {
                    self.give(Event::Forced);
                    continue;
                }
            }
            let running: Vec<Task> = self.state.work.keys().copied().collect();
            if running.is_empty() {
                return Err(String::from("nothing runs"));
            }
            let task = running[self.script.pick(turn, running.len())];
            self.end(task);
        }
        Err(format!("it does not end: {:?}", self.state.work))
    }

    fn end(&mut self, task: Task) {
        let unit = (task.step, task.part);
        let is_child = self.steps[task.step].child.is_some();
        let is_told = self.state.cancel.is_some() || (self.state.failing.is_some() && is_child);
        let how = if is_told { How::Completes } else { self.script.how(unit, is_child) };
        match how {
            _ if is_told && self.script.stops(unit) => self.give(failed(task, 1, Code::Cancelled)),
            How::Completes => self.give(succeeded(task, 1, json!({"n": 1}))),
            How::Fails => self.give(failed(task, 1, Code::AgentFailed)),
            How::Unknown if self.script.lot("lost", unit, 2) == 0 => self.give(Event::Lost { task }),
            How::Unknown => self.give(failed(task, 1, Code::Timeout)),
        }
    }

    /// The rollback, with crashes and cancellations that must not change it.
    fn roll_back(&mut self) -> Result<(), String> {
        for place in 0..200 {
            self.start();
            let Some((task, work)) = self.state.work.iter().next().map(|(task, work)| (*task, work.clone())) else {
                break;
            };
            if self.state.work.len() > 1 || !task.undo {
                return Err(format!("undo calls run beside others: {:?}", self.state.work));
            }
            let unit = (task.step, task.part);
            let is_child = matches!(work.phase, Phase::Child { .. });
            if is_child {
                let part = task.part.map_or_else(String::new, |part| format!(":{part}"));
                self.note_undo(format!("child s{}{part}", task.step));
            }
            if self.script.lot("crash", unit, 3) == 0 && !is_child {
                self.give(Event::Lost { task });
                self.start();
            }
            if self.script.lot("disturb", unit, 2) == 0 {
                self.give(Event::CancelAsked { reason: "enough".into(), graceful: true, force: false });
                self.give(Event::Paused { reason: "wait".into() });
                self.give(Event::Due { task: None });
                self.give(Event::Forced);
            }
            if self.script.stop_rollback() == Some(place) {
                self.give(Event::CancelAsked { reason: "now".into(), graceful: false, force: true });
                break;
            }
            match self.script.is_undone(unit) {
                true => self.give(succeeded(task, 1, json!({"undone": 1}))),
                false => self.give(failed(task, 1, Code::StateConflict)),
            }
        }
        match self.state.status.is_final() {
            true => Ok(()),
            false => Err(format!("the rollback does not end: {:?}", self.state.work)),
        }
    }

    fn verdict(&self) -> Verdict {
        let left = super::super::undo::left(&self.state);
        let left = left.iter().map(|one| (one.task.step, one.task.part)).collect();
        Verdict { status: self.state.status, undo: self.undo.clone(), left }
    }

    /// "What was undone is not done; after a rollback, retry counts a generation": taken up again, everything completes, and no
    /// key of something that was undone is used again.
    fn retry(&mut self, undone: &[String]) -> Result<(), String> {
        self.forward.clear();
        self.give(Event::Again);
        for _ in 0..200 {
            self.start();
            let Some(task) = self.state.work.keys().next().copied() else { break };
            self.give(succeeded(task, 1, json!({"n": 2})));
        }
        if self.state.status != Status::Completed {
            return Err(format!("taken up again it ends as {:?}", self.state.status));
        }
        if let Some(key) = self.forward.iter().find(|key| undone.contains(key)) {
            return Err(format!("{key} was undone and is used again"));
        }
        let open = self.state.steps.iter().position(|step| {
            step.outcome == Some(Outcome::Completed) && !step.undone.is_empty()
        });
        open.map_or(Ok(()), |step| Err(format!("s{step} completed and still counts as undone")))
    }
}

#[test]
fn wf_saga_the_engine_undoes_what_the_table_says_on_random_definitions() {
    every_seed(10_000, |seed| {
        let script = Script(seed);
        let steps = script.steps();
        let source = definition(script, &steps);
        let (undo, forward) = (Vec::new(), Vec::new());
        let mut engine = Engine { script, steps: &steps, state: whole(source.clone()), at_ms: 0, forward, undo };
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
        let name = |(step, part): &Unit| part.map_or_else(|| format!("s{step}"), |part| format!("s{step}:{part}"));
        let left: Vec<String> = wanted.left.iter().map(|unit| format!("exec-1:{}:compensate", name(unit))).collect();
        let undone = wanted.undo.iter().filter(|call| call.starts_with("exec-1") && !left.contains(call));
        let undone: Vec<String> = undone.map(|call| call.trim_end_matches(":compensate").to_owned()).collect();
        engine.retry(&undone).map_err(|broken| format!("{broken} in {source}"))
    });
}
