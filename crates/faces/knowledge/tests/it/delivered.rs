//! Envelopes that are delivered by somebody else than HTTP: the same answers, and no hurry.

use bytes::Bytes;
use orchestr8_knowledge_face::security::jws::Form;
use orchestr8_testing::within;
use serde_json::{Value, json};

use crate::world::{World, create, envelope};

async fn deliver(world: &World, tenant: &str, message: String) -> (u16, Value) {
    let delivered = world.envelopes.deliver(tenant, Bytes::from(message), None).await;
    (delivered.status, serde_json::from_slice(&delivered.body).unwrap())
}

#[tokio::test]
async fn a_delivered_envelope_is_one_like_any_other() {
    let world = World::new();
    let wish = create(1, 1, "x").to_string();
    let (status, first) = deliver(&world, "acme", wish.clone()).await;
    assert_eq!((status, &first["data"]["revision"]), (200, &json!(1)));
    let (_, again) = deliver(&world, "acme", wish.clone()).await;
    assert_eq!(again["replayed"], true, "it may be delivered more than once");
    let (status, elsewhere) = deliver(&world, "zeta", wish).await;
    assert_eq!((status, &elsewhere["error"]["code"]), (403, &json!("FORBIDDEN")));
    assert_eq!(deliver(&world, "acme", "{}".into()).await.0, 400);
    assert_eq!(deliver(&world, "acme", "nonsense".into()).await.0, 400);
    assert_eq!(world.get("/metrics").await.text.matches("a2a_retries_total{").count(), 1);
}

#[tokio::test]
async fn a_delivered_envelope_is_signed_where_signatures_are_asked_for() {
    let (world, pair) = World::external().await;
    let wish = envelope(1, "knowledge.query_knowledge", json!({"query": "q"})).to_string();
    assert_eq!(deliver(&world, "acme", wish.clone()).await.0, 401);
    let signed = world.signature(&pair, wish.as_bytes(), "nonce-0001", Form::Compact);
    assert_eq!(deliver(&world, "acme", signed.clone()).await.0, 200);
    assert_eq!(deliver(&world, "acme", signed).await.0, 401, "its nonce is used up");
}

#[tokio::test]
async fn the_answer_to_a_delivered_envelope_is_its_end() {
    let world = World::with(orchestr8_knowledge_face::Settings { ack_ms: 1, ..Default::default() });
    let wish = envelope(1, "test.slow", json!({})).to_string();
    world.domain.release.notify_one();
    let (status, answer) = within(deliver(&world, "acme", wish)).await;
    assert_eq!((status, &answer["data"]), (200, &json!({"done": true})));
}
