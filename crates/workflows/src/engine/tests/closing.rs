//! `onFailure` and `finally`: what each end of the body means for them, turn by turn.

use orchestr8_contract::Code;
use serde_json::{Value, json};

use super::super::event::{Decision, Event, NewBudget, Status, Task};
use super::super::state::{Outcome, State};
use super::random::{failed, succeeded};
use super::{begun, cancel, next, whole};
use crate::engine::scope::Frame;
use crate::expression::{Fuel, Template};

/// Steps 0 `a` and 1 `b` after it, 2 `tell` in onFailure, 3 `clean` in finally.
fn flow(more: Value) -> State {
    let mut source = json!({"id": "flow", "version": "1.0.0", "name": "Flow",
        "steps": [
            {"id": "a", "agentId": "@test/agent", "compensate": {"agentId": "@test/agent"}},
            {"id": "b", "agentId": "@test/agent", "dependsOn": ["a"]}],
        "onFailure": [{"id": "tell", "agentId": "@test/agent"}],
        "finally": [{"id": "clean", "agentId": "@test/agent"}]});
    source.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    whole(source)
}

const A: usize = 0;
const B: usize = 1;
const TELL: usize = 2;
const CLEAN: usize = 3;

/// Gives events one after the other and returns the steps that each lets run, undo included.
fn play(state: &mut State, events: Vec<Event>) -> Vec<Task> {
    let at_ms = 1 + i64::try_from(state.attempts).unwrap();
    let mut runs = Vec::new();
    for event in events {
        for decision in next(state, event, at_ms) {
            if let Decision::Run { task } = decision {
                runs.push(task);
            }
        }
    }
    runs
}

fn started(step: usize) -> Event {
    Event::Started { task: Task::of(step), attempt: 1 }
}

fn done(step: usize) -> Vec<Event> {
    vec![started(step), succeeded(Task::of(step), 1, json!({"n": step}))]
}

fn fails(step: usize) -> Vec<Event> {
    vec![started(step), failed(Task::of(step), 1, Code::AgentFailed)]
}

fn undone(step: usize) -> Vec<Event> {
    let task = Task::undo(step);
    vec![Event::Started { task, attempt: 1 }, succeeded(task, 1, json!(null))]
}

fn outcomes(state: &State) -> Vec<Option<Outcome>> {
    state.steps.iter().map(|step| step.outcome).collect()
}

fn resolved(state: &State, text: &str) -> Result<Value, Code> {
    let mut problems = Vec::new();
    let template = Template::parse(&json!(text), &crate::definition::Place::ROOT, &mut problems);
    assert_eq!(problems, Vec::new());
    template.resolve(&Frame::of(state), &mut Fuel::evaluation()).map_err(|fault| fault.code)
}

/// An execution of which `a` completed and `b` runs.
fn at_b(more: Value) -> State {
    let mut state = flow(more);
    play(&mut state, [vec![begun()], done(A), vec![started(B)]].concat());
    state
}

#[test]
fn after_a_completed_body_only_finally_runs() {
    let mut state = at_b(json!({}));
    let runs = play(&mut state, vec![succeeded(Task::of(B), 1, json!(1))]);
    assert_eq!((runs, state.status), (vec![Task::of(CLEAN)], Status::Running));
    assert_eq!(resolved(&state, "${execution.status}"), Ok(json!("completed")));
    assert_eq!(resolved(&state, "${failure.code}"), Err(Code::ExprPathNotFound));
    assert_eq!(resolved(&state, "${failure.code ?? none}"), Ok(json!("none")));
    play(&mut state, done(CLEAN));
    assert_eq!(state.status, Status::Completed);
    assert_eq!(state.steps[TELL].skip.as_ref().unwrap().reason, "The execution did not fail");
}

#[test]
fn a_failed_body_is_rolled_back_then_on_failure_then_finally() {
    let mut state = at_b(json!({}));
    let runs = play(&mut state, vec![failed(Task::of(B), 1, Code::AgentFailed)]);
    assert_eq!((runs, state.status), (vec![Task::undo(A)], Status::Compensating));
    assert_eq!(play(&mut state, undone(A)), [Task::of(TELL)]);
    let seen =
        ["execution.status", "failure.code", "failure.message", "failure.stepId", "steps.b.error.attempts"];
    let seen = seen.map(|name| resolved(&state, &format!("${{{name}}}")).unwrap());
    assert_eq!(seen, [json!("compensated"), json!("AGENT_FAILED"), json!("no"), json!("b"), json!(1)]);
    assert_eq!(play(&mut state, done(TELL)), [Task::of(CLEAN)]);
    play(&mut state, done(CLEAN));
    assert_eq!(state.status, Status::Compensated);
}

#[test]
fn a_failing_closing_step_keeps_no_other_from_running_and_hides_no_error() {
    let mut state = at_b(json!({"compensateOn": []}));
    play(&mut state, vec![failed(Task::of(B), 1, Code::Timeout)]);
    assert_eq!(play(&mut state, fails(TELL)), [Task::of(CLEAN)]);
    play(&mut state, fails(CLEAN));
    assert_eq!(state.status, Status::Failed);
    let errors: Vec<_> = state.errors.iter().map(|one| (one.step, one.fault.code)).collect();
    assert_eq!(
        errors,
        [(Some(B), Code::Timeout), (Some(TELL), Code::AgentFailed), (Some(CLEAN), Code::AgentFailed)]
    );
}

