//! Sagas: what completed is undone in reverse order after a failure or a cancellation, also over restarts and in children.

use std::sync::Arc;

use orchestr8_stores::sqlite::Place;
use orchestr8_workflows::Settings;
use serde_json::{Value, json};

use crate::world::{Desk, World, flow, settings, step, with};

/// The undo of a step: its input names the step, so that the calls can be told apart.
fn undo() -> Value {
    json!({"compensate": {"agentId": "@test/agent", "input": {"value": "undone"}}})
}

fn undone_by(input: Value) -> Value {
    json!({"compensate": {"agentId": "@test/agent", "input": input}})
}

fn once(step: Value) -> Value {
    with(step, json!({"resilience": {"maxAttempts": 1}}))
}

fn failing(id: &str, after: &[&str]) -> Value {
    once(step(id, after, json!({"fail": "AGENT_FAILED"})))
}

/// The keys of all undo calls without the execution, in order.
fn undo_calls(desk: &Desk) -> Vec<String> {
    let calls = desk.calls.lock();
    let undo = calls.iter().filter(|(_, key)| key.ends_with(":compensate"));
    undo.map(|(_, key)| key.split_once(':').unwrap().1.trim_end_matches(":compensate").to_owned()).collect()
}

/// Starts an execution whose rollback waits for the gate of `a`, and gives its id.
async fn held_rollback(world: &World) -> String {
    let id = world
        .start(json!([
            with(step("a", &[], json!({"value": 1})), undone_by(json!({"hold": true}))),
            failing("b", &["a"]),
        ]))
        .await;
    world.desk.called("a", 2).await;
    id
}

#[tokio::test]
async fn a_rollback_is_compensating_and_ends_compensated_with_the_original_error() {
    let world = World::new().await;
    let id = held_rollback(&world).await;
    let seen = world.until(&id, "compensating").await;
    assert_eq!(seen["errors"][0]["message"], "told to fail", "{seen:#}");
    assert_eq!(
        seen["compensation"],
        json!({"cause": "failed", "undone": 0, "remaining": 1, "notUndone": []})
    );
    let listed = world.ask("executions.list", json!({"status": "compensating"})).await;
    assert_eq!(listed["executions"][0]["error"]["message"], "told to fail", "{listed:#}");
    world.desk.gate("a").notify_one();
    let end = world.end(&id).await;
    assert_eq!(end["status"], "compensated", "{end:#}");
    assert_eq!((&end["errors"][0]["stepId"], &end["steps"]["a"]["compensated"]), (&json!("b"), &json!(true)));
    assert_eq!(end["compensation"], json!({"cause": "failed", "undone": 1, "remaining": 0, "notUndone": []}));
    assert_eq!(end["steps"]["a"]["attempts"], 1, "the attempts of the undo are its own");
    let kinds = world.kinds(&id).await;
    assert_eq!(
        kinds[kinds.len() - 4..],
        ["compensation", "step-compensating", "step-compensated", "execution-compensated"]
    );
}

#[tokio::test]
async fn what_could_not_be_undone_is_listed_with_step_item_and_error() {
    let world = World::new().await;
    let end = world
        .run(json!([
            with(
                once(step("each", &[], json!({"value": "${item}"}))),
                with(
                    json!({"forEach": {"items": ["x", "y"]}}),
                    undone_by(json!({"fail": "CONFLICT", "was": "${output}", "item": "${item}"}))
                )
            ),
            with(step("b", &["each"], json!({"value": 1})), undo()),
            failing("c", &["b"]),
        ]))
        .await;
    assert_eq!(end["status"], "compensated", "{end:#}");
    assert_eq!(
        (&end["compensation"]["undone"], &end["steps"]["each"]["compensated"]),
        (&json!(1), &json!(false))
    );
    let left = end["compensation"]["notUndone"].as_array().unwrap();
    let items: Vec<_> =
        left.iter().map(|one| (&one["stepId"], &one["index"], &one["error"]["code"])).collect();
    let (each, code) = (json!("each"), json!("CONFLICT"));
    assert_eq!(items, [(&each, &json!(1), &code), (&each, &json!(0), &code)], "{end:#}");
    assert_eq!(end["errors"].as_array().unwrap().len(), 1, "the errors are those of the steps: {end:#}");
}

