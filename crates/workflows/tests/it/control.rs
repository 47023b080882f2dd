//! Cancelling, pausing, budgets, retrying, forking.

use orchestr8_contract::Code;
use orchestr8_kernel::bus::Filter;
use serde_json::{Value, json};

use crate::world::{World, flow, step, with};

#[tokio::test]
async fn wf_19_4_cancelling_stops_what_runs_and_ends_gracefully() {
    let world = World::new().await;
    let id = world.start(json!([step("a", &[], json!({"hold": true})), step("b", &["a"], json!({}))])).await;
    world.desk.called("a", 1).await;
    let answer = world.ask("executions.cancel", json!({"executionId": id, "reason": "enough"})).await;
    assert_eq!((answer["status"].as_str(), answer["graceful"].as_bool()), (Some("cancelling"), Some(true)));
    let end = world.end(&id).await;
    assert_eq!(end["status"], "cancelled");
    let kinds = world.kinds(&id).await;
    assert!(
        kinds.contains(&"cancellation".to_owned()) && kinds.contains(&"cancellation-complete".to_owned()),
        "{kinds:?}"
    );
    let again = world.ask("executions.cancel", json!({"executionId": id})).await;
    assert_eq!((again["status"].as_str(), again["alreadyFinal"].as_bool()), (Some("cancelled"), Some(true)));
    assert_eq!(world.desk.count("b"), 0);
}

#[tokio::test]
async fn wf_19_4_a_step_that_is_told_to_stop_may_still_clean_up() {
    let world = World::new().await;
    let steps = json!([step("a", &[], json!({"hold": true, "stubborn": true, "value": "cleaned up"}))]);
    let id = world.start(steps).await;
    world.desk.called("a", 1).await;
    world.ask("executions.cancel", json!({"executionId": id})).await;
    world.until(&id, "cancelling").await;
    world.desk.gate("a").notify_one();
    let end = world.end(&id).await;
    assert_eq!((end["status"].as_str(), &end["outputs"]["a"]), (Some("cancelled"), &json!("cleaned up")));
    assert!(world.kinds(&id).await.contains(&"cancellation-complete".to_owned()));
}

#[tokio::test]
async fn wf_19_4_a_step_that_waits_for_its_next_attempt_stops_at_once() {
    let world = World::new().await;
    let slow = json!({"resilience": {"maxAttempts": 3, "baseDelayMs": 30_000, "jitter": "equal"}});
    let id = world.start(json!([with(step("a", &[], json!({"failTimes": 3})), slow)])).await;
    world.until_true(&id, |now| now["steps"]["a"]["status"] == "retrying").await;
    world.ask("executions.cancel", json!({"executionId": id})).await;
    assert_eq!(world.end(&id).await["status"], "cancelled");
    assert_eq!(world.desk.count("a"), 1);
}

#[tokio::test]
async fn wf_19_4_what_does_not_stop_is_cut_off() {
    let world = World::new().await;
    let id = world.start(json!([step("a", &[], json!({"hold": true, "stubborn": true}))])).await;
    world.desk.called("a", 1).await;
    world.ask("executions.cancel", json!({"executionId": id, "graceful": false})).await;
    let end = world.end(&id).await;
    assert_eq!(end["status"], "cancelled");
    assert!(world.kinds(&id).await.contains(&"cancellation-forced".to_owned()));
}

#[tokio::test]
async fn a_paused_execution_begins_nothing_until_it_is_resumed() {
    let world = World::new().await;
    let id = world.start(json!([step("a", &[], json!({"hold": true})), step("b", &["a"], json!({}))])).await;
    world.desk.called("a", 1).await;
    world.ask("executions.pause", json!({"executionId": id})).await;
    world.until(&id, "paused").await;
    world.desk.gate("a").notify_one();
    world.until_true(&id, |now| now["steps"]["a"]["status"] == "completed").await;
    assert_eq!(world.desk.count("b"), 0);
    world.ask("executions.resume", json!({"executionId": id})).await;
    assert_eq!(world.end(&id).await["status"], "completed");
}

