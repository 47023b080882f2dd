//! Envelopes over the bus (KNO-1): checked when they are published, run when their turn comes, answered in an inbox.

use http::Method;
use orchestr8_knowledge_face::security::jws::{Claims, Form};
use orchestr8_knowledge_face::{Security, Settings};
use orchestr8_testing::within;
use serde_json::{Value, json};

use crate::world::{World, create, envelope, id};

const INBOX: &str = "/a2a/replies/me?tenant_id=acme&wait_ms=30000";

pub fn published(mut wish: Value) -> Value {
    wish["reply_to"] = json!("a2a.acme.reply.me");
    wish
}

pub fn flaky(request: u8, name: &str, fails: u64) -> Value {
    published(envelope(request, "test.flaky", json!({"name": name, "fails": fails})))
}

pub async fn publish(world: &World, wish: &Value) -> Value {
    let answer = world.post("/a2a/publish", wish).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    answer.data()
}

/// The reply after one of them.
pub async fn reply(world: &World, after: i64) -> (i64, Value) {
    let data = within(world.get(&format!("{INBOX}&after={after}&limit=1"))).await.data();
    let reply = &data["replies"][0];
    (reply["seq"].as_i64().unwrap_or_else(|| panic!("{data}")), reply["envelope"].clone())
}

pub async fn state(world: &World, request: u8) -> Value {
    let target = format!("/mcp/requests/10000000-0000-4000-8000-0000000000{request:02x}?tenant_id=acme");
    world.get(&target).await.data()
}

#[tokio::test]
async fn kno_1_a_published_envelope_is_run_and_answered_with_an_envelope() {
    let world = World::with_bus(Settings::default()).await;
    let mut wish = published(create(1, 1, "hello"));
    (wish["trace_id"], wish["context_id"]) = (json!("t-1"), json!("thread"));
    let acked = publish(&world, &wish).await;
    assert_eq!((&acked["state"], &acked["request_id"]), (&json!("ACKED"), &wish["request_id"]));
    assert_eq!(world.get(acked["check_url"].as_str().unwrap()).await.data()["state"], "ACKED");
    world.consume();
    let (_, reply) = reply(&world, 0).await;
    for same in
        ["envelope_version", "request_id", "tenant_id", "action", "action_version", "trace_id", "context_id"]
    {
        assert_eq!(reply[same], wish[same], "{same}");
    }
    assert_eq!(reply["principal"]["sub"], "svc:orchestr8");
    assert_eq!((&reply["correlation_id"], &reply["payload"]["status"]), (&wish["request_id"], &json!(200)));
    assert_eq!(reply["payload"]["response"]["data"], json!({"id": id(1), "revision": 1}));
    let done = world.get(acked["check_url"].as_str().unwrap()).await.data();
    assert_eq!((&done["state"], &done["answer"]), (&json!("SUCCEEDED"), &reply["payload"]["response"]));
    let offered = world.get("/mcp/capabilities").await.json();
    assert_eq!(offered["transports"], json!(["http-sync", "pubsub-async"]));
}

#[tokio::test]
async fn kno_1_what_can_never_work_is_refused_when_it_is_published() {
    let world = World::with_bus(Settings::default()).await;
    let with = |name: &str, value: Value| {
        let mut wish = create(1, 1, "x");
        wish[name] = value;
        wish
    };
    let viewer = json!({"sub": "svc:agent", "roles": ["viewer"]});
    for (wish, status, code) in [
        (json!({}), 400, "INVALID_ARGUMENT"),
        (with("action", json!("knowledge.nothing")), 400, "INVALID_ARGUMENT"),
        (with("action_version", json!("9.0.0")), 400, "INVALID_ARGUMENT"),
        (with("reply_to", json!("a2a.zeta.reply.me")), 400, "INVALID_ARGUMENT"),
        (with("reply_to", json!("a2a.acme.knowledge.create_document")), 400, "INVALID_ARGUMENT"),
        (with("timestamp", json!("2025-01-01T00:00:00Z")), 440, "EXPIRED"),
        (with("principal", viewer), 403, "FORBIDDEN"),
    ] {
        assert_eq!(world.post("/a2a/publish", &wish).await.error(status), code, "{wish}");
    }
    let nowhere = World::new();
    assert_eq!(nowhere.post("/a2a/publish", &create(1, 1, "x")).await.error(503), "UNAVAILABLE");
}

