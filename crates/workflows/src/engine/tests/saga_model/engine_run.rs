//! The engine on the definition of a script, with the calls that it makes.

use orchestr8_contract::Code;
use serde_json::{Value, json};

use super::super::super::event::{Event, Status, Task};
use super::super::super::scope::default_key;
use super::super::super::state::{Outcome, Phase, State};
use super::super::super::undo;
use super::super::random::{failed, succeeded};
use super::super::{begun, next};
use super::Verdict;
use super::script::{How, Loop, Script, Step};

/// The definition as an author writes it.
pub fn definition(script: Script, steps: &[Step]) -> Value {
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
pub struct Engine<'e> {
    pub script: Script,
    pub steps: &'e [Step],
    pub state: State,
    pub at_ms: i64,
    /// Keys of the calls of steps and of undo calls.
    pub forward: Vec<String>,
    pub undo: Vec<String>,
}

impl Engine<'_> {
    pub fn give(&mut self, event: Event) {
        self.at_ms += 1;
        // Every event goes through its stored form, as after a kill.
        let stored = serde_json::to_string(&event).unwrap();
        next(&mut self.state, serde_json::from_str(&stored).unwrap(), self.at_ms);
    }

    /// Starts what is ready.
    pub fn start(&mut self) {
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
            if task.undo {
                self.note_undo(key)
            } else {
                self.forward.push(key)
            }
            self.give(event);
        }
    }

    /// An undo that runs again after a crash is the same call.
    pub fn note_undo(&mut self, call: String) {
        if self.undo.last() != Some(&call) {
            self.undo.push(call);
        }
    }

    pub fn run(&mut self) -> Result<(), String> {
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

    pub fn end(&mut self, task: Task) {
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
    pub fn roll_back(&mut self) -> Result<(), String> {
        for place in 0..200 {
            self.start();
            let Some((task, work)) = self.state.work.iter().next().map(|(task, work)| (*task, work.clone()))
            else {
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

    pub fn verdict(&self) -> Verdict {
        let left = undo::left(&self.state);
        let left = left.iter().map(|one| (one.task.step, one.task.part)).collect();
        Verdict { status: self.state.status, undo: self.undo.clone(), left }
    }

    /// "What was undone is not done; after a rollback, retry counts a generation": taken up again, everything completes, and no
    /// key of something that was undone is used again.
    pub fn retry(&mut self, undone: &[String]) -> Result<(), String> {
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
        let open = self
            .state
            .steps
            .iter()
            .position(|step| step.outcome == Some(Outcome::Completed) && !step.undone.is_empty());
        open.map_or(Ok(()), |step| Err(format!("s{step} completed and still counts as undone")))
    }
}
