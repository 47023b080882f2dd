//! What the engine evaluates is bounded for each evaluation and for the execution, and counts the same live and folded.

use orchestr8_contract::Code;
use serde_json::{Value, json};

use super::super::event::{Event, Status, Task};
use super::super::state::{Outcome, State};
use super::super::{evaluation, next};
use super::{begun, random, state, whole};
use crate::limits::{EVALUATION_FUEL, EXECUTION_FUEL, INLINE_FUEL};

/// A loop whose condition compares two lists of 6,000 items, which differ at their end, so many times.
fn costly(comparisons: usize) -> State {
    let mut items = vec!["B"; 6_000];
    let b = json!(items);
    items[5_999] = "C";
    let terms = vec!["${variables.b} == ${variables.c}"; comparisons].join(" || ");
    whole(json!({
        "id": "flow", "version": "1.0.0", "name": "Flow", "variables": {"b": b, "c": items},
        "steps": [{"id": "a", "type": "agent", "agentId": "@test/agent",
                   "while": {"condition": format!("${{iteration}} < 900 && !({terms})"), "maxIterations": 1000}}]
    }))
}

/// Lets each round end at once. Gives the number of rounds, and the events.
fn run(state: &mut State) -> (u32, Vec<Event>) {
    let mut events = vec![begun()];
    next(state, begun(), 1);
    let mut rounds = 0;
    while state.work.contains_key(&Task::part(0, rounds)) {
        let task = Task::part(0, rounds);
        for event in [Event::Started { task, attempt: 1 }, random::succeeded(task, 1, json!(rounds))] {
            events.push(event.clone());
            next(state, event, 1);
        }
        rounds += 1;
    }
    (rounds, events)
}

fn failure(state: &State) -> (Code, Value) {
    let fault = &state.errors[0].fault;
    (fault.code, fault.details.as_ref().unwrap()["limit"].clone())
}

#[test]
fn a_condition_that_costs_too_much_fails_its_step() {
    let mut state = costly(900);
    assert!(evaluation::bound(&state, &begun()) > INLINE_FUEL, "it does not run beside requests");
    assert_eq!(run(&mut state).0, 0);
    assert_eq!((state.status, state.steps[0].outcome), (Status::Failed, Some(Outcome::Failed)));
    assert_eq!(failure(&state), (Code::ExprTooCostly, json!(EVALUATION_FUEL)));
    assert_eq!(state.fuel_used, EVALUATION_FUEL);
}

#[test]
fn the_evaluations_of_an_execution_cost_so_much_together_at_most_and_fold_the_same() {
    let mut live = costly(80);
    let (rounds, events) = run(&mut live);
    assert!(rounds >= 64, "{rounds}");
    assert_eq!(live.status, Status::Failed);
    assert_eq!(failure(&live), (Code::ExprTooCostly, json!(EXECUTION_FUEL)));
    assert_eq!(live.fuel_used, EXECUTION_FUEL);
    let mut folded = State::new(live.identity.clone());
    for event in events {
        let text = serde_json::to_string(&event).unwrap();
        next(&mut folded, serde_json::from_str(&text).unwrap(), 1);
    }
    assert_eq!(
        (folded.status, folded.fuel_used, failure(&folded)),
        (live.status, live.fuel_used, failure(&live))
    );
}

#[test]
fn plain_workflows_are_foreseen_to_cost_next_to_nothing() {
    let step = |id: &str, more: Value| {
        let mut step = json!({"id": id, "type": "agent", "agentId": "@test/agent"});
        step.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        step
    };
    let mut state = state(json!([
        step("a", json!({})),
        step("b", json!({"dependsOn": ["a"], "if": "${steps.a.output.count} > 3"})),
        step(
            "c",
            json!({"dependsOn": ["a"], "while": {"condition": "${iteration} < 10", "maxIterations": 10}})
        ),
    ]));
    next(&mut state, begun(), 1);
    next(&mut state, Event::Started { task: Task::of(0), attempt: 1 }, 2);
    let ended = random::succeeded(Task::of(0), 1, json!({"count": 5, "text": "x".repeat(500_000)}));
    assert!(evaluation::bound(&state, &ended) < 1_000);
    next(&mut state, ended, 3);
    assert!((1..1_000).contains(&state.fuel_used), "{}", state.fuel_used);
}

#[test]
fn lists_texts_and_switches_over_much_data_are_foreseen() {
    let large: Vec<usize> = (0..80_000).collect();
    for kind in [
        json!({"type": "agent", "agentId": "@test/agent", "forEach": {"items": "${variables.large}"}}),
        json!({"type": "switch", "switch": {"on": "${variables.large}", "cases": [{"value": 1, "steps": ["z"]}]}}),
        json!({"type": "agent", "agentId": "@test/agent", "if": "${variables.large} == ${variables.other}"}),
    ] {
        let mut first = json!({"id": "a"});
        first.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
        let last = json!({"id": "z", "type": "agent", "agentId": "@test/agent", "dependsOn": ["a"]});
        let definition = json!({"id": "flow", "version": "1.0.0", "name": "Flow", "steps": [first, last],
                                "variables": {"large": large, "other": large}});
        let mut state = whole(definition);
        let bound = evaluation::bound(&state, &begun());
        assert!(bound > INLINE_FUEL, "{bound} for {kind}");
        next(&mut state, begun(), 1);
        assert!(state.fuel_used <= bound, "{} of {bound} for {kind}", state.fuel_used);
        assert_eq!(evaluation::bound(&state, &Event::Paused { reason: "wait".into() }), 0);
        let cancel = Event::CancelAsked { reason: "enough".into(), graceful: false, force: true };
        assert_eq!(evaluation::bound(&state, &cancel), 0, "a cancellation does not wait for a turn");
    }
}
