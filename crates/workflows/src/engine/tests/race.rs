//! Races: the first dependency that completes wins, and the others are cancelled.

use orchestr8_contract::error::StoredFault;
use orchestr8_contract::{Code, Fault};
use serde_json::{Value, json};

use super::super::event::{Decision, Event, NewBudget, Status, Task};
use super::super::state::{Outcome, State};
use super::random::{failed, succeeded};
use super::{begun, next, state};

fn agent(id: &str, after: &[&str]) -> Value {
    json!({"id": id, "agentId": "@test/agent", "dependsOn": after})
}

fn race(after: &[&str]) -> Value {
    json!({"id": "r", "agentId": "@test/agent", "dependsOn": after, "join": "race"})
}

fn undoable(id: &str, after: &[&str]) -> Value {
    let mut step = agent(id, after);
    step["compensate"] = json!({"agentId": "@test/agent"});
    step
}

/// Begun, with these steps started.
fn running(steps: Value, started: &[usize]) -> State {
    let mut state = state(steps);
    next(&mut state, begun(), 1);
    for step in started {
        next(&mut state, Event::Started { task: Task::of(*step), attempt: 1 }, 2);
    }
    state
}

fn done(state: &mut State, step: usize) -> Vec<Decision> {
    next(state, succeeded(Task::of(step), 1, json!(step)), 5)
}

fn reason(state: &State, step: usize) -> &str {
    &state.steps[step].skip.as_ref().unwrap().reason
}

fn stop(step: usize) -> Decision {
    Decision::Stop { task: Task::of(step) }
}

fn run(step: usize) -> Decision {
    Decision::Run { task: Task::of(step) }
}

#[test]
fn the_first_to_complete_wins_and_the_others_are_told_to_stop() {
    let steps = json!([agent("a", &[]), agent("b", &[]), race(&["a", "b"]), agent("after", &["r"])]);
    let mut state = running(steps, &[0, 1]);
    let decisions = done(&mut state, 0);
    assert!(decisions.contains(&stop(1)) && decisions.contains(&run(2)), "{decisions:?}");
    assert_eq!(reason(&state, 1), "Lost the race of 'r' to 'a'");
    // The race goes on before the loser has stopped; the execution ends after it.
    next(&mut state, Event::Started { task: Task::of(2), attempt: 1 }, 6);
    assert!(done(&mut state, 2).contains(&run(3)));
    next(&mut state, Event::Started { task: Task::of(3), attempt: 1 }, 7);
    done(&mut state, 3);
    assert_eq!((state.status, state.steps[1].outcome), (Status::Running, None));
    next(&mut state, failed(Task::of(1), 1, Code::Cancelled), 8);
    assert_eq!((state.status, state.steps[1].outcome), (Status::Completed, Some(Outcome::Cancelled)));
    assert!(state.errors.is_empty(), "a loser is no error");
}

#[test]
fn join_any_cancels_nothing() {
    let mut any = race(&["a", "b"]);
    any["join"] = "any".into();
    let mut state = running(json!([agent("a", &[]), agent("b", &[]), any]), &[0, 1]);
    let decisions = done(&mut state, 0);
    assert!(!decisions.contains(&stop(1)) && decisions.contains(&run(2)), "{decisions:?}");
    next(&mut state, failed(Task::of(1), 1, Code::AgentFailed), 8);
    assert!(state.failing.is_some());
}

#[test]
fn steps_before_a_loser_lose_with_it_unless_something_else_needs_them() {
    let steps = json!([
        agent("a", &[]),
        agent("shared", &[]),
        agent("own", &[]),
        agent("b", &["shared", "own"]),
        agent("other", &["shared"]),
        race(&["a", "b"]),
    ]);
    let mut state = running(steps, &[0, 1, 2]);
    let decisions = done(&mut state, 0);
    assert!(decisions.contains(&stop(2)) && !decisions.contains(&stop(1)), "{decisions:?}");
    assert_eq!(state.steps[3].outcome, Some(Outcome::Skipped), "it had not begun");
    assert_eq!(state.steps[1].lost, None);
}

#[test]
fn what_only_waits_is_withdrawn_and_what_waits_for_a_slot_is_taken_back() {
    let steps = json!([
        agent("a", &[]),
        {"id": "timer", "wait": {"durationMs": 1000}},
        {"id": "ask", "approval": {"message": "?"}},
        agent("ready", &[]),
        agent("bystander", &[]),
        race(&["a", "timer", "ask", "ready"]),
    ]);
    let mut state = running(steps, &[0]);
    let decisions = done(&mut state, 0);
    let timer = Decision::Forget { task: Some(Task::of(1)) };
    assert!(
        decisions.contains(&timer) && decisions.contains(&Decision::Unask { task: Task::of(2) }),
        "{decisions:?}"
    );
    let taken_back = decisions.iter().position(|one| *one == Decision::Withdraw).unwrap();
    assert!(decisions[taken_back..].contains(&run(4)), "the bystander asks again: {decisions:?}");
    assert!(!decisions[taken_back..].contains(&run(3)));
    for lost in [1, 2, 3] {
        assert_eq!(state.steps[lost].outcome, Some(Outcome::Cancelled));
    }
}

#[test]
fn a_loser_that_completes_all_the_same_keeps_its_result_and_is_undone_in_a_rollback() {
    let steps = json!([agent("a", &[]), undoable("b", &[]), race(&["a", "b"])]);
    let mut state = running(steps, &[0, 1]);
    done(&mut state, 0);
    done(&mut state, 1);
    assert_eq!((state.steps[1].outcome, state.output(1)), (Some(Outcome::Completed), Some(&json!(1))));
    assert_eq!(state.steps[1].skip, None);
    next(&mut state, Event::Started { task: Task::of(2), attempt: 1 }, 6);
    let decisions = next(&mut state, failed(Task::of(2), 1, Code::AgentFailed), 7);
    assert!(decisions.contains(&Decision::Run { task: Task::undo(1) }), "{decisions:?}");
}

