//! Trees of executions: the places of a level, pauses, quotas of the tenant, and the size of a tree.

use std::sync::Arc;

use orchestr8_stores::sqlite::Place;
use orchestr8_workflows::Settings;
use serde_json::{Value, json};

use crate::world::{World, flow, settings, step, with};

/// A step that starts one child for each item; the children do this.
fn each(items: usize, child: Value) -> Value {
    let items: Vec<usize> = (0..items).collect();
    json!({"id": "fork", "workflow": child, "forEach": {"items": items, "concurrency": 10}})
}

fn holding() -> Value {
    with(flow(json!([step("work", &[], json!({"hold": true, "value": 1}))])), json!({"id": "child"}))
}

async fn world(settings: Settings) -> World {
    World::with(Place::Memory, settings, Arc::default()).await
}

/// The children that there are, however they go.
async fn children(world: &World) -> usize {
    let listed = world.ask("executions.list", json!({"workflowId": "child"})).await;
    listed["executions"].as_array().unwrap().len()
}

#[tokio::test]
async fn children_beyond_the_places_of_a_level_wait_for_the_end_of_others() {
    let world = world(Settings { executions_per_tree_level: 2, ..settings() }).await;
    let id = world.start_whole(flow(json!([each(5, holding())])), json!({})).await;
    for begun in 2..=5 {
        world.desk.called("work", begun).await;
        assert_eq!(children(&world).await, begun, "two at once");
        world.desk.gate("work").notify_one();
    }
    world.desk.gate("work").notify_one();
    let end = world.end(&id).await;
    assert_eq!((&end["status"], &end["outputs"]["fork"]["succeeded"]), (&json!("completed"), &json!(5)));
}

#[tokio::test]
async fn a_paused_execution_begins_no_child() {
    let world = world(Settings { executions_per_tree_level: 1, ..settings() }).await;
    let id = world.start_whole(flow(json!([each(3, holding())])), json!({})).await;
    world.desk.called("work", 1).await;
    world.ask("executions.pause", json!({"executionId": id})).await;
    world.until(&id, "paused").await;
    world.desk.gate("work").notify_one();
    // The parent knows of the end of the first child, so there is a place.
    let paused = world.until_true(&id, |seen| seen["steps"]["fork"]["items"]["succeeded"] == 1).await;
    assert_eq!((paused["status"].as_str(), children(&world).await), (Some("paused"), 1), "{paused:#}");
    world.ask("executions.resume", json!({"executionId": id})).await;
    for begun in 2..=3 {
        world.desk.called("work", begun).await;
        world.desk.gate("work").notify_one();
    }
    assert_eq!(world.end(&id).await["status"], "completed");
}

#[tokio::test]
async fn a_tenant_at_its_quota_still_completes_the_trees_that_it_has_started() {
    let world = world(Settings { executions_per_tenant: 1, ..settings() }).await;
    let leaf = flow(json!([step("work", &[], json!({"value": 1}))]));
    let inner = with(flow(json!([each(3, leaf)])), json!({"id": "child"}));
    let id = world.start_whole(flow(json!([each(3, inner)])), json!({})).await;
    let end = world.end(&id).await;
    assert_eq!(end["status"], "completed", "{end:#}");
    assert_eq!(world.desk.count("work"), 9);
}

#[tokio::test]
async fn a_tree_of_full_size_fails_the_step_that_wants_one_more_and_a_retry_does_not_help() {
    let world = world(Settings { executions_per_tree: 4, ..settings() }).await;
    let leaf = flow(json!([step("work", &[], json!({"value": 1}))]));
    let inner = with(flow(json!([each(1, leaf)])), json!({"id": "child"}));
    let mut source = each(3, inner);
    source["forEach"]["concurrency"] = json!(1);
    let id = world.start_whole(flow(json!([source])), json!({})).await;
    let end = world.end(&id).await;
    let error = &end["errors"][0];
    assert_eq!((&end["status"], &error["code"]), (&json!("failed"), &json!("LIMIT_EXCEEDED")), "{end:#}");
    assert_eq!(world.desk.count("work"), 2, "two children with a child each");
    world.ask("executions.retry", json!({"executionId": id})).await;
    let end = world.end(&id).await;
    assert_eq!(end["errors"][0]["code"], "LIMIT_EXCEEDED", "{end:#}");
    assert_eq!(world.desk.count("work"), 2);
}
