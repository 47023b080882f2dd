//! When the shown status is `waiting`.

use orchestr8_contract::error::StoredFault;
use orchestr8_contract::{Code, Fault};
use serde_json::{Value, json};

use super::super::event::{Event, Status, Task};
use super::super::{next, waiting};
use super::{begun, cancel, random, state};

const FIRST: Task = Task { step: 0, part: None, undo: false };

fn agent(id: &str, agent: &str) -> Value {
    json!({"id": id, "type": "agent", "agentId": agent})
}

fn started(task: Task) -> Event {
    Event::Started { task, attempt: 1 }
}

/// What is shown after each of these, of an execution with these steps.
fn shown(steps: Value, events: Vec<Event>) -> Vec<Status> {
    let mut state = state(steps);
    let at = |(at_ms, event): (usize, Event)| {
        next(&mut state, event, i64::try_from(at_ms).unwrap() + 1);
        let running = state.status == Status::Running;
        let shown = waiting::status(&state);
        assert!(running || shown == state.status, "only what runs can wait: {:?}", state.status);
        shown
    };
    std::iter::once(begun()).chain(events).enumerate().map(at).collect()
}

#[test]
fn work_of_this_process_runs_and_work_of_others_waits() {
    let retrying = || Event::Retrying {
        task: FIRST,
        attempt: 1,
        fault: StoredFault::from(&Fault::new(Code::Unavailable, "not yet")),
        wait_ms: 50,
    };
    let due = || Event::Due { task: Some(FIRST) };
    let child =
        json!({"id": "child", "version": "1.0.0", "name": "Child", "steps": [agent("x", "@test/agent")]});
    let child_begun =
        || Event::ChildBegun { task: FIRST, execution: "exec-2".into(), undoable: false, detached: false };
    use Status::{Completed, Running, Waiting};
    let local = json!([agent("a", "@test/agent")]);
    assert_eq!(shown(local.clone(), vec![started(FIRST)]), [Running, Running], "a step with a slot");
    assert_eq!(
        shown(local, vec![started(FIRST), retrying(), due()]),
        [Running, Running, Waiting, Running],
        "a backoff"
    );
    let worker = json!([agent("a", "@worker/mail")]);
    assert_eq!(
        shown(worker, vec![started(FIRST), random::succeeded(FIRST, 1, json!(1))]),
        [Waiting, Waiting, Completed],
        "a task of a worker, leased or not"
    );
    let timer = json!([{"id": "a", "wait": {"durationMs": 100}}]);
    assert_eq!(shown(timer, vec![due()]), [Waiting, Completed], "a timer");
    let event = json!([{"id": "a", "wait": {"event": "paid"}}]);
    assert_eq!(shown(event, Vec::new()), [Waiting], "an event");
    let approval = json!([{"id": "a", "approval": {"message": "well?"}}]);
    assert_eq!(shown(approval, Vec::new()), [Waiting], "an approval");
    let parent = json!([{"id": "c", "type": "workflow", "workflow": child}]);
    assert_eq!(shown(parent, vec![child_begun()]), [Running, Waiting], "a child execution");
}

#[test]
fn one_step_that_runs_here_is_enough_to_run() {
    use Status::{Running, Waiting};
    let steps = json!([agent("a", "@test/agent"), {"id": "b", "wait": {"event": "paid"}}]);
    let events = vec![started(FIRST), random::succeeded(FIRST, 1, json!(1))];
    assert_eq!(shown(steps, events), [Running, Running, Waiting]);
}

#[test]
fn a_pause_and_a_cancellation_show_as_such() {
    let steps = json!([agent("a", "@worker/mail")]);
    let events = vec![started(FIRST), Event::Paused { reason: "later".into() }];
    assert_eq!(shown(steps.clone(), events), [Status::Waiting, Status::Waiting, Status::Paused]);
    let events = vec![started(FIRST), cancel()];
    assert_eq!(shown(steps, events), [Status::Waiting, Status::Waiting, Status::Cancelling]);
}