#[tokio::test]
async fn kno_1_what_failed_is_tried_again_until_it_works() {
    let world = World::with_bus(Settings::default()).await;
    world.consume();
    publish(&world, &flaky(1, "two", 2)).await;
    let (seq, first) = reply(&world, 0).await;
    assert_eq!(
        first["payload"]["response"]["data"],
        json!({"name": "two", "run": 3}),
        "failures are not remembered"
    );
    publish(&world, &flaky(1, "two", 2)).await;
    let (_, again) = reply(&world, seq).await;
    assert_eq!(again["payload"]["response"]["data"]["run"], 3, "what worked is");
    assert_eq!(world.domain.runs("two"), 3);
    let metrics = world.get("/metrics").await.text.clone();
    assert!(metrics.contains(
        r#"a2a_retries_total{action="test.flaky",tenant="acme",principal="svc:agent",status="RETRY",error_code=""} 4"#
    ));
}

/// What a metric says of published envelopes: its value by status and error code.
async fn counted(world: &World, metric: &str) -> Vec<String> {
    let prefix = format!(r#"{metric}{{action="test.flaky",tenant="acme",principal="svc:agent","#);
    let text = world.get("/metrics").await.text.clone();
    text.lines().filter_map(|line| line.strip_prefix(&prefix)).map(str::to_owned).collect()
}

#[tokio::test]
async fn kno_11_an_envelope_is_one_request_however_often_it_is_delivered() {
    let world = World::with_bus(Settings::default()).await;
    world.consume();
    publish(&world, &flaky(1, "two", 2)).await;
    let (seq, _) = reply(&world, 0).await;
    publish(&world, &flaky(2, "six", 6)).await;
    reply(&world, seq).await;
    let mut refused = flaky(3, "none", 0);
    refused["action_version"] = json!("9.0.0");
    world.post("/a2a/publish", &refused).await.error(400);
    let once = [
        r#"status="ERROR",error_code="INVALID_ARGUMENT"} 1"#,
        r#"status="ERROR",error_code="UNAVAILABLE"} 1"#,
        r#"status="SUCCESS",error_code=""} 1"#,
    ];
    assert_eq!(counted(&world, "a2a_requests_total").await, once);
    assert_eq!(counted(&world, "a2a_latency_ms_count").await, once);
    assert_eq!(counted(&world, "a2a_retries_total").await, [r#"status="RETRY",error_code=""} 7"#], "2 and 5");
}

#[tokio::test]
async fn kno_1_after_six_attempts_it_is_a_dead_letter_that_can_be_redriven_or_dropped() {
    let world = World::with_bus(Settings::default()).await;
    world.consume();
    publish(&world, &flaky(1, "six", 6)).await;
    let (seq, given_up) = reply(&world, 0).await;
    assert_eq!(given_up["payload"]["response"]["error"]["code"], "UNAVAILABLE");
    assert_eq!((world.domain.runs("six"), &state(&world, 1).await["state"]), (6, &json!("FAILED")));
    assert!(world.get("/metrics").await.text.contains("a2a_dlq_total{action=\"test.flaky\""));
    let letters = world.get("/admin/dead-letters").await.data()["dead_letters"].clone();
    let letter = &letters[0];
    assert_eq!((&letter["attempts"], &letter["subject"]), (&json!(6), &json!("a2a.acme.test.flaky")));
    assert!(letter["why"].as_str().unwrap().contains("not yet"), "{letter}");
    let path = format!("/admin/dead-letters/{}", letter["seq"]);
    assert_eq!(world.get(&path).await.data()["envelope"], flaky(1, "six", 6));
    assert_eq!(world.get(&format!("{path}?tenant_id=zeta")).await.error(404), "NOT_FOUND");
    world.post(&format!("{path}/redrive"), &json!({})).await.data();
    let (_, works) = reply(&world, seq).await;
    assert_eq!(works["payload"]["response"]["data"]["run"], 7);
    assert_eq!(world.post(&format!("{path}/redrive"), &json!({})).await.error(404), "NOT_FOUND");
    publish(&world, &envelope(2, "knowledge.get_document", json!({"document_id": id(9)}))).await;
    let letter = within(async {
        loop {
            let letters =
                world.get("/admin/dead-letters?tenant_id=acme").await.data()["dead_letters"].clone();
            if let Some(letter) = letters.get(0) {
                break letter.clone();
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(letter["attempts"], 1, "what fails for good and has nobody to tell is kept at once: {letter}");
    let path = format!("/admin/dead-letters/{}", letter["seq"]);
    world.ask(Method::DELETE, &path, &[], Vec::new()).await.data();
    // A worker lets go of a message a moment after it is on record where that has gone.
    within(async {
        while world.get("/admin/queues").await.data()["queues"] != json!([]) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn kno_1_what_was_published_is_run_after_a_restart() {
    let world = World::with_bus(Settings::default()).await;
    for number in 1..=3 {
        publish(&world, &published(create(number, number, "x"))).await;
    }
    let world = world.restart_bus().await;
    world.consume();
    let mut after = 0;
    for _ in 0..3 {
        let (seq, reply) = reply(&world, after).await;
        assert_eq!(reply["payload"]["status"], 200);
        after = seq;
    }
    assert_eq!(world.domain.runs("knowledge.create_document"), 3);
}

#[tokio::test]
async fn kno_3_a_proof_is_shown_once_and_holds_for_every_delivery() {
    let world = World::with_bus(Settings { security: Security::External, ..Settings::default() }).await;
    let pair = world.key("k-1", "acme", "svc:agent", &["owner"]).await;
    let wish = flaky(1, "signed", 2).to_string();
    let address = Some(("POST", "/a2a/publish"));
    let claims = Claims { nonce: "nonce-0001", address, ..world.claims() };
    let signed = world.signature_with(&pair, wish.as_bytes(), claims, Form::Detached);
    let send = |signature: String, wish: String| {
        let world = &world;
        async move {
            let headers = [("x-jws-signature", signature.as_str())];
            world.ask(Method::POST, "/a2a/publish", &headers, wish.into_bytes()).await
        }
    };
    send(signed.clone(), wish.clone()).await.data();
    assert_eq!(send(signed, wish.clone()).await.error(401), "UNAUTHORIZED");
    assert_eq!(world.post("/a2a/publish", &flaky(1, "signed", 2)).await.error(401), "UNAUTHORIZED");
    world.consume();
    let broker = world.settings.pubsub.clone().unwrap().broker;
    let (mut news, inbox) = (broker.news(), orchestr8_broker::Subject::of_inbox);
    let tenant = orchestr8_contract::id::Tenant::parse("acme").unwrap();
    let to = inbox(&tenant, "me").unwrap();
    let replies = within(async {
        loop {
            let page =
                broker.replies(tenant.clone(), to.clone(), Some("svc:agent".into()), 0, 9).await.unwrap();
            if !page.items.is_empty() {
                break page.items;
            }
            news.changed().await.unwrap();
        }
    })
    .await;
    let reply: Value = serde_json::from_slice(&replies[0].body).unwrap();
    assert_eq!(reply["payload"]["response"]["data"]["run"], 3, "{reply}");
}

#[tokio::test]
async fn kno_9_numbered_envelopes_keep_their_order_over_failures() {
    let world = World::with_bus(Settings::default()).await;
    for seq in 1..=4_u8 {
        let mut wish = flaky(seq, &format!("n{seq}"), u64::from(seq % 2) * 2);
        (wish["seq"], wish["context_id"]) = (json!(seq), json!("thread"));
        publish(&world, &wish).await;
    }
    world.consume();
    let mut after = 0;
    for number in 1..=4 {
        let (seq, reply) = reply(&world, after).await;
        assert_eq!(
            reply["payload"]["response"]["data"]["name"],
            format!("n{number}"),
            "none was ignored: {reply}"
        );
        after = seq;
    }
}

#[tokio::test]
async fn kno_1_a_tenant_with_enough_waiting_is_told_to_slow_down() {
    let world = World::with_bus(Settings::default()).await;
    for number in 1..=5 {
        publish(&world, &create(number, number, "x")).await;
    }
    let refused = world.post("/a2a/publish", &create(6, 6, "x")).await;
    assert_eq!(refused.error(429), "RATE_LIMIT_EXCEEDED");
    assert_eq!(refused.header("retry-after"), "1");
    let mut theirs = create(7, 7, "x");
    theirs["tenant_id"] = json!("zeta");
    publish(&world, &theirs).await;
    let queues = world.get("/admin/queues").await.data()["queues"].clone();
    assert_eq!((&queues[0]["queued"], &queues[1]["queued"]), (&json!(5), &json!(1)));
}

#[tokio::test]
async fn what_waits_can_be_cancelled_and_what_runs_is_seen_running() {
    let world = World::with_bus(Settings::default()).await;
    publish(&world, &published(create(1, 1, "x"))).await;
    let path = "/mcp/requests/10000000-0000-4000-8000-000000000001/cancel?tenant_id=acme";
    assert_eq!(world.post(path, &json!({})).await.data()["state"], "CANCELLED");
    let recorded = world.recorded("requests.cancel").await;
    assert_eq!(recorded.len(), 1, "{recorded:?}");
    assert_eq!(recorded[0]["detail"], json!({"state": "CANCELLED"}), "{recorded:?}");
    world.consume();
    let (seq, reply) = reply(&world, 0).await;
    assert_eq!(
        (&reply["payload"]["status"], world.domain.runs("knowledge.create_document")),
        (&json!(409), 0)
    );
    publish(&world, &published(envelope(2, "test.slow", json!({})))).await;
    within(async {
        while state(&world, 2).await["state"] != "RUNNING" {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let path = "/mcp/requests/10000000-0000-4000-8000-000000000002/cancel?tenant_id=acme";
    world.post(path, &json!({})).await.data();
    let (_, stopped) = self::reply(&world, seq).await;
    assert_eq!(stopped["payload"]["response"]["ok"], false, "{stopped}");
    assert_eq!(state(&world, 2).await["state"], "CANCELLED");
}

#[tokio::test]
async fn replies_are_for_those_who_asked() {
    let world = World::with_bus(Settings::default()).await;
    world.consume();
    publish(&world, &published(create(1, 1, "x"))).await;
    let (seq, _) = reply(&world, 0).await;
    let elsewhere = world.get("/a2a/replies/me?tenant_id=zeta").await.data();
    assert_eq!(elsewhere["replies"], json!([]));
    assert_eq!(
        world.get(&format!("/a2a/replies/me?tenant_id=acme&after={seq}")).await.data()["replies"],
        json!([])
    );
    assert_eq!(world.get("/a2a/replies/a%20b?tenant_id=acme").await.status, 404);
    let headers = [("accept", "text/event-stream"), ("last-event-id", "0")];
    // A stream ends when the server stops; what was there before has been sent by then.
    world.settings.shutdown.cancel();
    let stream = within(world.ask(Method::GET, "/a2a/replies/me?tenant_id=acme", &headers, Vec::new())).await;
    assert!(stream.text.starts_with(&format!("id: {seq}\nevent: reply\ndata: {{")), "{}", stream.text);
}