#[tokio::test]
async fn completed_items_of_a_failed_loop_are_undone_in_reverse() {
    let world = World::new().await;
    let each = with(
        once(step("each", &["a"], json!({"fail": "${item.fail ?? null}", "value": "${item.n}"}))),
        with(
            json!({"forEach": {"items": [{"n": 1}, {"n": 2}, {"n": 3, "fail": "AGENT_FAILED"}, {"n": 4}], "concurrency": 1}}),
            undone_by(json!({"value": ["${item.n}", "${index}", "${output}", "${input.value}"]})),
        ),
    );
    let end = world.run(json!([with(step("a", &[], json!({"value": 1})), undo()), each])).await;
    assert_eq!(end["status"], "compensated", "{end:#}");
    assert_eq!(undo_calls(&world.desk), ["each:1", "each:0", "a"]);
}

#[tokio::test]
async fn rounds_of_a_failed_while_are_undone_in_reverse() {
    let world = World::new().await;
    let rounds = with(
        once(step("w", &[], json!({"value": "${iteration}"}))),
        with(
            json!({"while": {"condition": "${iteration} < 9", "maxIterations": 3}}),
            undone_by(json!({"value": ["${iteration}", "${output}"]})),
        ),
    );
    let end = world.run(json!([rounds])).await;
    assert_eq!(end["status"], "compensated", "{end:#}");
    assert_eq!(undo_calls(&world.desk), ["w:2", "w:1", "w:0"]);
}

#[tokio::test]
async fn a_retry_after_a_rolled_back_loop_does_every_undone_item_again_under_a_new_key() {
    let world = World::new().await;
    let id = world
        .start(json!([
            with(
                step("each", &[], json!({"value": "${item}"})),
                with(json!({"forEach": {"items": [1, 2], "concurrency": 1}}), undo())
            ),
            once(step("ship", &["each"], json!({"failTimes": 1, "value": 1}))),
        ]))
        .await;
    assert_eq!(world.end(&id).await["status"], "compensated");
    world.ask("executions.retry", json!({"executionId": id})).await;
    world.until(&id, "completed").await;
    let calls = world.desk.calls.lock();
    let keys: Vec<&str> = calls
        .iter()
        .filter(|(step, _)| step == "each")
        .map(|(_, key)| key.split_once(':').unwrap().1)
        .collect();
    assert_eq!(
        keys,
        ["each:0", "each:1", "each:1:compensate", "each:0:compensate", "each:0:g2", "each:1:g2"]
    );
}

fn child() -> Value {
    json!({"id": "child", "version": "1.0.0", "name": "Child", "steps": [
        with(step("x", &[], json!({"value": 1})), undo()),
        with(step("y", &["x"], json!({"value": 2})), undo()),
    ]})
}

#[tokio::test]
async fn the_steps_of_a_completed_child_are_undone_when_its_parent_fails_later() {
    let world = World::new().await;
    world.ask("workflows.apply", json!({"workflow": child()})).await;
    let end = world
        .run(json!([
            with(step("a", &[], json!({"value": 1})), undo()),
            {"id": "stored", "type": "workflow", "workflow": {"id": "child"}, "dependsOn": ["a"]},
            {"id": "inline", "type": "workflow", "workflow": child(), "dependsOn": ["stored"]},
            with(step("z", &["inline"], json!({"value": 1})), undo()),
            failing("b", &["z"]),
        ]))
        .await;
    assert_eq!(end["status"], "compensated", "{end:#}");
    assert_eq!(undo_calls(&world.desk), ["z", "y", "x", "y", "x", "a"]);
    assert_eq!(end["steps"]["inline"]["compensated"], true, "{end:#}");
    let children = world.ask("executions.list", json!({"workflowId": "child"})).await;
    let statuses: Vec<_> =
        children["executions"].as_array().unwrap().iter().map(|one| &one["status"]).collect();
    assert_eq!(statuses, ["compensated", "compensated"]);
}

#[tokio::test]
async fn what_a_running_child_had_completed_is_undone_when_its_parent_fails() {
    let world = World::new().await;
    let inner = json!({"id": "child", "version": "1.0.0", "name": "Child", "steps": [
        with(step("x", &[], json!({"value": 1})), undo()),
        with(step("y", &["x"], json!({"hold": true})), undo()),
    ]});
    let id = world
        .start(json!([
            {"id": "inline", "type": "workflow", "workflow": inner},
            once(step("b", &[], json!({"hold": true, "fail": "AGENT_FAILED"}))),
        ]))
        .await;
    world.desk.called("y", 1).await;
    world.desk.called("b", 1).await;
    world.desk.gate("b").notify_one();
    let end = world.end(&id).await;
    assert_eq!(end["status"], "compensated", "{end:#}");
    assert_eq!(undo_calls(&world.desk), ["y", "x"], "whether y happened before it was stopped is not known");
}