#[test]
fn a_failed_finally_fails_a_completed_body_without_a_rollback() {
    let mut state = at_b(json!({}));
    play(&mut state, vec![succeeded(Task::of(B), 1, json!(1))]);
    let runs = play(&mut state, fails(CLEAN));
    assert_eq!((runs, state.status), (vec![], Status::Failed));
    assert_eq!(state.steps[TELL].outcome, Some(Outcome::Skipped), "the body did not fail");
    // Taken up again, what completed holds, and only the handler runs.
    assert_eq!(play(&mut state, vec![Event::Again]), [Task::of(CLEAN)]);
    play(&mut state, done(CLEAN));
    assert_eq!(state.status, Status::Completed);
}

#[test]
fn closing_steps_wait_for_each_other_and_an_independent_one_runs_all_the_same() {
    let mut state = at_b(json!({"compensateOn": [], "finally": [
        {"id": "x", "agentId": "@test/agent"},
        {"id": "y", "agentId": "@test/agent", "dependsOn": ["x"]},
        {"id": "z", "agentId": "@test/agent", "input": {"b": "${steps.b.output}"}},
        {"id": "a-was", "agentId": "@test/agent", "input": {"a": "${steps.a.output.n}"}}]}));
    play(&mut state, vec![failed(Task::of(B), 1, Code::AgentFailed)]);
    assert_eq!(play(&mut state, done(TELL)), [Task::of(3), Task::of(6)]);
    play(&mut state, [fails(3), done(6)].concat());
    assert_eq!(state.status, Status::Failed);
    let reason = |step: usize| state.steps[step].skip.as_ref().unwrap().reason.clone();
    assert_eq!(reason(4), "Dependency 'x' failed");
    assert_eq!(reason(5), "Needs the output of 'b', which has none");
}

#[test]
fn a_cancelled_execution_runs_finally_and_not_on_failure() {
    let mut state = at_b(json!({}));
    play(&mut state, vec![cancel()]);
    assert!(state.is_stopping());
    let runs = play(&mut state, vec![failed(Task::of(B), 1, Code::Cancelled)]);
    assert_eq!((runs, state.status), (vec![Task::of(CLEAN)], Status::Cancelling));
    assert!(!state.is_stopping(), "handlers have no grace that ends");
    assert_eq!(resolved(&state, "${failure.code} ${failure.message}"), Ok(json!("CANCELLED enough")));
    // A second cancel, the end of the grace, a pause and the time limit change nothing.
    play(&mut state, vec![started(CLEAN), cancel(), Event::Forced, Event::Due { task: None }]);
    play(&mut state, vec![Event::Paused { reason: "wait".into() }]);
    assert_eq!((state.status, state.pause.is_none()), (Status::Cancelling, true));
    // After a crash the attempt is made again; it is not cancelled.
    assert_eq!(play(&mut state, vec![Event::Lost { task: Task::of(CLEAN) }]), [Task::of(CLEAN)]);
    play(&mut state, done(CLEAN));
    assert_eq!(state.status, Status::Cancelled);
    assert_eq!(state.steps[TELL].skip.as_ref().unwrap().reason, "The execution was cancelled");
}

#[test]
fn force_leaves_closing_steps_out_and_stops_those_that_run() {
    let force = || Event::CancelAsked { reason: "now".into(), graceful: false, force: true };
    let mut state = at_b(json!({}));
    let runs = play(&mut state, vec![force(), Event::Forced]);
    assert_eq!((runs, state.status), (vec![], Status::Cancelled));
    let cancelled = Some(Outcome::Cancelled);
    let skipped = Some(Outcome::Skipped);
    assert_eq!(outcomes(&state), [Some(Outcome::Completed), cancelled, skipped, skipped]);
    let mut state = at_b(json!({}));
    play(&mut state, vec![succeeded(Task::of(B), 1, json!(1)), started(CLEAN)]);
    let decisions = next(&mut state, force(), 9);
    assert!(decisions.contains(&Decision::Stop { task: Task::of(CLEAN) }), "{decisions:?}");
    assert_eq!((state.status, state.steps[CLEAN].outcome), (Status::Cancelled, cancelled));
}

#[test]
fn what_never_began_has_nothing_to_close() {
    let mut state = flow(json!({}));
    assert_eq!(play(&mut state, vec![cancel()]), []);
    assert_eq!(state.status, Status::Cancelled);
    assert_eq!(state.steps[CLEAN].skip.as_ref().unwrap().reason, "The execution did not begin");
}

