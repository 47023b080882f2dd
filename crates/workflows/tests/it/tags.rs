//! Tags: where they come from, who inherits them, and that they are found after a restart.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::world::{World, flow, step, with};

async fn found(world: &World, filter: Value) -> Vec<String> {
    let page = world.ask("executions.list", filter).await;
    let rows = page["executions"].as_array().unwrap().iter();
    rows.map(|row| row["executionId"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn children_inherit_tags_and_their_own_definition_goes_before() {
    let world = World::new().await;
    let inner = with(
        flow(json!([step("a", &[], json!({}))])),
        json!({"id": "inner", "policies": {"tags": {"part": "inner"}}}),
    );
    let outer = flow(json!([{"id": "child", "type": "workflow", "workflow": inner}]));
    let tags = json!({"customer": "42", "part": "outer"});
    let started = world.ask("workflows.execute", json!({"workflow": outer, "tags": tags})).await;
    let id = started["executionId"].as_str().unwrap();
    assert_eq!(world.end(id).await["tags"], tags);
    assert_eq!(found(&world, json!({"where": {"customer": "42"}})).await.len(), 2);
    let inner = found(&world, json!({"where": {"customer": "42", "part": "inner"}})).await;
    assert_eq!(inner.len(), 1);
    assert_ne!(inner[0], id);
}

#[tokio::test]
async fn a_retry_keeps_the_tags_and_a_restart_finds_them() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::at(folder.path(), Arc::default()).await;
    let failing = flow(json!([step("a", &[], json!({"fail": "AGENT_FAILED"}))]));
    let started =
        world.ask("workflows.execute", json!({"workflow": failing, "tags": {"customer": "42"}})).await;
    let id = started["executionId"].as_str().unwrap().to_owned();
    assert_eq!(world.end(&id).await["status"], "failed");
    world.ask("executions.retry", json!({"executionId": id})).await;
    world.desk.called("a", 2).await;
    let failed = json!({"where": {"customer": "42"}, "status": "failed"});
    world.until(&id, "failed").await;
    assert_eq!(found(&world, failed.clone()).await, [&*id]);
    world.die().await;
    let world = World::at(folder.path(), Arc::default()).await;
    assert_eq!(found(&world, failed).await, [&*id]);
    assert_eq!(world.end(&id).await["tags"], json!({"customer": "42"}));
}

#[tokio::test]
async fn a_model_and_a_schedule_give_tags_too() {
    let world = World::new().await;
    let workflow = with(flow(json!([step("a", &[], json!({}))])), json!({"id": "nightly"}));
    world.ask("workflows.apply", json!({"workflow": workflow})).await;
    let told = world.ask("run_workflow", json!({"workflowId": "nightly", "tags": {"by": "model"}})).await;
    let by_model = told["executionId"].as_str().unwrap().to_owned();
    assert_eq!(found(&world, json!({"where": {"by": "model"}})).await, [by_model]);
    let schedule = json!({"id": "s", "workflowId": "nightly", "cron": "0 3 * * *", "tags": {"by": "clock"}});
    assert_eq!(world.ask("schedules.apply", schedule).await["tags"], json!({"by": "clock"}));
    let started = world.ask("schedules.trigger", json!({"id": "s"})).await;
    let by_clock = started["executionId"].as_str().unwrap().to_owned();
    assert_eq!(found(&world, json!({"where": {"by": "clock"}})).await, [by_clock]);
    let wrong = json!({"id": "s", "workflowId": "nightly", "cron": "0 3 * * *", "tags": {"by": 1}});
    let fault = world.refused("schedules.apply", wrong).await;
    assert_eq!(fault.message, "/tags/by: a tag's value must be a text, and is a number");
}

#[tokio::test]
async fn a_tag_that_cannot_be_computed_starts_nothing() {
    let world = World::new().await;
    let workflow = with(
        flow(json!([step("a", &[], json!({}))])),
        json!({"variables": {"customer": {"id": 42}}, "policies": {"tags": {"customer": "${variables.customer}"}}}),
    );
    let fault = world.refused("workflows.execute", json!({"workflow": workflow})).await;
    assert_eq!(fault.message, "/policies/tags/customer: a tag's value must be a text, and is an object");
    assert!(found(&world, json!({})).await.is_empty());
    let unknown =
        with(workflow, json!({"policies": {"tags": {"customer": "${steps.a.output}", "bad key": "1"}}}));
    let fault = world.refused("workflows.execute", json!({"workflow": unknown})).await;
    let told = fault.details.map(|details| json!(details).to_string()).unwrap_or_default();
    assert!(told.contains("$.policies.tags.customer") && told.contains("no step has run"), "{told}");
    assert!(told.contains("a tag's key has 1 to 64 of the characters"), "{told}");
}
