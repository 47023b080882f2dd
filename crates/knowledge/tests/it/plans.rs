//! A change costs the same in a tree of ten documents and of a million.

use orchestr8_knowledge::{Settings, tables};
use orchestr8_testing::{Noting, Parts, memory};
use serde_json::json;

use crate::world::{World, id};

/// Whether a step looks at all rows of a table, or at all of a tenant. A tenant has one tree, and few webhooks.
fn looks_at_all(step: &str) -> bool {
    let is_small = [" tree ", "knowledge_tree", "knowledge_webhook"].iter().any(|table| step.contains(table));
    // What a full-text table calls a scan by row number is a look at one row.
    let is_scan = step.starts_with("SCAN knowledge_") && !step.ends_with("VIRTUAL TABLE INDEX 0:=");
    !is_small && (is_scan || step.ends_with("(tenant=?)"))
}

#[tokio::test]
async fn no_change_of_a_document_looks_at_all_of_them() {
    let store = memory(&[tables::MIGRATIONS]);
    let noting = Noting::on(store.clone());
    let world = World::from_parts(Parts::on(noting.clone()), store, Settings::default());
    for n in 1..=5 {
        world.put(n, "root", "One", "falcons dive over the sea").await;
    }
    let patch =
        json!({"content": {"mime_type": "text/markdown", "body": "other"}, "metadata": {"tags": ["a"]}});
    let update = json!({"document_id": id(1), "update_mask": ["content", "metadata.tags"], "patch": patch});
    world.ask("update_document", update).await;
    world.ask("move_document", json!({"document_id": id(2), "new_parent_id": id(1)})).await;
    world.ask("delete_document", json!({"document_id": id(1)})).await;
    world.ask("restore_document", json!({"document_id": id(1)})).await;
    let plans = noting.plans().await;
    assert!(plans.len() > 10, "{} statements", plans.len());
    for plan in plans {
        assert!(!plan.steps.iter().any(|step| looks_at_all(step)), "{}\n{:#?}", plan.sql, plan.steps);
    }
}
