//! One tenant hears the same, byte for byte, whether or not there is another.

use serde_json::{Value, json};

use crate::world::{World, create, envelope, id};

/// Everything one tenant asks, in order.
fn wishes(tenant: &str) -> Vec<Value> {
    let document = json!({"document_id": id(1)});
    let update = json!({"document_id": id(1), "patch": {"content": {"body": "y"}}, "update_mask": ["content.body"], "last_known_revision": 9});
    let mut wishes = vec![
        create(1, 1, "one"),
        create(1, 1, "one"),
        create(2, 1, "one"),
        envelope(3, "knowledge.get_document", document.clone()),
        envelope(4, "knowledge.update_document", update),
        envelope(5, "knowledge.query_knowledge", json!({"query": "q"})),
        envelope(6, "knowledge.delete_document", document),
        envelope(7, "knowledge.get_document", json!({"document_id": id(2)})),
    ];
    for (seq, wish) in wishes.iter_mut().enumerate() {
        wish["tenant_id"] = json!(tenant);
        wish["trace_id"] = json!("t");
        wish["seq"] = json!(7 - i64::try_from(seq).unwrap() / 4);
        wish["idempotency_key"] = json!(format!("k-{seq}"));
    }
    wishes
}

async fn heard(world: &World, wish: &Value) -> String {
    let answer = world.send(wish).await;
    format!("{} {} {}", answer.status, answer.header("x-ratelimit-remaining"), answer.text)
}

#[tokio::test]
async fn a_trace_is_byte_equal_with_and_without_another_tenant() {
    let (alone, together) = (World::new(), World::new());
    for (ours, theirs) in wishes("acme").iter().zip(wishes("zeta")) {
        let expected = heard(&alone, ours).await;
        let before = heard(&together, &theirs).await;
        assert_eq!(heard(&together, ours).await, expected);
        assert_eq!(before, expected, "and the other one hears the same of its own");
    }
}
