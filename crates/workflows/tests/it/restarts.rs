//! The process dies and is started again: finished steps do not run again, and everything ends.

use std::sync::Arc;

use orchestr8_contract::TraceParent;
use serde_json::json;

use crate::world::{Desk, World, flow, step, value, with};

#[tokio::test]
async fn an_execution_goes_on_after_a_restart_without_repeating_a_finished_step() {
    let folder = tempfile::tempdir().unwrap();
    let desk: Arc<Desk> = Arc::default();
    let world = World::at(folder.path(), desk.clone()).await;
    let id = world
        .start(json!([
            step("a", &[], json!({"value": 1})),
            step("b", &["a"], json!({"hold": true, "value": 2})),
            step("c", &["b"], json!({"value": "${steps.a.output}${steps.b.output}"})),
        ]))
        .await;
    desk.called("b", 1).await;
    world.die().await;
    let world = World::at(folder.path(), desk.clone()).await;
    desk.called("b", 2).await;
    desk.gate("b").notify_one();
    let end = world.end(&id).await;
    assert_eq!(end["outputs"]["c"], "12");
    assert_eq!((desk.count("a"), desk.count("b"), desk.count("c")), (1, 2, 1));
    let keys: Vec<String> =
        desk.calls.lock().iter().filter(|(step, _)| step == "b").map(|(_, key)| key.clone()).collect();
    assert_eq!(keys[0], keys[1], "an attempt keeps its key");
    assert!(world.kinds(&id).await.contains(&"step-lost".to_owned()));
}

#[tokio::test]
async fn the_trace_of_a_request_reaches_every_step_over_a_restart_too() {
    let folder = tempfile::tempdir().unwrap();
    let desk: Arc<Desk> = Arc::default();
    let world = World::at(folder.path(), desk.clone()).await;
    let inner = flow(json!([step("in", &[], json!({"trace": true}))]));
    let steps = json!([
        step("held", &[], json!({"hold": true})),
        step("told", &["held"], json!({"trace": true})),
        {"id": "child", "type": "workflow", "workflow": inner, "dependencies": ["held"]},
    ]);
    let mut submission = world.submission("workflows.execute", json!({"workflow": flow(steps)}));
    submission.trace = TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    let settled = world.kernel.submit(submission).await;
    let expected = TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
    let expected = expected.within(settled.run.0).to_string();
    let id = value(settled)["executionId"].as_str().unwrap().to_owned();
    desk.called("held", 1).await;
    world.die().await;
    let world = World::at(folder.path(), desk.clone()).await;
    desk.called("held", 2).await;
    desk.gate("held").notify_one();
    let end = world.end(&id).await;
    assert_eq!(end["outputs"]["told"], expected, "{end:#}");
    assert_eq!(end["outputs"]["child"]["in"], expected, "{end:#}");
}

#[tokio::test]
async fn a_step_whose_end_is_unknown_fails_or_asks_as_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let desk: Arc<Desk> = Arc::default();
    let world = World::at(folder.path(), desk.clone()).await;
    let hold = |policy: &str| {
        json!([with(step(policy, &[], json!({"hold": true, "value": 1})), json!({"onUnknown": policy}))])
    };
    let fails = world.start(hold("fail")).await;
    let asks = world.start(hold("ask")).await;
    desk.called("fail", 1).await;
    desk.called("ask", 1).await;
    world.die().await;
    let world = World::at(folder.path(), desk.clone()).await;
    let end = world.end(&fails).await;
    assert_eq!(end["steps"]["fail"]["error"]["code"], "OUTCOME_UNKNOWN", "{end:#}");
    world.until_true(&asks, |now| now["steps"]["ask"]["status"] == "unknown").await;
    let args = json!({"executionId": asks, "stepId": "ask", "action": "complete", "output": 9});
    world.ask("executions.resolve", args).await;
    assert_eq!(world.end(&asks).await["outputs"]["ask"], 9);
    assert_eq!(desk.count("ask"), 1);
}

#[tokio::test]
async fn timers_events_approvals_and_children_survive() {
    let folder = tempfile::tempdir().unwrap();
    let desk: Arc<Desk> = Arc::default();
    let world = World::at(folder.path(), desk.clone()).await;
    let child = json!({"id": "child", "version": "1.0.0", "name": "Child",
        "steps": [step("inner", &[], json!({"hold": true, "value": "from child"}))]});
    let timer = world.start(json!([{"id": "w", "type": "wait", "wait": {"durationMs": 200}}])).await;
    let event = world.start(json!([{"id": "w", "type": "wait", "wait": {"event": "go"}}])).await;
    let asked = world.start(json!([{"id": "w", "type": "approval", "approval": {"message": "?"}}])).await;
    let parent = world.start(json!([{"id": "w", "type": "workflow", "workflow": child}])).await;
    for id in [&event, &asked] {
        world.until_true(id, |now| now["steps"]["w"]["status"] == "waiting").await;
    }
    desk.called("inner", 1).await;
    let open = world.ask("executions.approvals", json!({"executionId": asked})).await;
    world.die().await;
    let world = World::at(folder.path(), desk.clone()).await;
    assert_eq!(world.end(&timer).await["status"], "completed");
    world.ask("executions.signal", json!({"executionId": event, "name": "go"})).await;
    assert_eq!(world.end(&event).await["status"], "completed");
    let token = &open["approvals"][0]["token"];
    world.ask("executions.approve", json!({"token": token, "decision": "reject"})).await;
    assert_eq!(world.end(&asked).await["outputs"]["w"]["decision"], "rejected");
    desk.called("inner", 2).await;
    desk.gate("inner").notify_one();
    assert_eq!(world.end(&parent).await["outputs"]["w"]["inner"], "from child");
}

#[tokio::test]
async fn what_waits_in_line_begins_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let desk: Arc<Desk> = Arc::default();
    let world = World::at(folder.path(), desk.clone()).await;
    let steps = json!([step("a", &[], json!({"hold": true}))]);
    let mut ids = Vec::new();
    for _ in 0..12 {
        ids.push(world.start(steps.clone()).await);
    }
    desk.called("a", 10).await;
    assert_eq!(world.ask("executions.get", json!({"executionId": ids[11]})).await["status"], "queued");
    world.die().await;
    let world = World::at(folder.path(), desk.clone()).await;
    let gate = desk.gate("a");
    let opener = tokio::spawn(async move {
        loop {
            gate.notify_one();
            tokio::task::yield_now().await;
        }
    });
    for id in &ids {
        assert_eq!(world.end(id).await["status"], "completed");
    }
    opener.abort();
}
