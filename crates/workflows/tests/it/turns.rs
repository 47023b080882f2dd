//! What happens to executions that have not begun, and to those that are told to stop, also when the process dies.

use std::sync::Arc;

use orchestr8_stores::sqlite::Place;
use orchestr8_workflows::{AllowedEnv, Settings};
use serde_json::{Value, json};

use crate::world::{Desk, World, flow, settings, step};

/// Room for one step at a time, so that a second execution waits for its turn.
fn one_at_a_time() -> Settings {
    let env = AllowedEnv::new([("HOME".to_owned(), Some("HOME is set".to_owned()))]);
    Settings { running_steps: 1, env, ..settings() }
}

async fn at(folder: &tempfile::TempDir, desk: &Arc<Desk>) -> World {
    let place = Place::File(folder.path().join("data.sqlite3"));
    World::with(place, one_at_a_time(), desk.clone()).await
}

/// Its environment is only there if it has begun as it should.
fn reads_env() -> Value {
    let mut workflow = flow(json!([step("b", &[], json!({"value": "${env.HOME}"}))]));
    workflow["allowedEnvVars"] = json!(["HOME"]);
    workflow
}

/// The first execution takes the only slot; the second waits.
async fn with_one_in_line(world: &World) -> (String, String) {
    let first = world.start(json!([step("a", &[], json!({"hold": true}))])).await;
    world.desk.called("a", 1).await;
    let second = world.start_whole(reads_env(), json!({})).await;
    world.until(&second, "queued").await;
    (first, second)
}

async fn let_go(world: &World, first: &str, second: &str) {
    world.desk.gate("a").notify_one();
    world.end(first).await;
    let end = world.end(second).await;
    assert_eq!(end["outputs"]["b"], "HOME is set", "{end:#}");
    assert!(end["startedAt"].is_string());
}

#[tokio::test]
async fn an_event_for_an_execution_in_the_queue_does_not_cost_it_its_turn() {
    let folder = tempfile::tempdir().unwrap();
    let desk: Arc<Desk> = Arc::default();
    let world = at(&folder, &desk).await;
    let (first, second) = with_one_in_line(&world).await;
    world.ask("executions.signal", json!({"executionId": second, "name": "hello"})).await;
    world.until_true(&second, |now| now["lastSequence"].as_u64() > Some(0)).await;
    world.die().await;
    let world = at(&folder, &desk).await;
    world.desk.called("a", 2).await;
    let_go(&world, &first, &second).await;
}

#[tokio::test]
async fn an_execution_paused_in_the_queue_begins_once_it_is_resumed() {
    let world = World::with(Place::Memory, one_at_a_time(), Arc::default()).await;
    let (first, second) = with_one_in_line(&world).await;
    world.ask("executions.pause", json!({"executionId": second})).await;
    world.until(&second, "paused").await;
    world.desk.gate("a").notify_one();
    world.end(&first).await;
    world.until_true(&second, |now| now["startedAt"].is_string()).await;
    assert_eq!(world.desk.count("b"), 0);
    world.ask("executions.resume", json!({"executionId": second})).await;
    assert_eq!(world.end(&second).await["outputs"]["b"], "HOME is set");
}

#[tokio::test]
async fn an_execution_paused_in_the_queue_begins_after_a_restart_too() {
    let folder = tempfile::tempdir().unwrap();
    let desk: Arc<Desk> = Arc::default();
    let world = at(&folder, &desk).await;
    let (first, second) = with_one_in_line(&world).await;
    world.ask("executions.pause", json!({"executionId": second})).await;
    world.until(&second, "paused").await;
    world.die().await;
    let world = at(&folder, &desk).await;
    world.desk.called("a", 2).await;
    world.ask("executions.resume", json!({"executionId": second})).await;
    let_go(&world, &first, &second).await;
}

#[tokio::test]
async fn an_execution_cancelled_in_the_queue_can_be_taken_up_again() {
    let world = World::with(Place::Memory, one_at_a_time(), Arc::default()).await;
    let (first, second) = with_one_in_line(&world).await;
    world.ask("executions.cancel", json!({"executionId": second})).await;
    world.until(&second, "cancelled").await;
    world.ask("executions.retry", json!({"executionId": second})).await;
    world.until(&second, "queued").await;
    let_go(&world, &first, &second).await;
}

