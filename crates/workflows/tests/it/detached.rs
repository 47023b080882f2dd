//! Detached children: begun once, known by their id, and untouched by what happens to their parent.

use std::sync::Arc;

use orchestr8_stores::sqlite::Place;
use orchestr8_workflows::Settings;
use serde_json::{Value, json};

use crate::world::{Desk, World, flow, settings, step, with};

/// A parent whose child goes on by itself; the child holds.
fn parent(more: Value) -> Value {
    let child = with(
        flow(json!([step("work", &[], json!({"hold": true, "value": "${variables.n}"}))])),
        json!({"id": "child", "variables": {"n": 0}}),
    );
    let start = with(json!({"id": "start", "workflow": child, "inputs": {"n": 7}, "detached": true}), more);
    flow(json!([start, step("next", &["start"], json!({"value": "${steps.start.output.executionId}"}))]))
}

#[tokio::test]
async fn a_detached_child_outlives_its_parent_and_is_known_by_its_id() {
    let world = World::new().await;
    let id = world.start_whole(parent(json!({})), json!({})).await;
    let end = world.end(&id).await;
    assert_eq!(end["status"], "completed", "it does not wait for the child: {end:#}");
    let child = end["outputs"]["next"].as_str().unwrap().to_owned();
    let now = world.ask("executions.get", json!({"executionId": child})).await;
    assert_eq!(
        (&now["status"], &now["parentExecutionId"], &now["detached"]),
        (&json!("running"), &json!(id), &json!(true)),
        "{now:#}"
    );
    world.desk.gate("work").notify_one();
    let end = world.end(&child).await;
    assert_eq!((&end["status"], &end["outputs"]["work"]), (&json!("completed"), &json!(7)));
    // The end of a child that is not waited for is no message to its parent.
    assert_eq!(world.ask("executions.get", json!({"executionId": id})).await["status"], "completed");
}

#[tokio::test]
async fn neither_cancel_nor_rollback_of_the_parent_touches_a_detached_child() {
    let world = World::new().await;
    let undo = json!({"compensate": {"agentId": "@test/agent", "input": {"stop": "${output.executionId}"}}});
    for (more, undone) in [(json!({}), 0), (undo, 1)] {
        let mut source = parent(more);
        source["steps"][1] = with(
            step("next", &["start"], json!({"fail": "NOT_FOUND"})),
            json!({"resilience": {"maxAttempts": 1}}),
        );
        let before = world.desk.count("work");
        let id = world.start_whole(source, json!({})).await;
        let end = world.end(&id).await;
        let child = end["outputs"]["start"]["executionId"].as_str().unwrap().to_owned();
        assert_eq!(end["status"], if undone == 1 { "compensated" } else { "failed" }, "{end:#}");
        world.desk.called("work", before + 1).await;
        let now = world.ask("executions.get", json!({"executionId": child})).await;
        assert_eq!(now["status"], "running", "{now:#}");
        world.desk.gate("work").notify_one();
        assert_eq!(world.end(&child).await["status"], "completed");
        assert_eq!(
            world.desk.calls.lock().iter().filter(|(_, key)| key.ends_with(":start:compensate")).count(),
            undone
        );
    }
    let mut source = parent(json!({}));
    source["steps"][1] = step("next", &["start"], json!({"hold": true}));
    let id = world.start_whole(source, json!({})).await;
    world.desk.called("work", 3).await;
    world.ask("executions.cancel", json!({"executionId": id})).await;
    let end = world.end(&id).await;
    assert_eq!(end["status"], "cancelled");
    let child = end["outputs"]["start"]["executionId"].as_str().unwrap().to_owned();
    assert_eq!(world.ask("executions.get", json!({"executionId": child})).await["status"], "running");
}

#[tokio::test]
async fn a_detached_child_is_started_once_over_a_kill_and_counts_for_its_tenant() {
    let folder = tempfile::tempdir().unwrap();
    let desk: Arc<Desk> = Arc::default();
    let world = World::at(folder.path(), desk.clone()).await;
    let mut source = parent(json!({"forEach": {"items": [1, 2, 3]}}));
    source["steps"][1] = step("next", &["start"], json!({"hold": true, "value": 1}));
    let id = world.start_whole(source, json!({})).await;
    desk.called("next", 1).await;
    world.die().await;
    let world = World::at(folder.path(), desk.clone()).await;
    desk.called("next", 2).await;
    desk.gate("next").notify_one();
    assert_eq!(world.end(&id).await["status"], "completed");
    let listed = world.ask("executions.list", json!({"workflowId": "child"})).await;
    assert_eq!(listed["executions"].as_array().unwrap().len(), 3, "{listed:#}");
    let few = Settings { executions_per_tenant: 1, ..settings() };
    let world = World::with(Place::Memory, few, Arc::default()).await;
    let id = world.start_whole(parent(json!({})), json!({})).await;
    let end = world.end(&id).await;
    assert_eq!(end["errors"][0]["code"], "RESOURCE_EXHAUSTED", "{end:#}");
}
