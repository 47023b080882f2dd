//! Random workflows, and a random world around them.

use orchestr8_contract::error::StoredFault;
use orchestr8_contract::{Code, Fault};
use serde_json::{Value, json};

use super::super::event::{Event, NewBudget, Resolution, Status, Task};
use super::super::state::{Phase, State};
use super::begun;
use crate::agents::Usage;

/// Random choices, given from outside so that a case can be made smaller. Used up, it always chooses the first.
pub struct Tape(std::vec::IntoIter<u16>);

impl Tape {
    pub fn new(choices: Vec<u16>) -> Self {
        Self(choices.into_iter())
    }

    pub fn below(&mut self, count: usize) -> usize {
        usize::from(self.0.next().unwrap_or(0)) % count
    }

    /// Once in so many times.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    pub fn one_of<T>(&mut self, mut these: Vec<T>) -> T {
        let place = self.below(these.len());
        these.swap_remove(place)
    }

    pub fn is_over(&self) -> bool {
        self.0.len() == 0
    }
}

/// A definition of up to six steps of all kinds, with fallbacks. `asks`: whether an unknown end may make a step fail.
pub fn workflow(tape: &mut Tape, unknown_may_fail: bool) -> Value {
    let count = 1 + tape.below(6);
    let mut steps: Vec<Value> = Vec::new();
    let mut fallbacks: Vec<Value> = Vec::new();
    for place in 0..count {
        let mut step = step(tape, place);
        if step["type"] == "agent" {
            step["onUnknown"] = tape
                .one_of(match unknown_may_fail {
                    true => vec!["retry", "ask", "fail"],
                    false => vec!["retry", "ask"],
                })
                .into();
        }
        if tape.once_in(4) {
            // A loser that ran when the process died does not run again, so how it ends may differ.
            let joins = match unknown_may_fail {
                true => vec!["all", "any", "always", "race"],
                false => vec!["all", "any", "always"],
            };
            step["join"] = tape.one_of(joins).into();
        }
        match tape.below(5) {
            0 | 1 => {}
            2 => step["onError"] = "continue".into(),
            3 if step["type"] == "agent" => {
                let id = format!("f{place}");
                step["onError"] = "fallback".into();
                step["fallbackStepId"] = id.as_str().into();
                fallbacks.push(json!({"id": id, "type": "agent", "agentId": "@test/agent"}));
            }
            _ if step["type"] == "agent" => {
                step["compensate"] = json!({"agentId": "@test/agent", "input": {"was": "${output ?? 0}"}});
            }
            _ => {}
        }
        steps.push(step);
    }
    let mut policies = json!({});
    if tape.once_in(3) {
        let on = vec![json!([]), json!(["cancelled"]), json!(["failed", "cancelled"])];
        policies["compensateOn"] = tape.one_of(on);
    }
    if tape.once_in(4) {
        policies["budget"] = json!({"steps": 1 + tape.below(6)});
    }
    if tape.once_in(4) {
        policies["timeout"] = json!(100_000);
    }
    steps.extend(fallbacks);
    branch(tape, &mut steps, count);
    let mut flow =
        json!({"id": "flow", "version": "1.0.0", "name": "Flow", "steps": steps, "policies": policies});
    for section in ["onFailure", "finally"] {
        if tape.once_in(3) {
            flow[section] = closing_steps(tape, section);
        }
    }
    flow
}

/// One or two handlers, the second after the first.
fn closing_steps(tape: &mut Tape, section: &str) -> Value {
    let first = match tape.below(3) {
        0 => json!({"id": format!("{section}0"), "wait": {"durationMs": 700}}),
        1 => json!({"id": format!("{section}0"), "workflow": {"id": "stored"}}),
        _ => {
            json!({"id": format!("{section}0"), "agentId": "@test/agent", "input": {"s": "${execution.status}"}})
        }
    };
    let second = json!({"id": format!("{section}1"), "agentId": "@test/agent", "dependsOn": [first["id"]],
                        "input": {"code": "${failure.code ?? none}"}});
    if tape.once_in(2) { json!([first, second]) } else { json!([first]) }
}

