//! Rollbacks and what follows them: attempts that were lost, retries of what could not be undone, budgets, force.

use orchestr8_contract::error::StoredFault;
use orchestr8_contract::{Code, Fault};
use serde_json::{Value, json};

use super::random::{failed, succeeded};
use super::{begun, next, state, whole};
use crate::engine::event::{Decision, Event, NewBudget, Status, Task};
use crate::engine::scope::default_key;
use crate::engine::state::{Outcome, Phase, State};
use crate::engine::{undo, view};

const A: Task = Task { step: 0, part: None, undo: false };
const B: Task = Task { step: 1, part: None, undo: false };
const C: Task = Task { step: 2, part: None, undo: false };

fn undoable(id: &str, after: &[&str]) -> Value {
    json!({"id": id, "type": "agent", "agentId": "@test/agent", "dependsOn": after, "compensate": {"agentId": "@test/agent"}})
}

fn plain(id: &str, after: &[&str]) -> Value {
    json!({"id": id, "type": "agent", "agentId": "@test/agent", "dependsOn": after})
}

fn start(state: &mut State, task: Task) {
    next(state, Event::Started { task, attempt: 1 }, 10);
}

/// A task runs and succeeds.
fn succeed(state: &mut State, task: Task) {
    start(state, task);
    next(state, succeeded(task, 1, json!({"n": 1})), 11);
}

fn fail(state: &mut State, task: Task) -> Vec<Decision> {
    start(state, task);
    next(state, failed(task, 1, Code::AgentFailed), 12)
}

/// `a` and `b` are done, `c` fails, `b` cannot be undone and `a` can.
fn half_undone() -> State {
    let mut state = state(json!([undoable("a", &[]), undoable("b", &["a"]), plain("c", &["b"])]));
    next(&mut state, begun(), 1);
    succeed(&mut state, A);
    succeed(&mut state, B);
    fail(&mut state, C);
    fail(&mut state, B.undoing());
    succeed(&mut state, A.undoing());
    assert_eq!(state.status, Status::Compensated);
    state
}

#[test]
fn an_attempt_that_was_lost_is_undone_although_the_next_one_failed_for_sure() {
    let mut state = state(json!([undoable("a", &[])]));
    next(&mut state, begun(), 1);
    start(&mut state, A);
    let decisions = next(&mut state, Event::Lost { task: A }, 20);
    assert!(decisions.contains(&Decision::Run { task: A }), "{decisions:?}");
    start(&mut state, A);
    let decisions = next(&mut state, failed(A, 2, Code::InvalidArgument), 21);
    assert!(decisions.contains(&Decision::Run { task: A.undoing() }), "{decisions:?}");
    assert!(state.steps[0].unknown.contains(&None), "what is undone may have happened or not");
    succeed(&mut state, A.undoing());
    assert_eq!(state.status, Status::Compensated);
}

#[test]
fn what_could_not_be_undone_holds_when_what_it_depends_on_is_done_again() {
    let mut state = half_undone();
    let decisions = next(&mut state, Event::Again, 30);
    assert!(decisions.contains(&Decision::Run { task: A }), "{decisions:?}");
    assert_eq!(state.steps[1].outcome, Some(Outcome::Completed), "its effect is there: it is not done twice");
    succeed(&mut state, A);
    assert_eq!(default_key(&state, A), "exec-1:a:g2");
    fail(&mut state, C);
    let left: Vec<usize> = state.undoing.iter().flatten().map(|task| task.step).collect();
    assert_eq!(left, [1], "the next rollback tries it again, after a");
    assert!(state.work.contains_key(&A.undoing()), "a completed last");
}

#[test]
fn rounds_that_could_not_be_undone_stay_listed_when_the_loop_runs_again() {
    let rounds = json!({"id": "a", "type": "agent", "agentId": "@test/agent", "compensate": {"agentId": "@test/agent"},
                        "while": {"condition": "${iteration} < 2", "maxIterations": 5}});
    let mut state = state(json!([rounds, plain("b", &["a"])]));
    next(&mut state, begun(), 1);
    succeed(&mut state, Task::part(0, 0));
    succeed(&mut state, Task::part(0, 1));
    fail(&mut state, B);
    fail(&mut state, Task::part(0, 1).undoing());
    succeed(&mut state, Task::part(0, 0).undoing());
    assert_eq!(state.status, Status::Compensated);
    next(&mut state, Event::Again, 30);
    assert!(state.work.contains_key(&Task::part(0, 0)), "the loop runs again from its first round");
    let shown = view::resource(&state, &view::Facts::default(), 40);
    let listed = &shown["notUndone"];
    assert_eq!((listed.as_array().map(Vec::len), &listed[0]["index"]), (Some(1), &json!(1)), "{shown:#}");
    assert_eq!((&listed[0]["generation"], &listed[0]["error"]["code"]), (&json!(1), &json!("AGENT_FAILED")));
}