#[tokio::test]
async fn a_pause_that_was_acknowledged_can_be_undone_at_once() {
    let world = World::new().await;
    for _ in 0..20 {
        let id = world.start(json!([step("a", &[], json!({"hold": true}))])).await;
        world.ask("executions.pause", json!({"executionId": id})).await;
        world.ask("executions.resume", json!({"executionId": id})).await;
        world.ask("executions.cancel", json!({"executionId": id, "graceful": false})).await;
        assert_eq!(world.end(&id).await["status"], "cancelled");
    }
}

#[tokio::test]
async fn a_wall_clock_budget_pauses_on_time_while_a_step_runs_or_waits() {
    let world = World::new().await;
    for first in [step("a", &[], json!({"hold": true})), json!({"id": "a", "wait": {"event": "go"}})] {
        let mut workflow = flow(json!([first, step("b", &["a"], json!({}))]));
        workflow["policies"] = json!({"budget": {"wallClockMs": 300}});
        let id = world.start_whole(workflow, json!({})).await;
        let paused = world.until(&id, "paused").await;
        assert_eq!(paused["pauseReason"], "budget: 300 of 300 ms used".replacen("300", &used(&paused), 1));
        assert!(used(&paused).parse::<u64>().unwrap() < 2000, "{paused:#}");
        assert_ne!(paused["steps"]["a"]["status"], "completed", "{paused:#}");
        // What ran ends; nothing new begins until there is a larger budget.
        world.desk.gate("a").notify_one();
        world.ask("executions.signal", json!({"executionId": id, "name": "go"})).await;
        let held = world.until_true(&id, |one| one["steps"]["a"]["status"] == "completed").await;
        assert_eq!((&held["status"], &held["steps"]["b"]["status"]), (&json!("paused"), &json!("pending")));
        world.ask("executions.resume", json!({"executionId": id, "budget": {"wallClockMs": 60_000}})).await;
        assert_eq!(world.end(&id).await["status"], "completed");
    }
}