fn step(tape: &mut Tape, place: usize) -> Value {
    let before: Vec<String> = (0..place).filter(|_| tape.once_in(3)).map(|one| format!("s{one}")).collect();
    let mut step = json!({"id": format!("s{place}"), "type": "agent", "dependencies": before});
    match tape.below(11) {
        0 => {
            step["type"] = "wait".into();
            step["wait"] = json!({"durationMs": 500 + tape.below(2000)});
        }
        1 => {
            step["type"] = "wait".into();
            step["wait"] = tape.one_of(vec![json!({"event": "e"}), json!({"event": "e", "timeoutMs": 3000})]);
        }
        2 => {
            step["type"] = "approval".into();
            let on_timeout = tape.one_of(vec!["fail", "approve", "reject"]);
            step["approval"] = json!({"message": "ok?", "timeoutMs": 3000, "onTimeout": on_timeout});
        }
        3 => {
            step["type"] = "workflow".into();
            step["workflow"] = json!({"id": "stored"});
        }
        4 => {
            step["type"] = "switch".into();
            step["switch"] =
                json!({"on": tape.below(2), "cases": [{"value": 1, "steps": []}], "default": []});
        }
        other => {
            step["agentId"] = "@test/agent".into();
            if let Some(one) = before.first() {
                step["input"] = match tape.below(3) {
                    0 => json!({}),
                    1 => json!({"x": format!("${{steps.{one}.output}}")}),
                    _ => json!({"x": format!("${{steps.{one}.output ?? 0}}")}),
                };
            }
            if other == 5 {
                let errors = vec![json!("fail"), json!("continue"), json!({"tolerate": 0.5})];
                let items: Vec<usize> = (0..tape.below(4)).collect();
                step["forEach"] = json!({"items": items, "concurrency": 1 + tape.below(3), "onItemError": tape.one_of(errors)});
            } else if other == 6 {
                let condition = format!("${{iteration}} < {}", tape.below(4));
                step["while"] =
                    json!({"condition": condition, "maxIterations": 3, "delayMs": tape.below(2) * 50});
            }
        }
    }
    if let Some(one) = before.last().filter(|_| tape.once_in(4)) {
        step["if"] = format!("${{steps.{one}.output ?? 0}}").into();
    }
    step
}

/// Puts some later steps behind the switches before them.
fn branch(tape: &mut Tape, steps: &mut [Value], count: usize) {
    for switch in 0..count {
        if steps[switch]["type"] != "switch" {
            continue;
        }
        for later in switch + 1..count {
            let id = steps[later]["id"].clone();
            let branch = match tape.below(4) {
                0 => &mut steps[switch]["switch"]["cases"][0]["steps"],
                1 => &mut steps[switch]["switch"]["default"],
                _ => continue,
            };
            branch.as_array_mut().unwrap().push(id);
        }
    }
}

pub fn failed(task: Task, attempts: u32, code: Code) -> Event {
    Event::Failed { task, attempts, fault: StoredFault::from(&Fault::new(code, "no")) }
}

pub fn succeeded(task: Task, attempts: u32, output: Value) -> Event {
    Event::Succeeded { task, attempts, output, usage: Usage { tokens: 1, cost: 0.5 } }
}

/// Something that may happen now, most often something that brings it on.
pub fn anything(state: &State, tape: &mut Tape) -> Event {
    match tape.below(40) {
        0 => {
            let force = tape.once_in(3);
            return Event::CancelAsked { reason: "enough".into(), graceful: !force, force };
        }
        6 if tape.once_in(4) => return Event::UndoAsked,
        1 => return Event::Paused { reason: "wait".into() },
        2 => {
            let id = tape.once_in(2).then(|| format!("id{}", tape.below(3)));
            return Event::Signal { name: "e".into(), payload: json!(7), id };
        }
        3 => return Event::Due { task: None },
        // What nobody waits for any more must change nothing.
        4 => return succeeded(Task::of(0), 1, json!("late")),
        5 => return Event::Lost { task: Task::of(0) },
        _ => {}
    }
    match state.status {
        Status::Queued => return begun(),
        Status::Failed | Status::Cancelled | Status::Completed | Status::Compensated => {
            return if tape.once_in(3) { Event::AgainQueued } else { Event::Again };
        }
        Status::Paused => {
            return Event::Resumed { budget: NewBudget { steps: Some(1000), ..NewBudget::default() } };
        }
        Status::Cancelling if tape.once_in(8) => return Event::Forced,
        Status::Running | Status::Waiting | Status::Cancelling | Status::Compensating => {}
    }
    let under_way: Vec<Task> = state.work.keys().copied().collect();
    if under_way.is_empty() {
        return Event::Signal { name: "other".into(), payload: Value::Null, id: None };
    }
    let task = tape.one_of(under_way);
    of_task(state, task, tape)
}

