//! Rollbacks and what follows them on a running hub: keys of authors, circuits that are open, retries under limits by key.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::world::{Desk, World, flow, step, with};

fn undo(input: Value) -> Value {
    json!({"agentId": "@test/agent", "input": input, "resilience": {"baseDelayMs": 0}})
}

fn keys(world: &World, step: &str) -> Vec<String> {
    let calls = world.desk.calls.lock();
    calls.iter().filter(|(called, _)| called == step).map(|(_, key)| key.clone()).collect()
}

async fn retry(world: &World, id: &str) -> Value {
    world.ask("executions.retry", json!({"executionId": id})).await
}

#[tokio::test]
async fn a_key_of_the_author_counts_generations_in_undos_retries_and_forks() {
    let world = World::new().await;
    let own = json!({"idempotencyKey": "order-${variables.order}", "compensate": undo(json!({"value": 1}))});
    let mut workflow = flow(json!([
        with(step("charge", &[], json!({"value": 1})), own),
        step("ship", &["charge"], json!({"fail": "AGENT_FAILED"})),
    ]));
    workflow["variables"] = json!({"order": 7});
    let id = world.start_whole(workflow, json!({})).await;
    assert_eq!(world.end(&id).await["status"], "compensated");
    retry(&world, &id).await;
    world.until_true(&id, |_| world.desk.count("charge") == 4).await;
    assert_eq!(world.end(&id).await["status"], "compensated");
    let fork = world.ask("executions.fork", json!({"executionId": id, "fromStep": "ship"})).await;
    world.end(fork["executionId"].as_str().unwrap()).await;
    let wanted = [
        "order-7",
        "order-7:compensate",
        "order-7:g2",
        "order-7:g2:compensate",
        "order-7:g3",
        "order-7:g3:compensate",
    ];
    assert_eq!(keys(&world, "charge"), wanted);
}

#[tokio::test]
async fn a_new_child_after_a_rollback_uses_new_keys() {
    let world = World::new().await;
    let own = json!({"idempotencyKey": "order-7", "compensate": undo(json!({"value": 1}))});
    let child = flow(json!([with(step("charge", &[], json!({"value": 1})), own)]));
    let steps = json!([
        {"id": "pay", "type": "workflow", "workflow": child},
        step("ship", &["pay"], json!({"fail": "AGENT_FAILED"})),
    ]);
    let id = world.start(steps).await;
    assert_eq!(world.end(&id).await["status"], "compensated");
    retry(&world, &id).await;
    world.until_true(&id, |_| world.desk.count("charge") == 4).await;
    world.end(&id).await;
    assert_eq!(
        keys(&world, "charge"),
        ["order-7", "order-7:compensate", "order-7:g2", "order-7:g2:compensate"]
    );
}

#[tokio::test]
async fn an_undo_waits_until_the_circuit_lets_it_through() {
    let world = World::new().await;
    let breaker = json!({"failureThreshold": 1, "openDurationMs": 300});
    let flaky = json!({"resilience": {"maxAttempts": 2, "baseDelayMs": 0, "circuitBreaker": breaker}});
    let end = world
        .run(json!([
            with(step("charge", &[], json!({"value": 1})), json!({"compensate": undo(json!({"value": 2}))})),
            with(step("ship", &["charge"], json!({"fail": "UNAVAILABLE"})), flaky),
        ]))
        .await;
    assert_eq!(
        (&end["status"], &end["compensation"]["notUndone"]),
        (&json!("compensated"), &json!([])),
        "{end:#}"
    );
    assert_eq!((world.desk.count("charge"), &end["compensation"]["undone"]), (2, &json!(1)));
    let journal = world.journal(end["executionId"].as_str().unwrap()).await;
    let waited = journal.iter().find(|entry| entry["type"] == "step-retry" && entry["stepId"] == "charge");
    assert_eq!(waited.unwrap()["data"]["code"], "CIRCUIT_OPEN");
}

#[tokio::test]
async fn a_step_that_is_not_retried_is_undone_with_retries() {
    let world = World::new().await;
    let charge = json!({"id": "charge", "type": "agent", "agentId": "@test/agent", "maxRetries": 0, "input": {"value": 1},
                        "compensate": undo(json!({"failTimes": 3}))});
    let end = world.run(json!([charge, step("ship", &["charge"], json!({"fail": "AGENT_FAILED"}))])).await;
    assert_eq!(
        (&end["status"], &end["compensation"]["undone"]),
        (&json!("compensated"), &json!(1)),
        "{end:#}"
    );
    assert_eq!(world.desk.count("charge"), 4, "one call, and three attempts to undo it");
}

#[tokio::test]
async fn an_attempt_that_was_lost_with_the_process_is_undone_although_the_next_one_failed_for_sure() {
    let folder = tempfile::tempdir().unwrap();
    let desk: Arc<Desk> = Arc::default();
    let world = World::at(folder.path(), desk.clone()).await;
    let charge = step("charge", &[], json!({"hold": true, "stubborn": true, "fail": "INVALID_ARGUMENT"}));
    let id = world.start(json!([with(charge, json!({"compensate": undo(json!({"value": 1}))}))])).await;
    desk.called("charge", 1).await;
    world.die().await;
    let world = World::at(folder.path(), desk.clone()).await;
    desk.called("charge", 2).await;
    desk.gate("charge").notify_waiters();
    desk.gate("charge").notify_one();
    let end = world.end(&id).await;
    assert_eq!(
        (&end["status"], &end["compensation"]["undone"]),
        (&json!("compensated"), &json!(1)),
        "{end:#}"
    );
}

/// A workflow of which one execution runs at a time; its step waits until it is let go.
fn one_at_a_time() -> Value {
    let mut workflow = flow(json!([step("a", &[], json!({"hold": true}))]));
    workflow["policies"] = json!({"concurrency": {"key": "k", "limit": 1}});
    workflow
}

async fn statuses(world: &World, ids: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for id in ids {
        let resource = world.ask("executions.get", json!({"executionId": id})).await;
        found.push(resource["status"].as_str().unwrap().to_owned());
    }
    found.sort();
    found
}

#[tokio::test]
async fn retried_executions_keep_the_limit_of_their_key_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let desk: Arc<Desk> = Arc::default();
    let world = World::at(folder.path(), desk.clone()).await;
    let mut ids = Vec::new();
    for calls in 1..=3 {
        let id = world.start_whole(one_at_a_time(), json!({})).await;
        desk.called("a", calls).await;
        world.ask("executions.cancel", json!({"executionId": id})).await;
        world.end(&id).await;
        ids.push(id);
    }
    let first = retry(&world, &ids[0]).await;
    assert_eq!(first["status"], "running");
    desk.called("a", 4).await;
    for id in &ids[1..] {
        assert_eq!(retry(&world, id).await["status"], "queued");
        world.until(id, "queued").await;
    }
    assert_eq!(desk.count("a"), 4, "the others wait for their turn");
    world.die().await;
    let world = World::at(folder.path(), desk.clone()).await;
    desk.called("a", 5).await;
    assert_eq!(statuses(&world, &ids).await, ["queued", "queued", "running"]);
    for calls in 6..=7 {
        desk.gate("a").notify_one();
        desk.called("a", calls).await;
    }
    desk.gate("a").notify_one();
    for id in &ids {
        assert_eq!(world.end(id).await["status"], "completed");
    }
    assert_eq!(desk.count("a"), 7, "each ran once more, and one again after the restart");
}