#[test]
fn one_that_is_retried_beyond_the_limit_of_its_key_waits_for_its_turn() {
    let mut state = half_undone();
    let decisions = next(&mut state, Event::AgainQueued, 30);
    assert_eq!((state.status, decisions), (Status::Queued, vec![Decision::LineUp]));
    assert!(!state.has_begun() && state.is_awake());
    next(&mut state, Event::Paused { reason: "wait".into() }, 31);
    assert_eq!((state.status, state.has_begun()), (Status::Paused, false));
    next(&mut state, Event::Resumed { budget: NewBudget::default() }, 32);
    assert_eq!((state.status, state.has_begun()), (Status::Queued, false));
    let decisions = next(&mut state, begun(), 33);
    assert_eq!((state.status, state.started_ms), (Status::Running, Some(1)), "it has begun before");
    assert!(decisions.contains(&Decision::Run { task: A }), "{decisions:?}");
    assert_eq!(state.steps[1].outcome, Some(Outcome::Completed), "what holds is kept");
}

#[test]
fn one_that_is_cancelled_while_it_waits_to_be_retried_rolls_back_and_does_not_begin() {
    let mut state = whole(
        json!({"id": "flow", "version": "1.0.0", "name": "Flow", "compensateOn": ["failed", "cancelled"],
        "steps": [undoable("a", &[]), plain("b", &["a"])]}),
    );
    next(&mut state, begun(), 1);
    succeed(&mut state, A);
    fail(&mut state, B);
    fail(&mut state, A.undoing());
    next(&mut state, Event::AgainQueued, 30);
    let decisions = next(&mut state, super::cancel(), 31);
    assert!(decisions.contains(&Decision::Run { task: A.undoing() }), "{decisions:?}");
    assert_eq!(next(&mut state, begun(), 32), []);
    assert_eq!(state.status, Status::Compensating);
    succeed(&mut state, A.undoing());
    assert_eq!(state.status, Status::Compensated);
}

#[test]
fn a_step_that_fails_with_the_last_of_the_budget_is_followed_by_the_rollback() {
    let mut state =
        whole(json!({"id": "flow", "version": "1.0.0", "name": "Flow", "policies": {"budget": {"steps": 2}},
        "steps": [undoable("a", &[]), plain("b", &["a"]), plain("c", &["b"])]}));
    next(&mut state, begun(), 1);
    succeed(&mut state, A);
    start(&mut state, B);
    assert_eq!(state.status, Status::Paused, "nothing new may begin");
    let decisions = next(&mut state, failed(B, 1, Code::AgentFailed), 12);
    assert_eq!(state.status, Status::Compensating);
    assert!(decisions.contains(&Decision::Run { task: A.undoing() }), "{decisions:?}");
    succeed(&mut state, A.undoing());
    assert_eq!(state.status, Status::Compensated);
}

#[test]
fn force_does_not_change_why_it_was_rolled_back() {
    let mut state = state(json!([undoable("a", &[]), plain("b", &["a"])]));
    next(&mut state, begun(), 1);
    succeed(&mut state, A);
    fail(&mut state, B);
    assert_eq!(undo::cause(&state), "failed");
    let force = Event::CancelAsked { reason: "enough".into(), graceful: false, force: true };
    next(&mut state, force, 20);
    assert_eq!((state.status, undo::cause(&state)), (Status::Cancelled, "failed"));
    let shown = view::resource(&state, &view::Facts::default(), 40);
    assert_eq!(shown["compensation"]["cause"], "failed");
}

#[test]
fn an_undo_waits_for_an_open_circuit_and_loses_no_attempt_and_no_time() {
    let mut state = state(json!([undoable("a", &[]), plain("b", &["a"])]));
    next(&mut state, begun(), 1);
    succeed(&mut state, A);
    fail(&mut state, B);
    start(&mut state, A.undoing());
    let fault = StoredFault::from(&Fault::new(Code::CircuitOpen, "open"));
    let decisions =
        next(&mut state, Event::Retrying { task: A.undoing(), attempt: 0, fault, wait_ms: 60_000 }, 100);
    assert!(decisions.contains(&Decision::Wake { task: Some(A.undoing()), due_ms: 60_100 }), "{decisions:?}");
    let work = &state.work[&A.undoing()];
    assert_eq!((&work.phase, work.attempts, work.spent_ms), (&Phase::Retrying { at_ms: 60_100 }, 0, 0));
    next(&mut state, Event::Due { task: Some(A.undoing()) }, 60_100);
    assert_eq!(state.work[&A.undoing()].attempts, 1, "the next call is the first attempt");
}
