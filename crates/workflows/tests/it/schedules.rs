//! Workflows that start by themselves.

use serde_json::json;

use crate::world::{World, flow, step};

#[tokio::test]
async fn a_schedule_is_kept_shown_paused_and_triggered() {
    let world = World::new().await;
    let workflow = flow(json!([step("a", &[], json!({"value": "${execution.id}"}))]));
    let missing = json!({"id": "nightly", "workflowId": "flow", "cron": "0 3 * * *"});
    assert_eq!(world.refused("schedules.apply", missing.clone()).await.code.as_str(), "NOT_FOUND");
    world.ask("workflows.apply", json!({"workflow": workflow})).await;
    let shown = world.ask("schedules.apply", missing).await;
    assert!(shown["nextAt"].as_str().unwrap().contains("T03:00:00"), "{shown}");
    let wrong = json!({"id": "x", "workflowId": "flow", "cron": "never"});
    assert_eq!(world.refused("schedules.apply", wrong).await.code.as_str(), "INVALID_ARGUMENT");
    let undeclared = json!({"id": "x", "workflowId": "flow", "cron": "0 3 * * *", "inputs": {"unknown": 1}});
    let refused = world.refused("schedules.apply", undeclared).await;
    assert!(refused.message.contains("declares no input"), "{refused:?}");
    let paused = world.ask("schedules.pause", json!({"id": "nightly"})).await;
    assert_eq!((&paused["paused"], &paused["nextAt"]), (&json!(true), &json!(null)));
    world.ask("schedules.resume", json!({"id": "nightly"})).await;
    let started = world.ask("schedules.trigger", json!({"id": "nightly"})).await;
    assert_eq!(world.end(started["executionId"].as_str().unwrap()).await["status"], "completed");
    world.ask("schedules.delete", json!({"id": "nightly"})).await;
    assert_eq!(world.ask("schedules.list", json!({})).await["schedules"], json!([]));
}

#[tokio::test]
async fn a_schedule_that_is_due_starts_its_workflow() {
    let world = World::new().await;
    let workflow = flow(json!([step("a", &[], json!({"value": 1}))]));
    world.ask("workflows.apply", json!({"workflow": workflow})).await;
    // Six fields: every second.
    let every_second =
        json!({"id": "often", "workflowId": "flow", "cron": "* * * * * *", "overlap": "allow"});
    world.ask("schedules.apply", every_second).await;
    world.desk.called("a", 1).await;
    let shown = world.ask("schedules.show", json!({"id": "often"})).await;
    assert!(shown["lastExecutionId"].is_string(), "{shown}");
    world.ask("schedules.delete", json!({"id": "often"})).await;
}