#[test]
fn a_loser_that_was_stopped_may_have_happened_and_is_undone_in_a_rollback() {
    let steps = json!([agent("a", &[]), undoable("b", &[]), race(&["a", "b"])]);
    let mut state = running(steps, &[0, 1]);
    done(&mut state, 0);
    next(&mut state, failed(Task::of(1), 1, Code::Cancelled), 6);
    next(&mut state, Event::Started { task: Task::of(2), attempt: 1 }, 7);
    let decisions = next(&mut state, failed(Task::of(2), 1, Code::AgentFailed), 8);
    assert!(decisions.contains(&Decision::Run { task: Task::undo(1) }), "{decisions:?}");
    assert!(state.steps[1].unknown.contains(&None));
    // Undone, the race holds: only its step runs again. A new winner would be a new race.
    next(&mut state, Event::Started { task: Task::undo(1), attempt: 1 }, 9);
    next(&mut state, succeeded(Task::undo(1), 1, json!(null)), 10);
    assert_eq!(state.status, Status::Compensated);
    let decisions = next(&mut state, Event::Again, 11);
    assert!(decisions.contains(&run(2)) && !decisions.contains(&run(1)), "{decisions:?}");
    assert_eq!(state.steps[1].outcome, Some(Outcome::Cancelled));
}

#[test]
fn a_race_whose_winner_was_undone_is_run_again_by_a_retry() {
    let steps = json!([undoable("a", &[]), agent("b", &[]), race(&["a", "b"])]);
    let mut state = running(steps, &[0, 1]);
    done(&mut state, 0);
    next(&mut state, failed(Task::of(1), 1, Code::Cancelled), 6);
    next(&mut state, Event::Started { task: Task::of(2), attempt: 1 }, 7);
    next(&mut state, failed(Task::of(2), 1, Code::AgentFailed), 8);
    next(&mut state, Event::Started { task: Task::undo(0), attempt: 1 }, 9);
    next(&mut state, succeeded(Task::undo(0), 1, json!(null)), 10);
    let decisions = next(&mut state, Event::Again, 11);
    assert!(decisions.contains(&run(0)) && decisions.contains(&run(1)), "{decisions:?}");
}

#[test]
fn a_loser_never_fails_the_execution_nor_runs_again() {
    let fault = StoredFault::from(&Fault::new(Code::Unavailable, "not yet"));
    let task = Task::of(1);
    let ends = [
        failed(task, 1, Code::AgentFailed),
        Event::Retrying { task, attempt: 1, fault, wait_ms: 10 },
        Event::Lost { task },
    ];
    for end in ends {
        let mut fallback = agent("b", &[]);
        fallback["fallbackStepId"] = "f".into();
        let steps = json!([agent("a", &[]), fallback, race(&["a", "b"]), agent("f", &[])]);
        let mut state = running(steps, &[0, 1]);
        done(&mut state, 0);
        let decisions = next(&mut state, end, 6);
        assert!(!decisions.contains(&run(1)) && !decisions.contains(&run(3)), "{decisions:?}");
        assert_eq!(state.steps[1].outcome, Some(Outcome::Cancelled));
        assert_eq!((state.failing.is_none(), state.errors.len()), (true, 0));
        assert_eq!(state.steps[3].outcome, Some(Outcome::Skipped), "its fallback is not needed");
    }
}

#[test]
fn a_loop_that_loses_begins_no_more_items() {
    let mut each = agent("b", &[]);
    each["forEach"] = json!({"items": [1, 2, 3], "concurrency": 1});
    let mut state = running(json!([agent("a", &[]), each, race(&["a", "b"])]), &[0]);
    next(&mut state, Event::Started { task: Task::part(1, 0), attempt: 1 }, 3);
    let decisions = done(&mut state, 0);
    assert!(decisions.contains(&Decision::Stop { task: Task::part(1, 0) }), "{decisions:?}");
    let decisions = next(&mut state, succeeded(Task::part(1, 0), 1, json!(1)), 6);
    assert!(
        !decisions.iter().any(|one| matches!(one, Decision::Run { task } if task.step == 1)),
        "{decisions:?}"
    );
    assert_eq!(state.steps[1].outcome, Some(Outcome::Cancelled));
}

#[test]
fn a_race_is_over_when_all_have_ended_and_none_completed() {
    let steps = json!([
        {"id": "a", "agentId": "@test/agent", "if": "false"},
        {"id": "b", "agentId": "@test/agent", "onError": "continue"},
        race(&["a", "b"]),
        {"id": "none", "agentId": "@test/agent", "join": "race", "dependsOn": ["a"]},
    ]);
    let mut state = running(steps, &[1]);
    assert_eq!(state.steps[3].skip.as_ref().unwrap().reason, "dependencies skipped");
    next(&mut state, failed(Task::of(1), 1, Code::AgentFailed), 4);
    assert_eq!(
        state.steps[2].skip.as_ref().unwrap().reason,
        "Dependency 'a' did not complete",
        "as with any"
    );
}

#[test]
fn a_paused_execution_decides_its_race_when_it_is_resumed() {
    let mut state = running(json!([agent("a", &[]), agent("b", &[]), race(&["a", "b"])]), &[0, 1]);
    next(&mut state, Event::Paused { reason: "wait".into() }, 3);
    assert!(!done(&mut state, 0).contains(&stop(1)));
    let decisions = next(&mut state, Event::Resumed { budget: NewBudget::default() }, 6);
    assert!(decisions.contains(&stop(1)) && decisions.contains(&run(2)), "{decisions:?}");
}
