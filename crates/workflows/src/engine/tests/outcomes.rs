//! The tables of how executions and steps end, on the engine itself. How they are written is said in the file.

use orchestr8_contract::error::StoredFault;
use orchestr8_contract::{Code, Fault};
use orchestr8_testing::Table;
use serde_json::{Value, json};

use super::super::event::{Event, NewBudget, Task};
use super::super::state::{Outcome, Phase, State, Undone};
use super::super::{next, view};
use super::{begun, cancel, whole};
use crate::agents::Usage;

fn table(title: &str) -> Table {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/workflows/tables/outcomes.md");
    Table::read(file, title)
}

fn steps(text: &str) -> Value {
    text.split("; ").map(step).collect()
}

fn step(text: &str) -> Value {
    let mut words = text.split(' ').peekable();
    let id = words.next().unwrap();
    let mut step = json!({"id": id, "type": "agent", "agentId": "@test/agent", "dependencies": []});
    while let Some(word) = words.next() {
        let mut name = || words.next().unwrap().trim_end_matches(',').to_owned();
        match word {
            "undo" => step["compensate"] = json!({"agentId": "@test/agent", "input": {}}),
            "needs" => step["input"] = json!({"x": format!("${{steps.{}.output}}", name())}),
            "likes" => step["input"] = json!({"x": format!("${{steps.{}.output ?? 1}}", name())}),
            "if" => step["if"] = format!("${{steps.{}.output}}", name()).into(),
            "join" => step["join"] = name().into(),
            "or" => match name().as_str() {
                "go" => {
                    words.next();
                    step["onError"] = "continue".into();
                }
                fallback => {
                    step["onError"] = "fallback".into();
                    step["fallbackStepId"] = fallback.into();
                }
            },
            "after" => {
                let mut list = Vec::new();
                while words.peek().is_some_and(|word| word.ends_with(',')) {
                    list.push(words.next().unwrap().trim_end_matches(',').to_owned());
                }
                list.push(words.next().unwrap().to_owned());
                step["dependencies"] = json!(list);
            }
            other => panic!("{other} is no word for a step"),
        }
    }
    step
}

/// A state after what the table says has happened, one thing each second.
fn after(row: &orchestr8_testing::Row) -> State {
    let text = row.get("steps");
    let (text, on) = text.split_once(" on ").map_or((text, None), |(text, on)| (text, Some(on)));
    let mut source = json!({"id": "flow", "version": "1.0.0", "name": "Flow", "steps": steps(text)});
    if let Some(on) = on {
        source["compensateOn"] = on.split(' ').filter(|word| *word != "nothing").collect();
    }
    let mut state = whole(source);
    let mut at_ms = 1000;
    for word in row.get("what happens").split(", ").filter(|word| *word != "nothing") {
        for event in events(&state, word) {
            at_ms += 1000;
            next(&mut state, event, at_ms);
        }
    }
    state
}

fn events(state: &State, word: &str) -> Vec<Event> {
    match word {
        "begin" => vec![begun()],
        "cancel" => vec![cancel()],
        "force" => vec![Event::Forced],
        "cancel by force" => {
            let event = Event::CancelAsked { reason: "enough".into(), graceful: false, force: true };
            // As the runtime does: there is no grace.
            vec![event, Event::Forced]
        }
        "parent rolls back" => vec![Event::UndoAsked],
        "pause" => vec![Event::Paused { reason: "wait".into() }],
        "resume" => vec![Event::Resumed { budget: NewBudget::default() }],
        "again" => vec![Event::Again],
        "time out" => vec![Event::Due { task: None }],
        "crash" => {
            let running = state.work.iter().filter(|(_, work)| work.phase == Phase::Running);
            running.map(|(task, _)| Event::Lost { task: *task }).collect()
        }
        word => of_step(state, word),
    }
}

fn of_step(state: &State, word: &str) -> Vec<Event> {
    let (undo, word) = word.strip_prefix("undo ").map_or((false, word), |word| (true, word));
    let (id, how) = word.split_once(' ').unwrap();
    let step = state.workflow().place(id).unwrap();
    let task = Task { step, part: None, undo };
    let work =
        state.work.get(&task).unwrap_or_else(|| panic!("{word}: {id} is not under way in {}", shown(state)));
    let failed = |code| {
        let fault = StoredFault::from(&Fault::new(code, "no"));
        Event::Failed { task, attempts: 1, fault }
    };
    let gave = |output| Event::Succeeded { task, attempts: 1, output, usage: Usage::default() };
    let mut events = Vec::new();
    if work.phase == Phase::Ready {
        events.push(Event::Started { task, attempt: 1 });
    }
    match how {
        "starts" => {}
        "ok" => events.push(gave(json!(1))),
        "no" => events.push(gave(json!(false))),
        "fails" => events.push(failed(Code::AgentFailed)),
        "stops" => events.push(failed(Code::Cancelled)),
        "times out" => events.push(failed(Code::Timeout)),
        other => panic!("{other} is no word for what a step does"),
    }
    events
}

/// `a completed; b skipped: why`, in the order of the definition.
fn shown(state: &State) -> String {
    let one = |step: usize| {
        let own = &state.steps[step];
        let mut text = format!("{} {}", state.workflow().steps[step].id, view::step_status(state, step));
        if let Some(primary) = own.alias_for {
            text += &format!(" for {}", state.workflow().steps[primary].id);
        }
        match own.undone.values().next() {
            Some(Undone::Done) => text += " undone",
            Some(Undone::Failed(_)) => text += " not undone",
            None => {}
        }
        if let Some(skip) = &own.skip {
            text += &format!(": {}", skip.reason);
        }
        if own.outcome == Some(Outcome::Cancelled)
            && own.fault.as_ref().is_some_and(|fault| fault.message != "no")
        {
            text += &format!(": {}", own.fault.as_ref().unwrap().message);
        }
        text
    };
    (0..state.steps.len()).map(one).collect::<Vec<_>>().join("; ")
}

#[test]
fn wf_19_4_the_states_of_an_execution() {
    table("States").holds(&["execution"], |row| vec![after(row).status.as_str().to_owned()]);
}

#[test]
fn wf_19_3_and_4_how_executions_and_steps_end() {
    for title in [
        "Which end wins",
        "Dependencies",
        "Going on without a step",
        "Fallbacks",
        "Conditions",
        "Joins",
        "Compensation",
        "What does not stop a rollback",
        "Unknown outcomes",
        "Children",
        "After a crash",
        "Taken up again",
    ] {
        table(title).holds(&["execution", "steps after"], |row| {
            let state = after(row);
            vec![state.status.as_str().to_owned(), shown(&state)]
        });
    }
}