#[tokio::test]
async fn cancel_does_not_interrupt_a_rollback_and_force_reports_what_is_left() {
    let world = World::new().await;
    let id = world
        .start(json!([
            with(step("a", &[], json!({"value": 1})), undo()),
            with(step("b", &["a"], json!({"value": 1})), undone_by(json!({"hold": true}))),
            with(step("c", &["b"], json!({"value": 1})), undo()),
            failing("d", &["c"]),
        ]))
        .await;
    world.desk.called("b", 2).await;
    world.until(&id, "compensating").await;
    let answer = world.ask("executions.cancel", json!({"executionId": id})).await;
    assert_eq!((&answer["status"], &answer["alreadyFinal"]), (&json!("compensating"), &json!(false)));
    assert!(answer["message"].as_str().unwrap().contains("rollback"), "{answer}");
    let fault = world.refused("executions.pause", json!({"executionId": id})).await;
    assert_eq!(fault.code.as_str(), "CONFLICT");
    assert_eq!(world.ask("executions.get", json!({"executionId": id})).await["status"], "compensating");
    let answer = world.ask("executions.cancel", json!({"executionId": id, "force": true})).await;
    let left = |list: &Value| -> Vec<Value> {
        list["notUndone"].as_array().unwrap().iter().map(|one| one["stepId"].clone()).collect()
    };
    assert_eq!(left(&answer), ["b", "a"], "{answer:#}");
    let end = world.end(&id).await;
    assert_eq!((&end["status"], &end["errors"][0]["stepId"]), (&json!("cancelled"), &json!("d")), "{end:#}");
    assert_eq!(left(&end["compensation"]), ["b", "a"], "{end:#}");
    assert_eq!(end["compensation"]["undone"], 1, "{end:#}");
    assert_eq!(undo_calls(&world.desk), ["c", "b"]);
}

#[tokio::test]
async fn compensate_on_says_whether_a_cancellation_is_undone() {
    let world = World::new().await;
    for (on, status, undone) in [
        (json!(null), "cancelled", 0),
        (json!(["failed"]), "cancelled", 0),
        (json!(["failed", "cancelled"]), "compensated", 1),
    ] {
        let mut workflow = flow(json!([
            with(step("a", &[], json!({"value": 1})), undo()),
            step("b", &["a"], json!({"hold": true})),
        ]));
        if !on.is_null() {
            workflow["compensateOn"] = on.clone();
        }
        let before = undo_calls(&world.desk).len();
        let calls = world.desk.count("b");
        let id = world.start_whole(workflow, json!({})).await;
        world.desk.called("b", calls + 1).await;
        world.ask("executions.cancel", json!({"executionId": id, "reason": "changed my mind"})).await;
        let end = world.end(&id).await;
        assert_eq!(
            (&end["status"], &end["cancelReason"]),
            (&json!(status), &json!("changed my mind")),
            "{on} {end:#}"
        );
        assert_eq!(undo_calls(&world.desk).len() - before, undone, "{on}");
        if undone > 0 {
            assert_eq!(end["compensation"]["cause"], "cancelled", "{end:#}");
        }
    }
    let mut never = flow(json!([with(step("a", &[], json!({"value": 1})), undo()), failing("b", &["a"])]));
    never["policies"] = json!({"compensateOn": []});
    let id = world.start_whole(never, json!({})).await;
    assert_eq!(world.end(&id).await["status"], "failed");
}

#[tokio::test]
async fn a_rollback_goes_on_after_a_kill_with_the_same_keys() {
    let folder = tempfile::tempdir().unwrap();
    let desk: Arc<Desk> = Arc::default();
    let world = World::at(folder.path(), desk.clone()).await;
    let ask = json!({"onUnknown": "ask"});
    let id = world
        .start(json!([
            with(step("a", &[], json!({"value": 1})), undo()),
            {"id": "inner", "type": "workflow", "workflow": child(), "dependsOn": ["a"]},
            with(with(step("b", &["inner"], json!({"value": 1})), undone_by(json!({"hold": true}))), ask),
            failing("c", &["b"]),
        ]))
        .await;
    desk.called("b", 2).await;
    world.until(&id, "compensating").await;
    world.die().await;
    let world = World::at(folder.path(), desk.clone()).await;
    desk.called("b", 3).await;
    desk.gate("b").notify_one();
    let end = world.end(&id).await;
    assert_eq!(end["status"], "compensated", "{end:#}");
    assert_eq!(undo_calls(&desk), ["b", "b", "y", "x", "a"]);
    assert_eq!(end["compensation"]["undone"], 3, "{end:#}");
}

