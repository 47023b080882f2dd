//! Many executions at once: families, audit, and what a restart leaves of it.

use std::sync::Arc;

use orchestr8_kernel::ports::store::Statement;
use serde_json::{Value, json};

use crate::world::{World, flow, step, with};

async fn start(world: &World, workflow: Value, tags: Value) -> String {
    let started = world.ask("workflows.execute", json!({"workflow": workflow, "tags": tags})).await;
    started["executionId"].as_str().unwrap().to_owned()
}

fn waiting() -> Value {
    json!([{"id": "w", "wait": {"event": "paid"}}])
}

#[tokio::test]
async fn a_child_is_cancelled_with_its_parent_and_not_by_itself() {
    let world = World::new().await;
    let child = with(flow(waiting()), json!({"id": "inner"}));
    // The parent would go on with its fallback if its child failed.
    let parent = flow(json!([
        {"id": "child", "type": "workflow", "workflow": child, "onError": "continue"},
        with(step("after", &["child"], json!({})), json!({"join": "always"})),
    ]));
    let id = start(&world, parent, json!({"customer": "42"})).await;
    let begun = world.until_true(&id, |now| now["steps"]["child"]["childExecutionId"].is_string()).await;
    let child = begun["steps"]["child"]["childExecutionId"].as_str().unwrap().to_owned();
    world.until(&child, "waiting").await;
    let answer = world.ask("executions.cancel_many", json!({"where": {"customer": "42"}})).await;
    assert_eq!(answer["cancelled"], json!([id]), "{answer}");
    assert_eq!(
        answer["skipped"],
        json!([{"executionId": child, "reason": "it is cancelled with its parent"}])
    );
    assert_eq!(world.end(&id).await["status"], "cancelled");
    assert_eq!(world.end(&child).await["status"], "cancelled");
    assert_eq!(world.desk.count("after"), 0);
}

#[tokio::test]
async fn a_child_of_a_live_parent_is_not_deleted() {
    let world = World::new().await;
    let child = with(flow(json!([step("a", &[], json!({}))])), json!({"id": "inner"}));
    let parent = flow(json!([
        {"id": "child", "type": "workflow", "workflow": child},
        {"id": "w", "wait": {"event": "paid"}, "dependsOn": ["child"]},
    ]));
    let id = start(&world, parent, json!({"customer": "42"})).await;
    world.until_true(&id, |now| now["steps"]["child"]["status"] == "completed").await;
    let answer = world.ask("executions.delete_many", json!({"where": {"customer": "42"}})).await;
    assert_eq!(
        (&answer["count"], &answer["skipped"][0]["reason"]),
        (&json!(0), &json!("its parent has not ended"))
    );
    world.ask("executions.cancel_many", json!({"ids": [id]})).await;
    world.end(&id).await;
    let answer = world.ask("executions.delete_many", json!({"where": {"customer": "42"}})).await;
    assert_eq!(answer["count"], 2, "{answer}");
}

#[tokio::test]
async fn every_execution_has_its_entry_in_the_audit_trail_and_a_restart_brings_none_back() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::at(folder.path(), Arc::default()).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let id = start(&world, flow(json!([step("a", &[], json!({}))])), json!({"customer": "42"})).await;
        world.end(&id).await;
        ids.push(id);
    }
    let kept = start(&world, flow(json!([step("a", &[], json!({}))])), json!({"customer": "7"})).await;
    world.end(&kept).await;
    world.ask("executions.delete_many", json!({"where": {"customer": "42"}})).await;
    let entries = Statement::new(
        "SELECT json_extract(body, '$.object') FROM chain WHERE json_extract(body, '$.action') = 'executions.delete' ORDER BY seq",
        Vec::new(),
    );
    let rows = world.kernel.ports().store.query(entries).await.unwrap();
    let named: Vec<&str> = rows.iter().map(|row| row.text(0).unwrap()).collect();
    assert_eq!(named, ids.iter().rev().map(String::as_str).collect::<Vec<_>>());
    let calls = Statement::new(
        "SELECT COUNT(*) FROM chain WHERE json_extract(body, '$.action') = 'executions.delete_many'",
        Vec::new(),
    );
    assert_eq!(world.kernel.ports().store.query(calls).await.unwrap()[0].int(0).unwrap(), 1);
    world.die().await;
    let world = World::at(folder.path(), Arc::default()).await;
    let page = world.ask("executions.list", json!({})).await;
    let left: Vec<&Value> =
        page["executions"].as_array().unwrap().iter().map(|row| &row["executionId"]).collect();
    assert_eq!(left, [&json!(kept)]);
    let metrics = world.ask("workflows.metrics", json!({})).await;
    assert_eq!(metrics["executions"]["completed"], 1, "{metrics}");
}