#[test]
fn the_time_limit_is_one_for_the_body_and_its_failure_is_seen() {
    let mut state = at_b(json!({"policies": {"timeout": 50}, "compensateOn": []}));
    play(&mut state, vec![Event::Due { task: None }]);
    let decisions = next(&mut state, failed(Task::of(B), 1, Code::Cancelled), 60);
    assert!(decisions.contains(&Decision::Forget { task: None }), "{decisions:?}");
    assert!(decisions.contains(&Decision::Run { task: Task::of(TELL) }), "{decisions:?}");
    assert_eq!(resolved(&state, "${failure.code} ${failure.stepId ?? none}"), Ok(json!("TIMEOUT none")));
    play(&mut state, vec![Event::Due { task: None }]);
    play(&mut state, [done(TELL), done(CLEAN)].concat());
    assert_eq!((state.status, state.errors[0].fault.code), (Status::Failed, Code::Timeout));
}

#[test]
fn a_spent_budget_does_not_keep_closing_steps_waiting() {
    let mut state = flow(json!({"policies": {"budget": {"steps": 3}}, "compensateOn": []}));
    play(&mut state, [vec![begun()], done(A), fails(B), done(TELL), done(CLEAN)].concat());
    assert_eq!((state.status, state.attempts), (Status::Failed, 4));
}

#[test]
fn closing_steps_of_a_paused_execution_wait_until_it_is_resumed() {
    for (end, first) in
        [(succeeded(Task::of(B), 1, json!(1)), CLEAN), (failed(Task::of(B), 1, Code::AgentFailed), TELL)]
    {
        let mut state = at_b(json!({"compensateOn": []}));
        play(&mut state, vec![Event::Paused { reason: "wait".into() }]);
        assert_eq!(play(&mut state, vec![end]), []);
        assert_eq!(state.status, Status::Paused);
        let resumed = Event::Resumed { budget: NewBudget::default() };
        assert_eq!(play(&mut state, vec![resumed]), [Task::of(first)]);
    }
}

#[test]
fn a_retry_runs_the_closing_steps_again_under_new_keys() {
    let mut state = at_b(json!({"compensateOn": []}));
    play(&mut state, vec![failed(Task::of(B), 1, Code::AgentFailed)]);
    play(&mut state, [done(TELL), fails(CLEAN)].concat());
    assert_eq!(state.status, Status::Failed);
    assert_eq!(play(&mut state, vec![Event::Again]), [Task::of(B)]);
    assert_eq!((state.errors.len(), state.closing.is_none()), (0, true));
    play(&mut state, fails(B));
    let key = |step: usize| crate::engine::scope::default_key(&state, Task::of(step));
    assert_eq!(
        (key(TELL), key(CLEAN)),
        ("exec-1:tell:g2".into(), "exec-1:clean".into()),
        "clean was not done"
    );
    play(&mut state, [done(TELL), done(CLEAN)].concat());
    assert_eq!((state.status, state.errors.len()), (Status::Failed, 1));
}

#[test]
fn a_rollback_asked_for_by_the_parent_comes_after_the_closing_steps_and_runs_them_once() {
    // While the handlers run.
    let mut state = at_b(json!({}));
    play(&mut state, vec![succeeded(Task::of(B), 1, json!(1)), started(CLEAN), Event::UndoAsked]);
    assert_eq!(state.steps[CLEAN].outcome, None, "it goes on");
    let runs = play(&mut state, vec![succeeded(Task::of(CLEAN), 1, json!(1))]);
    assert_eq!((runs, state.status), (vec![Task::undo(A)], Status::Compensating));
    assert_eq!(play(&mut state, undone(A)), []);
    assert_eq!(state.status, Status::Compensated);
    // After the end.
    let mut state = at_b(json!({}));
    play(&mut state, [vec![succeeded(Task::of(B), 1, json!(1))], done(CLEAN)].concat());
    assert_eq!(play(&mut state, vec![Event::UndoAsked]), [Task::undo(A)]);
    assert_eq!(play(&mut state, undone(A)), []);
    assert_eq!(state.status, Status::Compensated);
}

#[test]
fn the_error_of_a_step_is_seen_by_those_that_run_after_it_failed() {
    let mut state = super::state(json!([
        {"id": "a", "agentId": "@test/agent", "onError": "continue"},
        {"id": "b", "agentId": "@test/agent", "dependsOn": ["a"], "if": "${steps.a.error.code ?? none} == \"TIMEOUT\""},
        {"id": "c", "agentId": "@test/agent", "fallbackStepId": "d"},
        {"id": "d", "agentId": "@test/agent", "input": "${steps.c.error}"},
    ]));
    play(&mut state, vec![begun()]);
    assert_eq!(resolved(&state, "${steps.a.error}"), Err(Code::ExprPathNotFound), "it has not failed");
    assert_eq!(play(&mut state, vec![started(0), failed(Task::of(0), 3, Code::Timeout)]), [Task::of(1)]);
    let seen = resolved(&state, "${steps.a.error}").unwrap();
    assert_eq!(
        (&seen["code"], &seen["message"], &seen["attempts"]),
        (&json!("TIMEOUT"), &json!("no"), &json!(3))
    );
    play(&mut state, [done(1), fails(2)].concat());
    assert_eq!(resolved(&state, "${steps.c.error.code}"), Ok(json!("AGENT_FAILED")));
    assert_eq!(resolved(&state, "${steps.b.error.code ?? none}"), Ok(json!("none")), "it completed");
}
