//! One key, one execution (ADR-003): in flight it joins, ended it replays, another body conflicts, restarts change nothing.

use std::sync::Arc;

use serde_json::json;

use crate::world::{Desk, World, flow, step, value};

#[tokio::test]
async fn sixty_four_posts_with_one_key_start_one_execution() {
    let world = Arc::new(World::new().await);
    let workflow = flow(json!([step("a", &[], json!({"value": 1}))]));
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let (world, workflow) = (world.clone(), workflow.clone());
            tokio::spawn(async move { value(world.keyed("k", json!({"workflow": workflow})).await) })
        })
        .collect();
    let mut ids = std::collections::BTreeSet::new();
    for task in tasks {
        ids.insert(task.await.unwrap()["executionId"].as_str().unwrap().to_owned());
    }
    assert_eq!(ids.len(), 1, "{ids:?}");
    world.end(ids.first().unwrap()).await;
    assert_eq!(world.desk.count("a"), 1);
    let all = world.ask("executions.list", json!({})).await;
    assert_eq!(all["executions"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_key_survives_a_restart_and_refuses_another_body() {
    let folder = tempfile::tempdir().unwrap();
    let desk: Arc<Desk> = Arc::default();
    let world = World::at(folder.path(), desk.clone()).await;
    let workflow = flow(json!([step("a", &[], json!({"value": 1}))]));
    let first = value(world.keyed("k", json!({"workflow": workflow})).await);
    world.end(first["executionId"].as_str().unwrap()).await;
    world.die().await;
    let world = World::at(folder.path(), desk.clone()).await;
    let settled = world.keyed("k", json!({"workflow": workflow})).await;
    assert!(settled.replayed);
    assert_eq!(value(settled), first);
    let other = flow(json!([step("b", &[], json!({"value": 2}))]));
    let conflict = world.keyed("k", json!({"workflow": other})).await;
    assert_eq!(conflict.code().unwrap().as_str(), "IDEMPOTENCY_KEY_CONFLICT");
    assert_eq!(desk.count("a"), 1);
}
