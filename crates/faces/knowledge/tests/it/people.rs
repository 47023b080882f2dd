//! Plain REST for people, what the server says of itself, and its peers.

use http::Method;
use serde_json::{Value, json};

use crate::world::{Answer, World, create, envelope, id};

async fn world() -> World {
    let world = World::new();
    world.send(&create(1, 1, &format!("{}one two two", "é".repeat(600)))).await.data();
    world
}

async fn patch(world: &World, target: &str, body: Value) -> Answer {
    world.ask(Method::PATCH, target, &[("x-tenant-id", "acme")], body.to_string().into_bytes()).await
}

#[tokio::test]
async fn a_document_is_read_in_part_or_whole() {
    let world = world().await;
    let path = format!("/documents/{}", id(1));
    let part = world.ask(Method::GET, &path, &[("x-tenant-id", "acme")], Vec::new()).await.json();
    assert_eq!(part["content"]["body"].as_str().unwrap().chars().count(), 500);
    assert_eq!((&part["truncated"], &part["content_length"]), (&json!(true), &json!(611)));
    let whole = world.get(&format!("{path}?full=true&tenant_id=acme")).await;
    assert!(whole.json()["content"]["body"].as_str().unwrap().ends_with("one two two"));
    assert_eq!(whole.header("etag"), "\"1\"");
    assert_eq!(world.get(&path).await.error(404), "NOT_FOUND", "it is another tenant's");
    assert_eq!(world.get(&format!("{path}?ful=true")).await.error(400), "INVALID_ARGUMENT");
}

#[tokio::test]
async fn an_edit_fits_exactly_once() {
    let world = world().await;
    let path = format!("/documents/{}", id(1));
    let missing = patch(&world, &path, json!({"old_str": "three", "new_str": "x"})).await;
    assert_eq!(missing.error(404), "NOT_FOUND_IN_CONTENT");
    let twice = patch(&world, &path, json!({"old_str": "two", "new_str": "x"})).await;
    assert_eq!(twice.error(409), "AMBIGUOUS");
    assert_eq!(twice.json()["error"]["details"]["occurrences"], 2);
    let done = patch(&world, &path, json!({"old_str": "one", "new_str": "x"})).await;
    assert_eq!(done.json(), json!({"id": id(1), "revision": 2}));
}

#[tokio::test]
async fn lists_batches_and_the_rest_ask_the_same_actions() {
    let world = world().await;
    let path = format!("/documents/{}", id(1));
    let list = world.get("/documents?prefix=/&limit=5&tenant_id=acme").await.json();
    assert_eq!(
        (list["documents"].as_array().unwrap().len(), &list["documents"][0]["id"]),
        (1, &json!(id(1)))
    );
    let batch = world.post("/documents/batch?tenant_id=acme", &json!({"ids": [id(1), id(2)]})).await.json();
    assert_eq!((&batch["documents"][0]["id"], &batch["not_found"]), (&json!(id(1)), &json!([id(2)])));
    let many: Vec<String> = (0..21).map(id).collect();
    for wrong in [json!({}), json!({"ids": []}), json!({"ids": many}), json!({"ids": [1]})] {
        assert_eq!(world.post("/documents/batch", &wrong).await.error(400), "INVALID_ARGUMENT");
    }
    let children = world.get("/documents/root/children?limit=1&tenant_id=acme").await.json();
    assert_eq!(children["children"][0]["id"], id(1));
    let history = world.get(&format!("{path}/history?limit=1&before_revision=2&tenant_id=acme")).await.json();
    assert_eq!(history["revisions"][0]["revision"], 1);
    let made = world.post("/documents?tenant_id=acme", &create(2, 2, "x")["payload"]["args"]).await;
    assert_eq!((made.status.as_u16(), &made.json()["revision"]), (201, &json!(1)));
    let moved = world.post(&format!("{path}/move?tenant_id=acme"), &json!({"new_parent_id": id(2)})).await;
    assert_eq!(moved.json()["parent_id"], id(2));
    let cycle = format!("/documents/{}/move?tenant_id=acme", id(2));
    assert_eq!(world.post(&cycle, &json!({"new_parent_id": id(1)})).await.error(409), "CONFLICT");
    let wrong = world.post("/documents?tenant_id=acme", &json!({"document_id": "x"})).await;
    assert_eq!(wrong.error(422), "UNPROCESSABLE_ENTITY");
    let gone = world.ask(Method::DELETE, &format!("{path}?tenant_id=acme"), &[], Vec::new()).await;
    assert_eq!(gone.json()["deleted"], true);
    let deleted = world.get("/documents?deleted=true&tenant_id=acme").await.json();
    assert_eq!(deleted["documents"][0]["id"], id(1));
    let back = world.post(&format!("{path}/restore?tenant_id=acme"), &json!({})).await;
    assert_eq!((back.status.as_u16(), &back.json()["id"]), (200, &json!(id(1))));
    assert_eq!(world.ask(Method::PUT, &path, &[], Vec::new()).await.error(405), "INVALID_ARGUMENT");
}

