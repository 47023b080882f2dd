//! What takes a slot and what does not, and limits by key that are held for as long as they should be.

use std::sync::Arc;

use orchestr8_stores::sqlite::Place;
use orchestr8_workflows::Settings;
use serde_json::{Value, json};

use crate::world::{Desk, World, flow, settings, step, with};

async fn one_slot() -> World {
    World::with(Place::Memory, Settings { running_steps: 1, ..settings() }, Arc::default()).await
}

fn remote(id: &str) -> Value {
    with(step(id, &[], json!({"hold": true, "value": 1})), json!({"agentId": "@test/remote"}))
}

fn limited(id: &str, policies: Value) -> Value {
    let mut workflow = flow(json!([step("l", &[], json!({"value": 1}))]));
    workflow["id"] = json!(id);
    workflow["policies"] = policies;
    workflow
}

async fn status(world: &World, id: &str) -> Value {
    world.ask("executions.get", json!({"executionId": id})).await["status"].clone()
}

#[tokio::test]
async fn steps_done_elsewhere_have_their_own_limit_and_keep_no_other_waiting() {
    let world = one_slot().await;
    let first = world.start(json!([remote("one")])).await;
    world.desk.called("one", 1).await;
    let second = world.start(json!([remote("two"), step("here", &[], json!({"value": 2}))])).await;
    let now = world.until_true(&second, |now| now["steps"]["here"]["status"] == "completed").await;
    assert_eq!(now["steps"]["two"]["status"], "ready", "one call at a time: {now:#}");
    assert_eq!(world.desk.count("two"), 0);
    world.desk.gate("one").notify_one();
    world.end(&first).await;
    world.desk.called("two", 1).await;
    world.desk.gate("two").notify_one();
    assert_eq!(world.end(&second).await["status"], "completed");
}

#[tokio::test]
async fn a_step_that_finds_no_place_elsewhere_in_time_fails_and_says_why() {
    let world =
        World::with(Place::Memory, Settings { queue_wait_ms: 30, ..settings() }, Arc::default()).await;
    world.start(json!([remote("one")])).await;
    world.desk.called("one", 1).await;
    let end = world.run(json!([remote("two")])).await;
    let error = &end["steps"]["two"]["error"];
    assert_eq!((&error["code"], &error["details"]["reason"]), (&json!("TIMEOUT"), &json!("remote_limit")));
    assert_eq!(error["details"]["agentId"], "@test/remote", "{end:#}");
}

/// More executions than may have begun wait for others; one that wants a slot begins all the same.
#[tokio::test]
async fn executions_that_wait_for_others_do_not_count_as_begun() {
    let world = one_slot().await;
    for _ in 0..40 {
        world.start(json!([{"id": "w", "type": "agent", "agentId": "@worker/unserved"}])).await;
    }
    assert_eq!(world.run(json!([step("a", &[], json!({"value": 1}))])).await["status"], "completed");
}

/// WF-19.1: each attempt is on record with its number, and the wait before it holds no slot.
#[tokio::test]
async fn every_attempt_is_on_record_and_its_time_budget_holds() {
    let world = one_slot().await;
    let retried = |input: Value, base_ms: u64, total_ms: u64| {
        let resilience = json!({"maxAttempts": 9, "baseDelayMs": base_ms, "jitter": "equal",
            "totalBudgetMs": total_ms, "timeoutMs": total_ms});
        with(step("a", &[], input), json!({"resilience": resilience}))
    };
    let id = world.start(json!([retried(json!({"failTimes": 2, "value": 1}), 40, 60_000)])).await;
    assert_eq!(world.end(&id).await["steps"]["a"]["attempts"], 3);
    let numbers = |journal: &[Value], kind: &str, name: &str| -> Vec<u64> {
        let entries = journal.iter().filter(|entry| entry["type"] == kind);
        entries.map(|entry| entry["data"][name].as_u64().unwrap()).collect()
    };
    assert_eq!(numbers(&world.journal(&id).await, "step-start", "attempt"), [1, 2, 3]);
    // Each wait is at most half of what the attempts and waits before it have left.
    let id = world.start(json!([retried(json!({"fail": "UNAVAILABLE"}), 10_000, 400)])).await;
    assert_eq!(world.end(&id).await["status"], "failed");
    let waits = numbers(&world.journal(&id).await, "step-retry", "delayMs");
    assert!(waits.len() > 2, "{waits:?}");
    for (at, wait) in waits.iter().enumerate() {
        let before: u64 = waits[..at].iter().sum();
        assert!(*wait <= (400 - before) / 2, "{waits:?}");
    }
}

/// A timer that is set again as soon as it has fired is another timer.
#[tokio::test]
async fn short_backoffs_follow_each_other_at_once() {
    let world = World::new().await;
    let resilience = json!({"maxAttempts": 5, "baseDelayMs": 3, "maxDelayMs": 6, "jitter": "equal"});
    let one = |id: &str| with(step(id, &[], json!({"failTimes": 4})), json!({"resilience": resilience}));
    let mut workflow = flow(json!([one("a"), one("b"), one("c")]));
    workflow["policies"] = json!({"circuitBreaker": {"failureThreshold": 100}});
    let id = world.start_whole(workflow, json!({})).await;
    let end = world.end(&id).await;
    assert_eq!((&end["status"], &end["steps"]["c"]["attempts"]), (&json!("completed"), &json!(5)), "{end:#}");
}

