//! Workflows that start by themselves.

use std::sync::Arc;

use orchestr8_kernel::ports::store::{Batch, Statement};
use serde_json::{Value, json};

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

/// A schedule for every second, and what it starts: a step that is held until it is let go.
async fn apply(world: &World, backfill: &str, overlap: &str) {
    let held = json!({"hold": true, "value": "${schedule.time}"});
    let workflow = flow(json!([step("a", &[], held)]));
    world.ask("workflows.apply", json!({"workflow": workflow})).await;
    let schedule = json!({"id": "often", "workflowId": "flow", "cron": "* * * * * *", "overlap": overlap,
                          "backfill": backfill, "paused": true});
    world.ask("schedules.apply", schedule).await;
}

/// As if the server had been stopped for so many seconds. Gives the first moment that it missed.
async fn miss(world: &World, seconds: i64) -> i64 {
    let now_ms = world.kernel.ports().clock.now_ms();
    let missed_ms = (now_ms / 1000 - seconds) * 1000;
    let mut batch = Batch::new();
    batch.then(Statement::new(
        "UPDATE wf_schedules SET next_ms = ?1 WHERE id = 'often'",
        vec![missed_ms.into()],
    ));
    world.kernel.ports().store.commit(batch).await.unwrap();
    missed_ms
}

/// The moments of executions that were started, the earliest start first.
async fn moments(world: &World) -> Vec<i64> {
    let list = world.ask("executions.list", json!({"limit": 500})).await;
    let time = |execution: &Value| {
        assert_eq!(execution["schedule"]["id"], "often");
        let time: jiff::Timestamp = execution["schedule"]["time"].as_str().unwrap().parse().unwrap();
        time.as_millisecond()
    };
    list["executions"].as_array().unwrap().iter().rev().map(time).collect()
}

/// Stops the world in which a schedule was applied, and starts it again after it missed so many seconds.
async fn after_downtime(backfill: &str, overlap: &str, seconds: i64) -> (tempfile::TempDir, World, i64, i64) {
    let folder = tempfile::tempdir().unwrap();
    let world = World::at(folder.path(), Arc::default()).await;
    apply(&world, backfill, overlap).await;
    world.hub.stop();
    world.ask("schedules.resume", json!({"id": "often"})).await;
    let missed_ms = miss(&world, seconds).await;
    world.die().await;
    let world = World::at(folder.path(), Arc::default()).await;
    let since_ms = world.kernel.ports().clock.now_ms();
    (folder, world, missed_ms, since_ms)
}

#[tokio::test]
async fn backfill_none_makes_up_for_nothing_after_a_short_outage() {
    let (_folder, world, missed_ms, since_ms) = after_downtime("none", "allow", 5).await;
    world.desk.called("a", 2).await;
    let found = moments(&world).await;
    assert!(found.iter().all(|at_ms| *at_ms > missed_ms + 5000 - 1000), "{found:?} {since_ms}");
    assert!(found[0] >= since_ms - 1500, "{found:?} began before {since_ms}");
    world.hub.stop();
}

#[tokio::test]
async fn missed_moments_are_started_one_at_a_time_and_in_their_order_with_queue() {
    let (_folder, world, missed_ms, _) = after_downtime("all", "queue", 4).await;
    for round in 1..=5 {
        world.desk.called("a", round).await;
        let list = world.ask("executions.list", json!({"status": "running"})).await;
        assert_eq!(list["executions"].as_array().unwrap().len(), 1, "round {round}: {list:#}");
        world.desk.gate("a").notify_one();
    }
    let found = moments(&world).await;
    let expected: Vec<i64> = (0..5).map(|second| missed_ms + second * 1000).collect();
    assert_eq!(&found[..5], expected, "every moment once, in its order");
    world.hub.stop();
}

#[tokio::test]
async fn a_scheduled_execution_knows_its_moment_and_others_are_refused_or_take_the_default() {
    let world = World::new().await;
    let needs = flow(json!([step("a", &[], json!({"value": "${schedule.time}"}))]));
    let refused = world.refused("workflows.execute", json!({"workflow": needs})).await;
    assert_eq!(refused.code.as_str(), "INVALID_ARGUMENT");
    assert!(refused.message.contains("${schedule.time}"), "{refused:?}");
    let wrong = flow(json!([step("a", &[], json!({"value": "${schedule.moment}"}))]));
    let refused = world.refused("workflows.execute", json!({"workflow": wrong})).await;
    assert_eq!(refused.code.as_str(), "INVALID_WORKFLOW");
    let either = flow(json!([step("a", &[], json!({"value": "${schedule.id ?? \"by hand\"}"}))]));
    let id = world.start_whole(either.clone(), json!({})).await;
    let ended = world.end(&id).await;
    assert_eq!((&ended["outputs"]["a"], ended.get("schedule")), (&json!("by hand"), None));

    let both = json!({"value": {"id": "${schedule.id}", "time": "${schedule.time}"}});
    let workflow = json!({"id": "flow", "version": "2.0.0", "name": "Flow", "steps": [step("a", &[], both)]});
    world.ask("workflows.apply", json!({"workflow": workflow})).await;
    world.ask("schedules.apply", json!({"id": "nightly", "workflowId": "flow", "cron": "0 3 * * *"})).await;
    let started = world.ask("schedules.trigger", json!({"id": "nightly"})).await;
    let id = started["executionId"].as_str().unwrap();
    let ended = world.end(id).await;
    assert_eq!(ended["schedule"]["id"], "nightly");
    assert_eq!(ended["outputs"]["a"], ended["schedule"], "{ended:#}");
    let entries = world.journal(id).await;
    assert_eq!(entries[0]["data"]["schedule"], ended["schedule"], "{entries:#?}");
    // What is forked from it is about the same moment.
    let fork = world.ask("executions.fork", json!({"executionId": id, "fromStep": "a"})).await;
    let forked = world.end(fork["executionId"].as_str().unwrap()).await;
    assert_eq!(forked["outputs"]["a"], ended["schedule"], "{forked:#}");
}
