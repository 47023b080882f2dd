//! A step in backoff: a timer that outlives the process, with the time that its attempts may take.

use orchestr8_contract::error::StoredFault;
use orchestr8_contract::{Code, Fault};
use serde_json::{Value, json};

use super::super::event::{Decision, Event, NewBudget, Status, Task};
use super::super::next;
use super::super::state::{Outcome, Phase, State};
use super::{begun, cancel, state};

const TASK: Task = Task { step: 0, part: None, undo: false };

fn retrying(attempt: u32, wait_ms: u64) -> Event {
    let fault = StoredFault::from(&Fault::new(Code::Unavailable, "not yet"));
    Event::Retrying { task: TASK, attempt, fault, wait_ms }
}

fn due() -> Event {
    Event::Due { task: Some(TASK) }
}

/// Its first attempt ran for 40 ms and failed, and the next is due at 3 050.
fn in_backoff(policy: &str) -> State {
    let step = json!({"id": "a", "type": "agent", "agentId": "@test/agent", "onUnknown": policy});
    let mut state = state(Value::Array(vec![step]));
    next(&mut state, begun(), 10);
    next(&mut state, Event::Started { task: TASK, attempt: 1 }, 10);
    let decisions = next(&mut state, retrying(1, 3000), 50);
    assert_eq!(decisions, [Decision::Wake { task: Some(TASK), due_ms: 3050 }]);
    state
}

#[test]
fn a_crash_leaves_it_in_backoff_whatever_on_unknown_says() {
    for policy in ["retry", "fail", "ask"] {
        let mut state = in_backoff(policy);
        assert_eq!(state.interrupted().count(), 0, "its end is known");
        assert!(!state.is_awake(), "its timer wakes it");
        assert_eq!(state.work[&TASK].phase, Phase::Retrying { at_ms: 3050 });
        let decisions = next(&mut state, due(), 3050);
        assert_eq!(decisions, [Decision::Run { task: TASK }]);
        assert_eq!(state.work[&TASK].attempts, 2, "the next attempt has the next number");
        assert!(state.is_awake());
    }
}

#[test]
fn the_budget_counts_attempts_and_waits_and_not_the_time_the_server_was_away() {
    let mut state = in_backoff("retry");
    assert_eq!(state.work[&TASK].spent_ms, 3040);
    next(&mut state, due(), 900_000);
    next(&mut state, Event::Started { task: TASK, attempt: 2 }, 900_100);
    next(&mut state, retrying(2, 0), 900_160);
    let work = &state.work[&TASK];
    assert_eq!((work.spent_ms, work.attempts, &work.phase), (3100, 3, &Phase::Ready));
}

#[test]
fn a_pause_outlasts_a_backoff_and_a_cancellation_ends_it() {
    let mut state = in_backoff("retry");
    next(&mut state, Event::Paused { reason: "wait".into() }, 100);
    assert_eq!(next(&mut state, due(), 3050), []);
    let decisions = next(&mut state, Event::Resumed { budget: NewBudget::default() }, 4000);
    assert_eq!(decisions, [Decision::Run { task: TASK }]);
    let mut state = in_backoff("retry");
    let decisions = next(&mut state, cancel(), 100);
    assert!(decisions.contains(&Decision::Forget { task: Some(TASK) }), "{decisions:?}");
    assert_eq!((state.status, state.steps[0].outcome), (Status::Cancelled, Some(Outcome::Cancelled)));
    // An attempt that was told to stop and says "try again" has stopped.
    let mut state = in_backoff("retry");
    next(&mut state, due(), 3050);
    next(&mut state, Event::Started { task: TASK, attempt: 2 }, 3050);
    next(&mut state, cancel(), 3060);
    next(&mut state, retrying(2, 1000), 3070);
    assert_eq!(state.status, Status::Cancelled);
}

/// What runs when another step fails finishes, and so does what is between two attempts.
#[test]
fn a_step_in_backoff_goes_on_when_another_fails() {
    let step = |id: &str| json!({"id": id, "type": "agent", "agentId": "@test/agent"});
    let mut state = state(json!([step("a"), step("b")]));
    next(&mut state, begun(), 1);
    for task in [TASK, Task::of(1)] {
        next(&mut state, Event::Started { task, attempt: 1 }, 1);
    }
    next(&mut state, retrying(1, 1000), 2);
    next(&mut state, super::random::failed(Task::of(1), 1, Code::AgentFailed), 3);
    assert_eq!(state.status, Status::Running);
    assert_eq!(next(&mut state, due(), 1002), [Decision::Run { task: TASK }]);
    next(&mut state, Event::Started { task: TASK, attempt: 2 }, 1003);
    next(&mut state, super::random::succeeded(TASK, 2, json!(1)), 1004);
    assert_eq!((state.status, state.steps[0].outcome), (Status::Failed, Some(Outcome::Completed)));
}
