//! Handlers: the steps of `onFailure` and `finally` run when the body has ended, once, also over restarts.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::world::{Desk, World, flow, step, value, with};

fn once(step: Value) -> Value {
    with(step, json!({"resilience": {"maxAttempts": 1}}))
}

fn failing(id: &str) -> Value {
    once(step(id, &[], json!({"fail": "AGENT_FAILED"})))
}

/// A workflow of these steps whose handlers `tell` and `clean` say what they see.
fn handled(steps: Value) -> Value {
    let tell = json!({"why": "${failure.message}", "step": "${failure.stepId}", "code": "${steps.b.error.code ?? none}"});
    let clean = json!({"status": "${execution.status}", "why": "${failure.code ?? none}", "a": "${steps.a.output ?? null}"});
    with(flow(steps), json!({"onFailure": [step("tell", &[], tell)], "finally": [step("clean", &[], clean)]}))
}

fn calls(desk: &Desk) -> Vec<String> {
    desk.calls.lock().iter().map(|(step, _)| step.clone()).collect()
}

#[tokio::test]
async fn after_a_failure_the_rollback_then_on_failure_then_finally() {
    let world = World::new().await;
    let undo = json!({"compensate": {"agentId": "@test/agent", "input": {"value": 0}}});
    let b = with(failing("b"), json!({"dependsOn": ["a"]}));
    let id = world
        .start_whole(handled(json!([with(step("a", &[], json!({"value": 7})), undo), b])), json!({}))
        .await;
    let end = world.end(&id).await;
    assert_eq!(end["status"], "compensated", "{end:#}");
    assert_eq!(calls(&world.desk), ["a", "b", "a", "tell", "clean"]);
    assert_eq!(
        end["outputs"]["tell"]["input"],
        json!({"why": "told to fail", "step": "b", "code": "AGENT_FAILED"})
    );
    assert_eq!(
        end["outputs"]["clean"]["input"],
        json!({"status": "compensated", "why": "AGENT_FAILED", "a": 7})
    );
    assert_eq!(end["steps"]["clean"]["handler"], "finally");
    assert_eq!(end["handlers"], json!({"outcome": "compensated", "running": null, "failed": []}));
    assert_eq!(end["errors"].as_array().unwrap().len(), 1);
    let kinds = world.kinds(&id).await;
    let starts = kinds.iter().filter(|kind| *kind == "handlers-start").count();
    assert_eq!((starts, kinds.last().unwrap().as_str()), (2, "execution-compensated"));
}

#[tokio::test]
async fn a_completed_body_runs_finally_only_and_a_failed_closing_step_is_told_beside_the_error() {
    let world = World::new().await;
    let good = handled(json!([step("a", &[], json!({"value": 1})), step("b", &[], json!({"value": 2}))]));
    let id = world.start_whole(good, json!({})).await;
    let end = world.end(&id).await;
    assert_eq!(
        (&end["status"], calls(&world.desk)),
        (&json!("completed"), vec!["a".into(), "b".into(), "clean".into()])
    );
    assert_eq!(end["steps"]["tell"]["skipReason"], "The execution did not fail");
    assert_eq!(end["outputs"]["clean"]["input"], json!({"status": "completed", "why": "none", "a": 1}));
    let bad = with(
        flow(json!([failing("b")])),
        json!({"onFailure": [failing("tell")], "finally": [once(step("clean", &[], json!({"fail": "NOT_FOUND"})))]}),
    );
    let id = world.start_whole(bad, json!({})).await;
    let end = world.end(&id).await;
    let errors: Vec<&str> =
        end["errors"].as_array().unwrap().iter().map(|one| one["stepId"].as_str().unwrap()).collect();
    assert_eq!((&end["status"], errors), (&json!("failed"), vec!["b", "tell", "clean"]), "{end:#}");
}