/// Any event about any piece of work, possible or not, as a damaged store might hold it.
pub fn nonsense(tape: &mut Tape) -> Event {
    let numbers = vec![0, 1, 2, 7, u32::MAX];
    let part = tape.once_in(2).then(|| tape.one_of(numbers.clone()));
    let task = Task { step: tape.below(9), part, undo: tape.once_in(3) };
    let (attempt, execution) = (tape.one_of(numbers), "exec-9".into());
    let fault = StoredFault::from(&Fault::new(Code::Unavailable, "no"));
    match tape.below(17) {
        14 => Event::UndoAsked,
        13 => Event::Unwritable { fault },
        0 => Event::Started { task, attempt },
        1 => Event::Retrying { task, attempt, fault, wait_ms: u64::MAX },
        2 => Event::Lost { task },
        3 => Event::ChildBegun {
            task,
            execution,
            undoable: task.step.is_multiple_of(2),
            detached: attempt == 7,
        },
        4 => Event::Resolved { task, how: Resolution::Complete { output: json!(1) } },
        5 => Event::Due { task: tape.once_in(2).then_some(task) },
        6 => Event::Decided {
            task,
            approved: true,
            by: "x".into(),
            on_behalf_of: None,
            comment: None,
            data: Value::Null,
        },
        7 => Event::Forced,
        8 => Event::Again,
        15 => Event::AgainQueued,
        9 => Event::Begun {
            env: serde_json::Map::new(),
            kept: vec![(tape.below(9), json!(1))],
            generations: vec![(tape.below(9), attempt)],
        },
        10 => Event::Resumed { budget: NewBudget { tokens: Some(1), ..NewBudget::default() } },
        11 => failed(task, attempt, Code::Cancelled),
        12 => succeeded(task, attempt, json!([1])),
        _ => Event::Paused { reason: String::new() },
    }
}

fn of_task(state: &State, task: Task, tape: &mut Tape) -> Event {
    let work = &state.work[&task];
    let attempts = work.attempts.max(1);
    match &work.phase {
        Phase::Ready => Event::Started { task, attempt: attempts },
        Phase::Retrying { .. } if !tape.once_in(4) => Event::Due { task: Some(task) },
        // Earlier versions recorded what became of the next attempt without its start.
        Phase::Running | Phase::Retrying { .. } => match tape.below(8) {
            0 => failed(task, attempts, Code::AgentFailed),
            1 => failed(task, attempts, Code::Cancelled),
            2 => {
                let fault = StoredFault::from(&Fault::new(Code::Unavailable, "not yet"));
                Event::Retrying { task, attempt: attempts, fault, wait_ms: 10 }
            }
            3 => Event::Lost { task },
            4 => succeeded(task, attempts, json!(0)),
            _ => succeeded(task, attempts, json!({"n": tape.below(100)})),
        },
        Phase::Beginning => {
            let (undoable, detached) = (tape.once_in(2), tape.once_in(5));
            Event::ChildBegun { task, execution: "exec-2".into(), undoable, detached }
        }
        Phase::Child { .. } if task.undo => succeeded(task, 1, json!({"undone": tape.below(2)})),
        Phase::Child { .. } if tape.once_in(3) => failed(task, 1, Code::AgentFailed),
        Phase::Child { .. } => succeeded(task, 1, json!({"x": 1})),
        Phase::Asking { .. } if tape.once_in(2) => Event::Decided {
            task,
            approved: tape.once_in(2),
            by: "ann".into(),
            on_behalf_of: None,
            comment: None,
            data: Value::Null,
        },
        Phase::Waiting { event: Some(name), .. } if tape.once_in(2) => {
            Event::Signal { name: name.clone(), payload: json!(1), id: None }
        }
        Phase::Asking { .. } | Phase::Waiting { .. } | Phase::Resting { .. } => {
            Event::Due { task: Some(task) }
        }
        Phase::Unknown => {
            let complete = Resolution::Complete { output: json!(3) };
            Event::Resolved { task, how: tape.one_of(vec![Resolution::Retry, Resolution::Fail, complete]) }
        }
    }
}
