//! Single turns of the engine that nothing outside can bring about at will.

mod backoff;
mod closing;
mod evaluation;
mod folding;
mod outcomes;
mod race;
mod random;
mod rollbacks;
mod waiting;

use std::sync::Arc;

use orchestr8_contract::error::StoredFault;
use orchestr8_contract::id::CorrelationId;
use orchestr8_contract::{Code, Fault};
use serde_json::{Value, json};

use super::event::{Decision, Event, NewBudget, Status, Task};
use super::next;
use super::state::{Identity, Outcome, State};
use crate::definition;

fn state(steps: Value) -> State {
    whole(json!({"id": "flow", "version": "1.0.0", "name": "Flow", "steps": steps}))
}

fn whole(source: Value) -> State {
    let workflow = definition::read_value(&source).unwrap_or_else(|problems| panic!("{problems:?} {source}"));
    State::new(Arc::new(Identity {
        execution: "exec-1".into(),
        started_by: "local".into(),
        correlation: CorrelationId::parse("test").unwrap(),
        variables: workflow.variables.clone(),
        workflow,
        timeout_ms: None,
        schedule: None,
    }))
}

fn one_step() -> State {
    state(json!([{"id": "a", "type": "agent", "agentId": "@test/agent"}]))
}

fn begun() -> Event {
    Event::Begun { env: serde_json::Map::new(), kept: Vec::new(), generations: Vec::new() }
}

fn cancel() -> Event {
    Event::CancelAsked { reason: "enough".into(), graceful: true, force: false }
}

#[test]
fn wf_19_4_a_step_that_was_told_to_stop_does_not_run_again_after_a_crash() {
    let mut state = one_step();
    let task = Task::of(0);
    assert!(next(&mut state, begun(), 1).contains(&Decision::Run { task }));
    next(&mut state, Event::Started { task, attempt: 1 }, 2);
    assert!(next(&mut state, cancel(), 3).contains(&Decision::Stop { task }));
    assert_eq!(state.status, Status::Cancelling);
    assert!(state.is_awake(), "a start must take it up, so that it ends");
    let decisions = next(&mut state, Event::Lost { task }, 4);
    assert!(!decisions.contains(&Decision::Run { task }), "{decisions:?}");
    assert_eq!((state.status, state.steps[0].outcome), (Status::Cancelled, Some(Outcome::Cancelled)));
}

#[test]
fn what_comes_while_it_waits_for_its_turn_does_not_begin_it() {
    let mut state = one_step();
    next(&mut state, Event::Signal { name: "x".into(), payload: Value::Null, id: None }, 1);
    assert_eq!((state.status, state.is_awake()), (Status::Queued, true));
    next(&mut state, Event::Paused { reason: "wait".into() }, 2);
    assert_eq!((state.status, state.is_awake()), (Status::Paused, true));
    next(&mut state, Event::Resumed { budget: NewBudget::default() }, 3);
    assert_eq!((state.status, state.has_begun()), (Status::Queued, false));
    next(&mut state, cancel(), 4);
    assert_eq!(state.status, Status::Cancelled);
    let decisions = next(&mut state, Event::Again, 5);
    assert_eq!((state.status, decisions), (Status::Queued, vec![Decision::LineUp]));
    next(&mut state, begun(), 6);
    assert_eq!((state.status, state.started_ms), (Status::Running, Some(6)));
}

#[test]
fn a_child_is_told_to_stop_once() {
    let child = json!({"id": "child", "version": "1.0.0", "name": "Child",
        "steps": [{"id": "x", "type": "agent", "agentId": "@test/agent"}]});
    let mut state = state(json!([{"id": "c", "type": "workflow", "workflow": child}]));
    let task = Task::of(0);
    next(&mut state, begun(), 1);
    next(
        &mut state,
        Event::ChildBegun { task, execution: "exec-2".into(), undoable: false, detached: false },
        2,
    );
    assert!(!state.is_awake(), "the end of the child wakes it");
    assert!(next(&mut state, cancel(), 3).contains(&Decision::Stop { task }));
    assert!(state.is_awake(), "the child may not have been told yet");
    assert!(!next(&mut state, cancel(), 4).contains(&Decision::Stop { task }));
}

#[test]
fn an_execution_whose_record_is_refused_fails_and_undoes_what_was_done() {
    let undo = json!({"agentId": "@test/agent", "input": {}});
    let mut state = state(json!([
        {"id": "a", "type": "agent", "agentId": "@test/agent", "compensate": undo},
        {"id": "b", "type": "agent", "agentId": "@test/agent", "dependsOn": ["a"]},
    ]));
    next(&mut state, begun(), 1);
    next(&mut state, Event::Started { task: Task::of(0), attempt: 1 }, 2);
    next(&mut state, random::succeeded(Task::of(0), 1, json!(1)), 3);
    let fault = StoredFault::from(&Fault::new(Code::StoreFailed, "no"));
    let decisions = next(&mut state, Event::Unwritable { fault }, 4);
    assert!(decisions.contains(&Decision::Run { task: Task::of(0).undoing() }), "{decisions:?}");
    next(&mut state, random::succeeded(Task::of(0).undoing(), 1, json!(1)), 5);
    assert_eq!((state.status, state.errors[0].fault.code), (Status::Compensated, Code::StoreFailed));
}