#[tokio::test]
async fn a_child_is_told_to_stop_even_if_the_process_dies_before() {
    let folder = tempfile::tempdir().unwrap();
    let desk: Arc<Desk> = Arc::default();
    let world = at(&folder, &desk).await;
    let waits = json!([{"id": "w", "type": "wait", "wait": {"event": "never"}}]);
    let parent = world.start(json!([{"id": "c", "type": "workflow", "workflow": flow(waits.clone())}])).await;
    let now = world.until_true(&parent, |now| now["steps"]["c"]["childExecutionId"].is_string()).await;
    let child = now["steps"]["c"]["childExecutionId"].as_str().unwrap().to_owned();
    world.until_true(&child, |now| now["steps"]["w"]["status"] == "waiting").await;
    world.ask("executions.cancel", json!({"executionId": parent})).await;
    world.die().await;
    let world = at(&folder, &desk).await;
    assert_eq!(world.end(&child).await["status"], "cancelled");
    assert_eq!(world.end(&parent).await["status"], "cancelled");
}

#[tokio::test]
async fn an_agent_that_panics_fails_its_step_and_nothing_else() {
    let world = World::new().await;
    let end = world.run(json!([step("a", &[], json!({"panic": true}))])).await;
    assert_eq!(end["steps"]["a"]["error"]["code"], "INTERNAL", "{end:#}");
    assert_eq!(world.run(json!([step("b", &[], json!({"value": 1}))])).await["outputs"]["b"], 1);
}

#[tokio::test]
async fn keys_still_count_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let desk: Arc<Desk> = Arc::default();
    let world = World::at(folder.path(), desk.clone()).await;
    let mut workflow = flow(json!([step("a", &[], json!({"hold": true}))]));
    workflow["policies"] = json!({"concurrency": {"key": "one", "limit": 1}});
    let first = world.start_whole(workflow.clone(), json!({})).await;
    desk.called("a", 1).await;
    world.die().await;
    let world = World::at(folder.path(), desk.clone()).await;
    desk.called("a", 2).await;
    let second = world.start_whole(workflow, json!({})).await;
    assert_eq!(world.ask("executions.get", json!({"executionId": second})).await["status"], "queued");
    desk.gate("a").notify_one();
    world.end(&first).await;
    desk.called("a", 3).await;
    desk.gate("a").notify_one();
    assert_eq!(world.end(&second).await["status"], "completed");
}

#[tokio::test]
async fn what_waited_for_its_turn_goes_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let desk: Arc<Desk> = Arc::default();
    let world = at(&folder, &desk).await;
    let first = world.start(json!([step("a", &[], json!({"hold": true}))])).await;
    desk.called("a", 1).await;
    let second = world.start(json!([step("b", &[], json!({"hold": true, "value": 2}))])).await;
    desk.gate("a").notify_one();
    world.end(&first).await;
    desk.called("b", 1).await;
    let listed = world.ask("executions.list", json!({"status": "running"})).await;
    assert_eq!(listed["executions"][0]["executionId"], json!(second), "{listed:#}");
    world.die().await;
    let world = at(&folder, &desk).await;
    desk.called("b", 2).await;
    desk.gate("b").notify_one();
    assert_eq!(world.end(&second).await["outputs"]["b"], 2);
}

#[tokio::test]
async fn what_was_woken_by_a_person_goes_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let desk: Arc<Desk> = Arc::default();
    let world = at(&folder, &desk).await;
    let steps = json!([
        {"id": "w", "type": "wait", "wait": {"event": "go"}},
        step("b", &["w"], json!({"hold": true, "value": 2})),
    ]);
    let id = world.start(steps).await;
    world.until_true(&id, |now| now["steps"]["w"]["status"] == "waiting").await;
    world.ask("executions.signal", json!({"executionId": id, "name": "go"})).await;
    desk.called("b", 1).await;
    world.die().await;
    let world = at(&folder, &desk).await;
    desk.called("b", 2).await;
    desk.gate("b").notify_one();
    assert_eq!(world.end(&id).await["outputs"]["b"], 2);
}