#[tokio::test]
async fn a_step_with_an_unknown_outcome_is_undone_and_its_undo_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let desk: Arc<Desk> = Arc::default();
    let world = World::at(folder.path(), desk.clone()).await;
    let id = world
        .start(json!([with(
            with(step("pay", &[], json!({"hold": true})), json!({"onUnknown": "fail"})),
            undone_by(json!({"order": 7}))
        )]))
        .await;
    desk.called("pay", 1).await;
    world.die().await;
    let world = World::at(folder.path(), desk.clone()).await;
    let end = world.end(&id).await;
    assert_eq!(end["status"], "compensated", "{end:#}");
    assert_eq!(end["steps"]["pay"]["error"]["code"], "OUTCOME_UNKNOWN", "{end:#}");
    assert_eq!(undo_calls(&desk), ["pay"]);
    assert_eq!(desk.inputs.lock().last().unwrap(), &json!({"order": 7, "outcome": "unknown"}));
}

#[tokio::test]
async fn an_undo_waits_for_a_slot_as_long_as_it_takes() {
    let settings = Settings { running_steps: 1, ..settings() };
    let world = World::with(Place::Memory, settings, Arc::default()).await;
    let mut workflow = flow(json!([
        with(step("a", &[], json!({"value": 1})), undo()),
        once(step("b", &["a"], json!({"hold": true, "fail": "AGENT_FAILED"}))),
    ]));
    workflow["policies"] = json!({"queueWaitMs": 20});
    let id = world.start_whole(workflow, json!({})).await;
    world.desk.called("b", 1).await;
    // The only slot goes to the step that waits for it when b ends.
    let other = world.start(json!([step("long", &[], json!({"hold": true}))])).await;
    world.desk.gate("b").notify_one();
    world.desk.called("long", 1).await;
    let seen = world.until(&id, "compensating").await;
    let args = json!({"executionId": id, "waitMs": 200, "until": "change", "after": seen["lastSequence"]});
    let still = world.ask("executions.get", args).await;
    assert_eq!(
        (&still["status"], &still["compensation"]["remaining"]),
        (&json!("compensating"), &json!(1)),
        "{still:#}"
    );
    world.desk.gate("long").notify_one();
    assert_eq!(world.end(&other).await["status"], "completed");
    let end = world.end(&id).await;
    assert_eq!(
        (&end["status"], &end["compensation"]["undone"]),
        (&json!("compensated"), &json!(1)),
        "{end:#}"
    );
}

#[tokio::test]
async fn the_time_limit_of_an_execution_does_not_stop_its_rollback() {
    let world = World::new().await;
    let mut workflow = flow(json!([
        with(step("a", &[], json!({"value": 1})), undone_by(json!({"hold": true}))),
        with(step("b", &["a"], json!({"hold": true})), undo()),
    ]));
    workflow["policies"] = json!({"timeout": 1000});
    let id = world.start_whole(workflow, json!({})).await;
    world.desk.called("a", 2).await;
    let seen = world.until(&id, "compensating").await;
    assert_eq!(seen["errors"][0]["code"], "TIMEOUT", "{seen:#}");
    world.desk.gate("a").notify_one();
    let end = world.end(&id).await;
    assert_eq!(
        (&end["status"], &end["compensation"]["undone"]),
        (&json!("compensated"), &json!(2)),
        "{end:#}"
    );
    assert_eq!(undo_calls(&world.desk), ["b", "a"], "whether b happened before it was stopped is not known");
}

#[tokio::test]
async fn a_rollback_of_more_undos_than_fit_into_a_commit_ends() {
    let world = World::new().await;
    let items: Vec<u32> = (0..1_200).collect();
    let echo = json!({"agentId": "@orchestr8/echo", "input": {}});
    let many = with(echo.clone(), json!({"id": "a", "forEach": {"items": items}, "compensate": echo}));
    let end = world.run(json!([many, failing("b", &["a"])])).await;
    assert_eq!(end["status"], "compensated", "{:#}", end["compensation"]);
    assert_eq!(end["compensation"]["undone"], 1_200);
}

#[tokio::test]
async fn an_execution_is_not_forked_while_it_is_rolled_back() {
    let world = World::new().await;
    let id = held_rollback(&world).await;
    world.until(&id, "compensating").await;
    let refused = world.refused("executions.fork", json!({"executionId": id, "fromStep": "b"})).await;
    assert_eq!(refused.code.as_str(), "CONFLICT", "its results are about to be undone");
    world.desk.gate("a").notify_one();
    world.end(&id).await;
}
