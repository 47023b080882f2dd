//! Who may do what, role by role, action by action, in their own tenant and in another (KNO-6).

use orchestr8_testing::Table;
use serde_json::{Value, json};

use crate::world::{World, create, envelope, id};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../conformance/knowledge/rbac.md");

fn args(action: &str) -> Value {
    match action {
        "create_document" => create(0, 9, "x")["payload"]["args"].clone(),
        "update_document" => {
            json!({"document_id": id(1), "patch": {"content": {"body": "y"}}, "update_mask": ["content.body"]})
        }
        "query_knowledge" => json!({"query": "q"}),
        "move_document" => json!({"document_id": id(1), "new_parent_id": "root"}),
        "list_children" => json!({"parent_id": id(1)}),
        _ => json!({"document_id": id(1)}),
    }
}

/// What a principal with this role hears: `yes`, `no`, or `unknown` for what is not there for them.
async fn outcome(action: &str, role: &str, tenant: &str) -> String {
    let world = World::new();
    world.send(&create(1, 1, "x")).await.data();
    if action == "restore_document" {
        world.send(&envelope(3, "knowledge.delete_document", json!({"document_id": id(1)}))).await.data();
    }
    let mut wish = envelope(2, &format!("knowledge.{action}"), args(action));
    (wish["principal"]["roles"], wish["tenant_id"]) = (json!([role]), json!(tenant));
    let answer = world.send(&wish).await;
    match answer.status.as_u16() {
        200 => "yes".to_owned(),
        403 => "no".to_owned(),
        404 => "unknown".to_owned(),
        other => panic!("{action} as {role}: {other} {}", answer.text),
    }
}

#[tokio::test]
async fn kno_6_every_role_may_do_what_the_table_says_and_nothing_else() {
    let roles = ["owner", "editor", "viewer", "agent", "cursor", "codex", "admin"];
    let mut found = Vec::new();
    let table = Table::read(FILE, "Roles");
    for row in &table.rows {
        for tenant in ["acme", "zeta"] {
            for role in roles {
                found.push((
                    (row.get("action").to_owned(), tenant, role),
                    outcome(row.get("action"), role, tenant).await,
                ));
            }
        }
    }
    assert_eq!(table.rows.len(), 9);
    let of = |action: &str, tenant: &str, role: &str| {
        let at = |entry: &&((String, &str, &str), String)| {
            entry.0.0 == action && entry.0.1 == tenant && entry.0.2 == role
        };
        found.iter().find(at).unwrap().1.clone()
    };
    table.holds(&roles, |row| roles.iter().map(|role| of(row.get("action"), "acme", role)).collect());
    let elsewhere = Table::read(FILE, "Another tenant");
    elsewhere.holds(&roles, |row| roles.iter().map(|role| of(row.get("action"), "zeta", role)).collect());
}