/// An attempt that ran is in doubt, whichever it was; one that failed is not, however long the server was away.
#[tokio::test]
async fn after_a_crash_only_an_attempt_that_ran_is_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let desk: Arc<Desk> = Arc::default();
    let world = World::at(folder.path(), desk.clone()).await;
    let careful = |id: &str, input: Value, delay_ms: u64| {
        let resilience = json!({"baseDelayMs": delay_ms, "jitter": "equal", "totalBudgetMs": 40_000});
        json!([with(step(id, &[], input), json!({"onUnknown": "fail", "resilience": resilience}))])
    };
    let ran = world.start(careful("ran", json!({"hold": true, "failTimes": 1}), 0)).await;
    desk.called("ran", 1).await;
    desk.gate("ran").notify_one();
    desk.called("ran", 2).await;
    let failed = world.start(careful("failed", json!({"failTimes": 1, "value": 1}), 400)).await;
    world.until_true(&failed, |now| now["steps"]["failed"]["status"] == "retrying").await;
    world.die().await;
    let world = World::at(folder.path(), desk.clone()).await;
    let end = world.end(&ran).await;
    let step = &end["steps"]["ran"];
    assert_eq!(
        (&step["error"]["code"], &step["attempts"]),
        (&json!("OUTCOME_UNKNOWN"), &json!(2)),
        "{end:#}"
    );
    let end = world.end(&failed).await;
    assert_eq!(
        (&end["status"], &end["steps"]["failed"]["attempts"]),
        (&json!("completed"), &json!(2)),
        "{end:#}"
    );
    assert_eq!((desk.count("ran"), desk.count("failed")), (2, 2));
}

#[tokio::test]
async fn a_rate_limit_counts_a_start_once_also_when_all_slots_are_taken() {
    let world = one_slot().await;
    let busy = world.start(json!([step("busy", &[], json!({"hold": true}))])).await;
    world.desk.called("busy", 1).await;
    let rate = json!({"rateLimit": {"limit": 2, "perMs": 3_600_000}});
    let first = world.start_whole(limited("rated", rate.clone()), json!({})).await;
    let second = world.start_whole(limited("rated", rate.clone()), json!({})).await;
    world.desk.gate("busy").notify_one();
    for id in [&busy, &first, &second] {
        assert_eq!(world.end(id).await["status"], "completed");
    }
    let third = world.start_whole(limited("rated", rate), json!({})).await;
    assert_eq!(status(&world, &third).await, "queued");
}

/// A start that was cancelled before it came about does not count.
#[tokio::test]
async fn an_execution_cancelled_in_the_queue_gives_its_places_back() {
    let world = one_slot().await;
    let busy = world.start(json!([step("busy", &[], json!({"hold": true}))])).await;
    world.desk.called("busy", 1).await;
    let policies =
        json!({"rateLimit": {"limit": 1, "perMs": 3_600_000}, "concurrency": {"key": "k", "limit": 1}});
    let first = world.start_whole(limited("both", policies.clone()), json!({})).await;
    world.until(&first, "queued").await;
    world.ask("executions.cancel", json!({"executionId": first})).await;
    world.until(&first, "cancelled").await;
    world.desk.gate("busy").notify_one();
    world.end(&busy).await;
    let second = world.start_whole(limited("both", policies), json!({})).await;
    assert_eq!(world.end(&second).await["status"], "completed");
}

#[tokio::test]
async fn a_key_is_held_through_backoff_and_waits_and_by_a_retried_execution() {
    let folder = tempfile::tempdir().unwrap();
    let desk: Arc<Desk> = Arc::default();
    let world = World::at(folder.path(), desk.clone()).await;
    let keyed = |steps: Value| {
        let mut workflow = flow(steps);
        workflow["policies"] = json!({"concurrency": {"key": "k", "limit": 1}});
        workflow
    };
    let backoff = json!({"resilience": {"baseDelayMs": 200, "maxDelayMs": 200, "jitter": "equal"}});
    let fails = with(step("a", &[], json!({"failTimes": 1, "fail": "AGENT_FAILED"})), backoff);
    let first = world.start_whole(keyed(json!([fails])), json!({})).await;
    world.until_true(&first, |now| now["steps"]["a"]["status"] == "retrying").await;
    let waits = json!([{"id": "w", "type": "wait", "wait": {"event": "go"}}]);
    let second = world.start_whole(keyed(waits.clone()), json!({})).await;
    assert_eq!(status(&world, &second).await, "queued");
    assert_eq!(world.end(&first).await["status"], "failed");
    world.until_true(&second, |now| now["steps"]["w"]["status"] == "waiting").await;
    // Taken up again, the first waits for its turn, and a third one behind it.
    world.ask("executions.retry", json!({"executionId": first})).await;
    world.until(&first, "queued").await;
    let third = world.start_whole(keyed(waits), json!({})).await;
    assert_eq!(status(&world, &third).await, "queued");
    world.die().await;
    let world = World::at(folder.path(), desk.clone()).await;
    assert_eq!(status(&world, &first).await, "queued");
    assert_eq!(status(&world, &third).await, "queued");
    assert_eq!(desk.count("a"), 2);
    world.ask("executions.signal", json!({"executionId": second, "name": "go"})).await;
    world.end(&second).await;
    desk.called("a", 3).await;
    assert_eq!(world.end(&first).await["status"], "failed");
    world.until_true(&third, |now| now["steps"]["w"]["status"] == "waiting").await;
}