#[tokio::test]
async fn webhooks_are_added_listed_and_removed() {
    let world = world().await;
    let hook = world.post("/webhooks?tenant_id=acme", &json!({"url": "https://example.com/hook"})).await;
    assert_eq!(hook.status, 201, "{}", hook.text);
    let listed = world.get("/webhooks?tenant_id=acme").await.text.clone();
    assert!(listed.contains("https://example.com/hook"), "{listed}");
    let target = format!("/webhooks/{}?tenant_id=acme", hook.json()["id"].as_str().unwrap());
    assert_eq!(world.ask(Method::DELETE, &target, &[], Vec::new()).await.status, 200);
    assert_eq!(world.ask(Method::DELETE, &target, &[], Vec::new()).await.error(404), "NOT_FOUND");
}

#[tokio::test]
async fn what_is_written_is_found_by_the_next_query() {
    let world = world().await;
    world.send(&create(2, 2, "Blue whales are the largest animals.")).await.data();
    let query = envelope(3, "knowledge.query_knowledge", json!({"query": "largest animals"}));
    let answer = world.send(&query).await;
    assert_eq!(answer.data()["context"][0]["document_id"], id(2));
    assert!(answer.json()["usage"]["lexical_hits"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn kno_7_capabilities_come_from_the_registry() {
    let world = World::new();
    let found = world.get("/mcp/capabilities").await.json();
    assert_eq!((&found["envelope_versions"], &found["transports"]), (&json!(["2.2"]), &json!(["http-sync"])));
    let actions = found["actions"].as_array().unwrap();
    let names: Vec<&str> = actions.iter().map(|action| action["action"].as_str().unwrap()).collect();
    assert_eq!(names.iter().filter(|name| name.starts_with("knowledge.")).count(), 9);
    assert!(!names.contains(&"knowledge.edit"), "what the face needs for itself is not on offer");
    let create = json!({
        "action": "knowledge.create_document", "action_version": "1.0.0", "max_payload_bytes": 131_072, "max_concurrent": 10,
    });
    let delete =
        json!({"action": "knowledge.delete_document", "action_version": "1.0.0", "max_concurrent": 10});
    assert!(actions.contains(&create) && actions.contains(&delete), "{found}");
    assert_eq!(world.send(&envelope(1, "knowledge.edit", json!({}))).await.error(400), "INVALID_ARGUMENT");
}

#[tokio::test]
async fn kno_7_peers_are_known_by_their_heartbeats() {
    let world = World::new();
    let beat = json!({"name": "svc:peer", "status": "degraded", "revision": 7});
    let data = world.post("/mcp/heartbeat?tenant_id=acme", &beat).await.data();
    assert_eq!((&data["last_seen_at"], &data["revision"]), (&json!("2026-01-01T00:00:00.000Z"), &json!("7")));
    world.clock.advance(std::time::Duration::from_secs(601));
    let world = world.restart();
    let peers = world.get("/mcp/heartbeat?tenant_id=acme").await.data();
    assert_eq!(peers["peers"][0]["status"], "degraded");
    assert_eq!(peers["peers"][0]["stale"], true);
    assert_eq!(world.get("/mcp/heartbeat?tenant_id=zeta").await.data(), json!({"peers": []}));
    for wrong in [json!({}), json!({"status": "fine", "revision": 1}), json!({"status": "healthy"})] {
        assert_eq!(world.post("/mcp/heartbeat", &wrong).await.error(400), "INVALID_ARGUMENT");
    }
}