/// How much of a budget its pause says was used.
fn used(paused: &Value) -> String {
    let reason = paused["pauseReason"].as_str().unwrap_or_default();
    reason.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_budget_that_is_used_up_pauses_and_a_larger_one_resumes() {
    let world = World::new().await;
    let mut workflow = flow(json!([
        step("a", &[], json!({"tokens": 60, "value": 1})),
        step("b", &["a"], json!({"tokens": 60, "value": 2})),
        step("c", &["b"], json!({"tokens": 60, "value": 3})),
    ]));
    workflow["policies"] = json!({"budget": {"tokens": 100}});
    let id = world.start_whole(workflow, json!({})).await;
    let paused = world.until(&id, "paused").await;
    assert_eq!(paused["pauseReason"], "budget: 120 of 100 tokens used");
    assert_eq!(world.desk.count("c"), 0);
    let fault = world.refused("executions.resume", json!({"executionId": id})).await;
    assert_eq!(fault.code.as_str(), "BUDGET_EXCEEDED");
    world.ask("executions.resume", json!({"executionId": id, "budget": {"tokens": 1000}})).await;
    assert_eq!(world.end(&id).await["status"], "completed");
}

#[tokio::test]
async fn a_failed_execution_is_taken_up_where_it_failed() {
    let world = World::new().await;
    let id = world
        .start(json!([
            step("a", &[], json!({"value": 1})),
            with(
                step("b", &["a"], json!({"failTimes": 1, "value": 2})),
                json!({"resilience": {"maxAttempts": 1}})
            ),
            step("c", &["b"], json!({"value": 3})),
        ]))
        .await;
    assert_eq!(world.end(&id).await["status"], "failed");
    world.ask("executions.retry", json!({"executionId": id})).await;
    let end = world.until(&id, "completed").await;
    assert_eq!((world.desk.count("a"), world.desk.count("b"), world.desk.count("c")), (1, 2, 1));
    assert_eq!(end["errors"], json!([]));
    assert_eq!(world.refused("executions.retry", json!({"executionId": id})).await.code.as_str(), "CONFLICT");
}

#[tokio::test]
async fn a_fork_keeps_what_came_before_and_runs_the_rest_anew() {
    let world = World::new().await;
    let mut workflow = flow(json!([
        step("a", &[], json!({"value": 1})),
        step("b", &["a"], json!({"value": "${variables.word}-${steps.a.output}"})),
    ]));
    workflow["variables"] = json!({"word": "old"});
    let id = world.start_whole(workflow, json!({})).await;
    assert_eq!(world.end(&id).await["outputs"]["b"], "old-1");
    let forked = world
        .ask("executions.fork", json!({"executionId": id, "fromStep": "b", "inputs": {"word": "new"}}))
        .await;
    let end = world.end(forked["executionId"].as_str().unwrap()).await;
    assert_eq!((&end["outputs"]["b"], &end["forkedFrom"]), (&json!("new-1"), &json!(id)));
    assert_eq!(world.desk.count("a"), 1);
}

/// `charge` is undone because `ship` fails.
async fn rolled_back(world: &World) -> String {
    let undo = json!({"compensate": {"agentId": "@test/agent", "input": {"value": "${output}"}}});
    let id = world
        .start(json!([
            with(step("charge", &[], json!({"value": 5})), undo),
            with(
                step("ship", &["charge"], json!({"failTimes": 1, "value": 1})),
                json!({"resilience": {"maxAttempts": 1}})
            ),
        ]))
        .await;
    let end = world.end(&id).await;
    assert_eq!(
        (&end["status"], &end["steps"]["charge"]["compensated"]),
        (&json!("compensated"), &json!(true))
    );
    id
}

fn keys(world: &World, step: &str) -> Vec<String> {
    let calls = world.desk.calls.lock();
    calls.iter().filter(|(called, _)| called == step).map(|(_, key)| key.clone()).collect()
}

#[tokio::test]
async fn a_retry_after_a_rollback_does_what_was_undone_again_under_new_keys() {
    let world = World::new().await;
    let id = rolled_back(&world).await;
    world.ask("executions.retry", json!({"executionId": id})).await;
    world.until(&id, "completed").await;
    let wanted = [format!("{id}:charge"), format!("{id}:charge:compensate"), format!("{id}:charge:g2")];
    assert_eq!(keys(&world, "charge"), wanted);
}

#[tokio::test]
async fn a_fork_does_not_keep_what_was_undone() {
    let world = World::new().await;
    let id = rolled_back(&world).await;
    let forked = world.ask("executions.fork", json!({"executionId": id, "fromStep": "ship"})).await;
    let fork = forked["executionId"].as_str().unwrap();
    assert_eq!(world.end(fork).await["status"], "completed");
    assert_eq!(keys(&world, "charge")[2..], [format!("{fork}:charge:g2")]);
}

#[tokio::test]
async fn a_fork_asks_for_the_approvals_of_what_it_runs_again() {
    let world = World::new().await;
    let mut workflow = flow(json!([
        {"id": "ok", "type": "approval", "approval": {"message": "Pay ${variables.amount}?"}},
        step("pay", &["ok"], json!({"value": "${variables.amount}"})),
    ]));
    workflow["variables"] = json!({"amount": 1});
    let id = world.start_whole(workflow, json!({})).await;
    world.until_true(&id, |seen| seen["steps"]["ok"]["status"] == "waiting").await;
    let open = world.ask("executions.approvals", json!({"executionId": id})).await;
    world
        .ask("executions.approve", json!({"token": open["approvals"][0]["token"], "decision": "approve"}))
        .await;
    assert_eq!(world.end(&id).await["outputs"]["pay"], 1);
    let fork = |inputs| {
        world.ask("executions.fork", json!({"executionId": id, "fromStep": "pay", "inputs": inputs}))
    };
    for inputs in [json!({}), json!({"amount": 1_000_000})] {
        let fork = fork(inputs).await;
        let id = fork["executionId"].as_str().unwrap();
        world.until_true(id, |seen| seen["steps"]["ok"]["status"] == "waiting").await;
    }
    assert_eq!(world.desk.count("pay"), 1);
}

#[tokio::test]
async fn the_state_at_any_moment_can_be_seen_again() {
    let world = World::new().await;
    let end =
        world.run(json!([step("a", &[], json!({"value": 1})), step("b", &["a"], json!({"value": 2}))])).await;
    let id = end["executionId"].as_str().unwrap();
    let then = world.ask("executions.get", json!({"executionId": id, "at": 3})).await;
    assert_eq!(
        (then["status"].as_str(), then["steps"]["a"]["status"].as_str()),
        (Some("running"), Some("completed"))
    );
    assert_eq!(then["outputs"].get("b"), None);
}

#[tokio::test]
async fn a_whole_execution_that_takes_too_long_fails_with_a_timeout() {
    let world = World::new().await;
    let mut workflow = flow(json!([step("a", &[], json!({"hold": true}))]));
    workflow["policies"] = json!({"timeout": 40});
    let id = world.start_whole(workflow, json!({})).await;
    let end = world.end(&id).await;
    assert_eq!(
        (end["status"].as_str(), end["errors"][0]["code"].as_str()),
        (Some("failed"), Some("TIMEOUT"))
    );
}

#[tokio::test]
async fn executions_with_one_key_run_one_after_the_other() {
    let world = World::new().await;
    let mut workflow = flow(json!([step("a", &[], json!({"hold": true}))]));
    workflow["policies"] = json!({"concurrency": {"key": "one", "limit": 1}});
    let first = world.start_whole(workflow.clone(), json!({})).await;
    let second = world.start_whole(workflow, json!({})).await;
    world.desk.called("a", 1).await;
    assert_eq!(world.ask("executions.get", json!({"executionId": second})).await["status"], "queued");
    world.desk.gate("a").notify_one();
    world.end(&first).await;
    world.desk.called("a", 2).await;
    world.desk.gate("a").notify_one();
    assert_eq!(world.end(&second).await["status"], "completed");
}

#[tokio::test]
async fn whoever_follows_the_resource_of_an_execution_hears_of_its_changes() {
    let world = World::new().await;
    let id = world.start(json!([step("a", &[], json!({"hold": true}))])).await;
    world.desk.called("a", 1).await;
    let filter = Filter::names(["resource.updated"]).about(format!("execution://{id}"));
    let mut changes = world.kernel.bus().subscribe(&filter).unwrap();
    world.desk.gate("a").notify_one();
    assert_eq!(&*changes.next().await.unwrap().subject, format!("execution://{id}"));
}

#[tokio::test]
async fn waiting_for_an_end_takes_no_longer_than_asked() {
    const WAIT_MS: u64 = 1_500;
    let world = World::new().await;
    let id = world.start(json!([step("a", &[], json!({"hold": true}))])).await;
    world.desk.called("a", 1).await;
    let clock = world.kernel.ports().clock.clone();
    let began_us = clock.elapsed_us();
    let args = json!({"executionId": id, "waitMs": WAIT_MS, "until": "final"});
    let resource = world.ask("executions.get", args).await;
    let took_ms = (clock.elapsed_us() - began_us) / 1000;
    assert_ne!(resource["status"], "completed");
    // It waited twice once: for an execution that runs here, and again for one that was found in the store.
    assert!((WAIT_MS..2 * WAIT_MS).contains(&took_ms), "{took_ms} ms");
}

#[tokio::test]
async fn events_that_are_kept_are_never_evicted() {
    let world = World::new().await;
    let steps = json!([{"id": "go", "type": "wait", "wait": {"event": "go"}},
                       {"id": "first", "type": "wait", "wait": {"event": "n"}, "dependencies": ["go"]}]);
    let id = world.start(steps).await;
    let event = |name: &str, n: u64| json!({"executionId": id, "name": name, "payload": n, "id": format!("{name}-{n}")});
    for n in 0..100 {
        world.ask("executions.signal", event("n", n)).await;
    }
    let refused = world.refused("executions.signal", event("n", 100)).await;
    assert_eq!(refused.code, Code::ResourceExhausted);
    assert_eq!(refused.details.unwrap()["reason"], "events_buffered");
    world.ask("executions.signal", event("n", 99)).await;
    // A step waits for this one, so it needs no room.
    world.ask("executions.signal", event("go", 0)).await;
    let ended = world.end(&id).await;
    assert_eq!(
        ended["outputs"]["first"]["payload"], 0,
        "the first that was acknowledged is the first that is taken"
    );
}
