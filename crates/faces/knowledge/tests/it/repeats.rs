//! Repeats, order and rates: what the same envelope, an earlier one and one too many come to.

use http::Method;
use orchestr8_knowledge_face::Settings;
use serde_json::json;

use crate::world::{World, create, envelope, id};

const CREATE: &str = "knowledge.create_document";

#[tokio::test]
async fn kno_9_a_key_is_remembered_over_a_restart_and_stands_for_one_wish() {
    let world = World::new();
    let mut wish = create(1, 1, "one");
    wish["idempotency_key"] = json!("acme:subject-123:create_document:v1");
    let first = world.send(&wish).await;
    assert_eq!(first.data(), json!({"id": id(1), "revision": 1}));
    assert_eq!(first.header("idempotency-replayed"), "");
    let world = world.restart();
    wish["request_id"] = json!("20000000-0000-4000-8000-000000000001");
    let again = world.send(&wish).await;
    assert_eq!(again.data(), first.data());
    assert_eq!((again.header("idempotency-replayed"), &again.json()["replayed"]), ("true", &json!(true)));
    wish["payload"]["args"]["content"]["body"] = json!("two");
    wish["request_id"] = json!("20000000-0000-4000-8000-000000000002");
    assert_eq!(world.send(&wish).await.error(409), "CONFLICT");
    assert_eq!(world.domain.runs(CREATE), 1);
}

#[tokio::test]
async fn a_request_id_is_one_request_also_without_a_key() {
    let world = World::new();
    let wish = create(1, 1, "one");
    world.send(&wish).await.data();
    assert_eq!(world.send(&wish).await.json()["replayed"], true);
    assert_eq!(world.send(&create(1, 2, "two")).await.error(409), "CONFLICT");
    assert_eq!(world.domain.runs(CREATE), 1);
}

#[tokio::test]
async fn failures_are_remembered_and_marked_too() {
    let world = World::new();
    world.send(&create(1, 1, "one")).await.data();
    let wish = create(2, 1, "one");
    for replayed in ["", "true"] {
        let answer = world.send(&wish).await;
        assert_eq!(answer.error(409), "CONFLICT");
        assert_eq!(answer.header("idempotency-replayed"), replayed);
    }
}

#[tokio::test]
async fn sixty_four_at_once_run_once() {
    let world = World::new();
    let mut wish = create(1, 1, "one");
    wish["idempotency_key"] = json!("k");
    let answers = futures::future::join_all((0..64).map(|_| world.send(&wish))).await;
    assert_eq!(answers.iter().filter(|answer| answer.json()["replayed"] != true).count(), 1);
    assert!(answers.iter().all(|answer| answer.data()["revision"] == 1));
    assert_eq!(world.domain.runs(CREATE), 1);
}

#[tokio::test]
async fn kno_9_an_earlier_number_is_ignored_also_after_a_restart() {
    let world = World::new();
    let numbered = |request: u8, document: u8, seq: i64| {
        let mut wish = create(request, document, "x");
        (wish["seq"], wish["context_id"]) = (json!(seq), json!("thread"));
        wish
    };
    world.send(&numbered(1, 1, 5)).await.data();
    let world = world.restart();
    let late = world.send(&numbered(2, 2, 4)).await;
    assert_eq!(late.status, 200);
    assert_eq!(late.json(), json!({"ok": true, "data": null, "ignored": true}));
    assert_eq!(world.domain.runs(CREATE), 1, "it had no effect");
    assert_eq!(world.send(&numbered(1, 1, 5)).await.json()["replayed"], true, "the same again is a replay");
    world.send(&numbered(3, 3, 6)).await.data();
    let known = world.send(&numbered(1, 1, 5)).await;
    assert_eq!(known.json()["replayed"], true, "what was answered is answered, however late");
    let mut elsewhere = numbered(4, 4, 1);
    elsewhere["context_id"] = json!("other");
    assert_eq!(world.send(&elsewhere).await.data()["revision"], 1, "another context counts for itself");
    let mut somebody = numbered(5, 5, 1);
    somebody["principal"]["sub"] = json!("svc:other");
    assert_eq!(world.send(&somebody).await.data()["revision"], 1, "and so does another principal");
}

#[tokio::test]
async fn the_header_and_the_envelope_name_one_key() {
    let world = World::new();
    let mut wish = create(1, 1, "one");
    wish["idempotency_key"] = json!("a:b");
    let ask = |key: &'static str| {
        let (world, body) = (&world, wish.to_string().into_bytes());
        async move { world.ask(Method::POST, "/mcp/actions", &[("idempotency-key", key)], body).await }
    };
    assert_eq!(ask("a:c").await.error(400), "INVALID_ARGUMENT");
    assert_eq!(ask("a:b").await.data()["revision"], 1);
}

#[tokio::test]
async fn rates_are_told_and_kept() {
    let world = World::with(Settings { rate_per_minute: Some(2), ..Settings::default() });
    let query = envelope(1, "knowledge.query_knowledge", json!({"query": "q"}));
    for left in ["1", "0"] {
        let answer = world.send(&query).await;
        answer.data();
        assert_eq!((answer.header("x-ratelimit-limit"), answer.header("x-ratelimit-remaining")), ("2", left));
    }
    let refused = world.send(&query).await;
    assert_eq!(refused.error(429), "RATE_LIMIT_EXCEEDED");
    assert_eq!((refused.header("retry-after"), refused.header("x-ratelimit-remaining")), ("30", "0"));
    let mut other = query.clone();
    other["tenant_id"] = json!("zeta");
    world.send(&other).await.data();
}

#[tokio::test]
async fn what_was_answered_is_counted() {
    let world = World::new();
    world.send(&create(1, 1, "one")).await.data();
    world.send(&create(1, 1, "one")).await.data();
    world.send(&create(2, 1, "one")).await.error(409);
    world.send(&json!({})).await.error(400);
    let text = world.get("/metrics").await.text.clone();
    let labels = r#"action="knowledge.create_document",tenant="acme",principal="svc:agent""#;
    for line in [
        format!(r#"a2a_requests_total{{{labels},status="SUCCESS",error_code=""}} 2"#),
        format!(r#"a2a_requests_total{{{labels},status="ERROR",error_code="CONFLICT"}} 1"#),
        format!(r#"a2a_retries_total{{{labels},status="SUCCESS",error_code=""}} 1"#),
        format!(r#"a2a_latency_ms_bucket{{{labels},status="SUCCESS",error_code="",le="+Inf"}} 2"#),
        r#"a2a_requests_total{action="",tenant="",principal="",status="ERROR",error_code="INVALID_ARGUMENT"} 1"#.to_owned(),
        "a2a_dlq_total 0".to_owned(),
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}