#[tokio::test]
async fn cancel_and_pause_do_not_stop_closing_steps_and_force_does() {
    let world = World::new().await;
    let held = |id: &str| {
        with(
            flow(json!([step("a", &[], json!({"hold": true}))])),
            json!({"id": id, "finally": [step(id, &[], json!({"hold": true, "value": 1}))]}),
        )
    };
    let id = world.start_whole(held("clean"), json!({})).await;
    world.desk.called("a", 1).await;
    let answer = world.ask("executions.cancel", json!({"executionId": id})).await;
    assert_eq!(answer["status"], "cancelling");
    world.desk.called("clean", 1).await;
    let answer = world.ask("executions.cancel", json!({"executionId": id})).await;
    assert_eq!(answer["message"], "The steps of finally go on: cancel does not stop them, and force does");
    let fault = world.refused("executions.pause", json!({"executionId": id})).await;
    assert_eq!(fault.code.as_str(), "CONFLICT");
    world.desk.gate("clean").notify_one();
    let end = world.end(&id).await;
    assert_eq!(
        (&end["status"], &end["steps"]["clean"]["status"]),
        (&json!("cancelled"), &json!("completed"))
    );
    let id = world.start_whole(held("sweep"), json!({})).await;
    world.desk.called("a", 2).await;
    world.ask("executions.cancel", json!({"executionId": id})).await;
    world.desk.called("sweep", 1).await;
    world.ask("executions.cancel", json!({"executionId": id, "force": true})).await;
    let end = world.end(&id).await;
    assert_eq!(
        (&end["status"], &end["steps"]["sweep"]["status"]),
        (&json!("cancelled"), &json!("cancelled"))
    );
}

#[tokio::test]
async fn closing_steps_go_on_after_a_restart_and_what_ended_does_not_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let desk: Arc<Desk> = Arc::default();
    let world = World::at(folder.path(), desk.clone()).await;
    let source = with(
        flow(json!([failing("b")])),
        json!({"onFailure": [step("tell", &[], json!({"value": 1}))],
               "finally": [step("clean", &[], json!({"hold": true, "value": 2})), step("last", &["clean"], json!({"value": "${execution.status}"}))]}),
    );
    let id = world.start_whole(source, json!({})).await;
    desk.called("clean", 1).await;
    world.die().await;
    let world = World::at(folder.path(), desk.clone()).await;
    desk.called("clean", 2).await;
    desk.gate("clean").notify_one();
    let end = world.end(&id).await;
    assert_eq!((&end["status"], &end["outputs"]["last"]), (&json!("failed"), &json!("failed")), "{end:#}");
    assert_eq!((desk.count("b"), desk.count("tell"), desk.count("last")), (1, 1, 1));
    let keys: Vec<String> =
        desk.calls.lock().iter().filter(|(step, _)| step == "clean").map(|(_, key)| key.clone()).collect();
    assert_eq!(keys[0], keys[1], "the attempt keeps its key");
}

#[tokio::test]
async fn a_fork_runs_its_own_closing_steps_and_cannot_begin_with_one() {
    let world = World::new().await;
    let b = step("b", &["a"], json!({"fail": "${variables.code}"}));
    let source = with(
        handled(json!([step("a", &[], json!({"value": 1})), once(b)])),
        json!({"variables": {"code": "NOT_FOUND"}}),
    );
    let id = world.start_whole(source, json!({})).await;
    world.end(&id).await;
    let fork = |step: &str| json!({"executionId": id, "fromStep": step, "inputs": {"code": "TIMEOUT"}});
    let fault = world.refused("executions.fork", fork("clean")).await;
    assert!(fault.message.contains("'clean' is a handler"), "{fault:?}");
    let forked = value(world.settle("executions.fork", fork("b")).await);
    let end = world.end(forked["executionId"].as_str().unwrap()).await;
    assert_eq!(end["outputs"]["clean"]["input"]["why"], "TIMEOUT", "{end:#}");
    assert_eq!((world.desk.count("a"), world.desk.count("tell"), world.desk.count("clean")), (1, 2, 2));
}

#[tokio::test]
async fn closing_steps_of_a_child_run_before_its_parent_goes_on() {
    let world = World::new().await;
    let child = with(
        flow(json!([failing("in")])),
        json!({"id": "child", "finally": [step("close", &[], json!({"value": 1}))]}),
    );
    let end = world
        .run(json!([
            {"id": "c", "type": "workflow", "workflow": child, "onError": "continue"},
            step("after", &["c"], json!({"code": "${steps.c.error.code}"})),
        ]))
        .await;
    assert_eq!(calls(&world.desk), ["in", "close", "after"]);
    assert_eq!(
        (&end["status"], &end["outputs"]["after"]["input"]["code"]),
        (&json!("completed"), &json!("AGENT_FAILED"))
    );
}
