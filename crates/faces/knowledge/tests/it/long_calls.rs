//! Calls that take longer than their client waits: acknowledged, looked at, cancelled, and still there after a restart.

use orchestr8_knowledge_face::Settings;
use orchestr8_testing::within;
use serde_json::{Value, json};

use crate::world::{World, envelope};

pub fn impatient() -> World {
    World::with(Settings { ack_ms: 20, ..Settings::default() })
}

/// Looks until the call has come to this.
pub async fn until(world: &World, url: &str, state: &str) -> Value {
    within(async {
        loop {
            let data = world.get(url).await.data();
            if data["state"] == state {
                return data;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

pub async fn acked(world: &World, wish: &Value) -> String {
    let answer = world.send(wish).await;
    assert_eq!(answer.status, 202);
    let data = answer.data();
    assert_eq!((&data["state"], &data["request_id"]), (&json!("ACKED"), &wish["request_id"]));
    assert_eq!(answer.header("location"), data["check_url"]);
    data["check_url"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_long_call_is_acknowledged_and_ends_where_it_can_be_seen() {
    let world = impatient();
    let url = acked(&world, &envelope(1, "test.slow", json!({}))).await;
    until(&world, &url, "RUNNING").await;
    world.domain.release.notify_one();
    let ended = until(&world, &url, "SUCCEEDED").await;
    assert_eq!(ended["answer"]["data"], json!({"done": true}));
    assert_eq!(ended["action"], "test.slow");
    let world = world.restart();
    assert_eq!(world.get(&url).await.data()["state"], "SUCCEEDED");
    let cancelled = world.post(&url.replace('?', "/cancel?"), &json!({})).await;
    assert_eq!(cancelled.data()["state"], "SUCCEEDED", "what succeeded stays so");
}

#[tokio::test]
async fn a_long_call_can_be_cancelled() {
    let world = impatient();
    let url = acked(&world, &envelope(1, "test.slow", json!({}))).await;
    world.post(&url.replace('?', "/cancel?"), &json!({})).await.data();
    let ended = until(&world, &url, "CANCELLED").await;
    assert_eq!(ended["answer"]["error"]["code"], "CONFLICT");
}

#[tokio::test]
async fn a_failed_call_is_compensated_on_request() {
    let world = impatient();
    let url = acked(&world, &envelope(1, "test.slow", json!({"fail": true}))).await;
    until(&world, &url, "RUNNING").await;
    let acked = world.get("/metrics").await.text.clone();
    world.domain.release.notify_one();
    assert!(!acked.contains("a2a_requests_total{action=\"test.slow\""), "KNO-11: nothing has come of it yet");
    let ended = until(&world, &url, "FAILED").await;
    assert_eq!(ended["answer"]["error"]["code"], "UNAVAILABLE");
    let metrics = world.get("/metrics").await.text.clone();
    let line =
        metrics.lines().find(|line| line.starts_with("a2a_requests_total{action=\"test.slow\"")).unwrap();
    assert!(line.ends_with(r#"status="ERROR",error_code="UNAVAILABLE"} 1"#), "KNO-11: {line}");
    let compensated = world.post(&url.replace('?', "/cancel?"), &json!({})).await.data();
    assert_eq!(compensated["state"], "COMPENSATED");
    assert_eq!(world.get(&url).await.data()["state"], "COMPENSATED");
    is_recorded(&world, "requests.cancel", "COMPENSATED").await;
}

/// One entry of the audit trail says who changed the state of the first call, from where, and to what.
async fn is_recorded(world: &World, action: &str, state: &str) {
    let entries = world.recorded(action).await;
    assert_eq!(entries.len(), 1, "{entries:?}");
    let entry = &entries[0];
    assert_eq!(entry["object"], "10000000-0000-4000-8000-000000000001", "{entry}");
    assert_eq!(entry["detail"], json!({"state": state}), "{entry}");
    assert_eq!((&entry["tenant"], &entry["result"]), (&json!("acme"), &json!("success")), "{entry}");
    assert_eq!((&entry["transport"], &entry["face"]), (&json!("http"), &json!("knowledge")), "{entry}");
    assert!(entry["principal"].as_str().is_some_and(|name| name != "server"), "{entry}");
}

#[tokio::test]
async fn a_call_the_server_died_under_is_failed_and_may_be_sent_again() {
    let world = impatient();
    let wish = envelope(1, "test.slow", json!({}));
    let url = acked(&world, &wish).await;
    // The old process is still there, which a real one would not be; its row is all the new one sees.
    let world = world.restart();
    let seen = world.get(&url).await.data();
    assert_eq!((&seen["state"], &seen["answer"]["error"]["code"]), (&json!("FAILED"), &json!("UNAVAILABLE")));
    world.get(&url).await.data();
    is_recorded(&world, "requests.settle", "FAILED").await;
}

#[tokio::test]
async fn others_see_nothing_of_a_call() {
    let world = impatient();
    let url = acked(&world, &envelope(1, "test.slow", json!({}))).await;
    let other = url.replace("acme", "zeta");
    assert_eq!(world.get(&other).await.error(404), "NOT_FOUND");
    assert_eq!(world.post(&other.replace('?', "/cancel?"), &json!({})).await.error(404), "NOT_FOUND");
    assert_eq!(world.get("/mcp/requests/nonsense?tenant_id=acme").await.error(404), "NOT_FOUND");
}

#[tokio::test]
async fn what_was_answered_at_once_is_remembered_by_its_request() {
    let world = World::new();
    let wish = crate::world::create(9, 1, "x");
    world.send(&wish).await.data();
    let url = format!("/mcp/requests/{}?tenant_id=acme", wish["request_id"].as_str().unwrap());
    let seen = world.get(&url).await.data();
    assert_eq!((&seen["state"], &seen["answer"]["data"]["revision"]), (&json!("SUCCEEDED"), &json!(1)));
}
