//! Sessions, statuses and headers of the legacy era.

use serde_json::{Value, json};

use super::client::{ACCEPT, EVENTS, JSON, call, initialize, initialized, request, text};
use super::world::{Plan, World};
use crate::http::{self, AdminToken};

#[tokio::test]
async fn initialize_begins_a_session_and_every_answer_names_its_connection() {
    let world = World::new().await;
    let mut client = world.client().await;
    let answer = client.post(&[("MCP-Protocol-Version", "2025-11-25")], &initialize("2025-11-25")).await;
    assert_eq!((answer.head.status, answer.head.get("content-type")), (200, Some("application/json")));
    assert_eq!(answer.json()["result"]["protocolVersion"], "2025-11-25");
    let id = answer.head.get("mcp-session-id").unwrap();
    assert!(id.len() >= 32 && id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)), "{id}");
    let connection = answer.head.get("x-correlation-id").unwrap();
    let early = client.post(&[("Mcp-Session-Id", id)], &request(1, "tools/list", json!({}))).await;
    assert_eq!(early.refusal(), (400, -32002), "MCP-INIT-6");
    assert_eq!(early.json()["error"]["data"]["correlationId"], connection);
    assert_eq!(early.head.get("x-correlation-id"), Some(connection));
    let done = client.post(&[("Mcp-Session-Id", id)], &initialized()).await;
    assert_eq!((done.head.status, done.text.as_str()), (202, ""));
    let list = client.post(&[("Mcp-Session-Id", id)], &request(2, "tools/list", json!({}))).await;
    assert!(list.json()["result"]["tools"].as_array().is_some_and(|tools| tools.len() >= 9));
    let other = world.session().await.post(&request(1, "ping", json!({}))).await;
    assert_ne!(other.head.get("x-correlation-id"), Some(connection));
}

#[tokio::test]
async fn without_a_session_only_initialize_is_taken() {
    let world = World::new().await;
    let mut client = world.client().await;
    for body in
        [request(5, "tools/list", json!({})), request(5, "ping", json!({})), request(5, "no/such", json!({}))]
    {
        let answer = client.post(&[], &body).await;
        assert_eq!(answer.refusal(), (400, -32002), "MCP-INIT-5");
        let body = answer.json();
        assert_eq!((&body["id"], &body["error"]["data"]["code"]), (&json!(5), &json!("NOT_INITIALIZED")));
        assert_eq!(body["error"]["data"]["correlationId"], answer.head.get("x-correlation-id").unwrap());
    }
    let response = json!({"jsonrpc": "2.0", "id": 7, "result": {}});
    for body in [initialized(), response] {
        let answer = client.post(&[], &body).await;
        assert_eq!((answer.refusal(), &answer.json()["id"]), ((400, -32002), &Value::Null));
    }
    let failed = client.post(&[], &request(0, "initialize", json!({"capabilities": {}}))).await;
    assert_eq!(failed.refusal(), (400, -32602));
    assert_eq!(failed.head.get("mcp-session-id"), None);
    assert_eq!(world.sessions(), 0);
}

#[tokio::test]
async fn an_unknown_session_is_404_and_so_is_one_that_has_ended() {
    let world = World::new().await;
    let session = world.session().await;
    let deleted = session.delete().await;
    assert_eq!((deleted.head.status, deleted.text.as_str()), (204, ""));
    let unknown = "0".repeat(64);
    let mut client = world.client().await;
    for id in [session.id.as_str(), &unknown, "", "x", "' OR 1=1 --"] {
        let header = [("Mcp-Session-Id", id)];
        let post = client.post(&header, &call(3, "echo", json!({"message": "x"}))).await;
        assert_eq!((post.head.status, &post.json()["id"]), (404, &json!(3)), "{id}");
        let get = client.ask("GET", &[EVENTS, header[0]], b"").await;
        let delete = client.ask("DELETE", &header, b"").await;
        assert_eq!((get.head.status, delete.head.status), (404, 404), "{id}");
    }
    assert_eq!(client.ask("GET", &[EVENTS], b"").await.refusal(), (400, -32002));
    assert_eq!(client.ask("DELETE", &[], b"").await.refusal(), (400, -32002));
    assert_eq!(world.sessions(), 0);
}

#[tokio::test]
async fn a_session_can_be_ended_and_listened_to_before_it_is_ready() {
    let world = World::new().await;
    let mut client = world.client().await;
    let answer = client.post(&[], &initialize("2025-11-25")).await;
    let id = answer.head.get("mcp-session-id").unwrap().to_owned();
    let mut listening = world.client().await;
    listening.send("GET", &[EVENTS, ("Mcp-Session-Id", &id)], b"").await;
    assert!(listening.head().await.is_stream());
    let again = client.post(&[("Mcp-Session-Id", &id)], &initialize("2025-11-25")).await;
    assert_eq!(again.refusal(), (400, -32600));
    assert_eq!(client.ask("DELETE", &[("Mcp-Session-Id", &id)], b"").await.head.status, 204);
    assert!(listening.event().await.unwrap().data.is_empty());
    assert_eq!(listening.event().await, None, "the end of the session ends its streams");
}

#[tokio::test]
async fn the_version_header_need_not_be_the_negotiated_one_but_one_we_know() {
    let world = World::new().await;
    let session = world.session().await;
    let mut client = world.client().await;
    let ping = request(1, "ping", json!({}));
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let answer = client.post(&[session.header(), ("MCP-Protocol-Version", version)], &ping).await;
        assert_eq!((answer.head.status, answer.json()["result"].clone()), (200, json!({})), "{version}");
    }
    for version in ["1999-01-01", "2025-11-26", ""] {
        let version = ("MCP-Protocol-Version", version);
        let answer = client.post(&[session.header(), version], &ping).await;
        let get = client.ask("GET", &[EVENTS, session.header(), version], b"").await;
        assert_eq!((answer.refusal(), get.head.status), ((400, -32022), 400), "{version:?}");
        assert_eq!(answer.json()["id"], 1);
        assert_eq!(answer.json()["error"]["data"]["supported"][0], "2026-07-28");
    }
}

#[tokio::test]
async fn accept_and_content_type_are_checked() {
    let world = World::new().await;
    let session = world.session().await;
    let mut client = world.client().await;
    let body = request(1, "ping", json!({})).to_string();
    for (accept, status) in [
        (Some("application/json, text/event-stream"), 200),
        (Some("text/event-stream, application/json"), 200),
        (Some("*/*"), 200),
        (None, 200),
        (Some("application/json"), 406),
        (Some("text/event-stream"), 406),
        (Some("text/html"), 406),
    ] {
        let mut headers = vec![JSON, session.header()];
        headers.extend(accept.map(|accept| ("Accept", accept)));
        let answer = client.ask("POST", &headers, body.as_bytes()).await;
        assert_eq!(answer.head.status, status, "{accept:?}");
        assert_eq!(answer.json()["id"], 1, "{accept:?}");
    }
    for (media, status) in [("application/json; charset=utf-8", 200), ("text/plain", 415), ("", 415)] {
        let headers = [("Content-Type", media), ACCEPT, session.header()];
        assert_eq!(client.ask("POST", &headers, body.as_bytes()).await.head.status, status, "{media}");
    }
    let html = client.ask("GET", &[("Accept", "text/html"), session.header()], b"").await;
    assert_eq!(html.head.status, 406);
    for method in ["PUT", "PATCH", "OPTIONS"] {
        let answer = client.ask(method, &[session.header()], b"").await;
        assert_eq!(
            (answer.head.status, answer.head.get("allow")),
            (405, Some("GET, POST, DELETE")),
            "{method}"
        );
    }
}

#[tokio::test]
async fn a_plain_answer_is_json_whatever_order_accept_has_and_however_many_come_at_once() {
    let world = World::new().await;
    let session = world.session().await;
    let headers = [JSON, ("Accept", "text/event-stream, application/json"), session.header()];
    let ask = async |id: u64| {
        let body = call(id, "echo", json!({"message": id.to_string()})).to_string();
        world.client().await.ask("POST", &headers, body.as_bytes()).await
    };
    let answers = futures::future::join_all((1000..1050).map(ask)).await;
    for (id, answer) in (1000_u64..).zip(&answers) {
        assert_eq!(answer.head.get("content-type"), Some("application/json"));
        assert_eq!((answer.json()["id"].as_u64(), text(&answer.json())), (Some(id), id.to_string().as_str()));
    }
}

#[tokio::test]
async fn only_one_revision_has_batches() {
    let world = World::new().await;
    let batch =
        json!([request(1, "ping", json!({})), initialized(), call(2, "echo", json!({"message": "two"}))]);
    let session = world.session_of("2025-03-26", &[]).await;
    let answers = session.post(&batch).await.json();
    assert_eq!((&answers[0]["id"], &answers[0]["result"]), (&json!(1), &json!({})));
    assert_eq!((&answers[1]["id"], text(&answers[1])), (&json!(2), "two"));
    let notes = session.post(&json!([initialized(), initialized()])).await;
    assert_eq!((notes.head.status, notes.text.as_str()), (202, ""));
    assert_eq!(session.post(&json!([])).await.refusal(), (400, -32600));
    for version in ["2025-06-18", "2025-11-25"] {
        let session = world.session_of(version, &[]).await;
        assert_eq!(session.post(&batch).await.refusal(), (400, -32600), "{version}");
    }
}

#[tokio::test]
async fn an_idempotency_key_makes_a_repeat_a_replay() {
    let world = World::new().await;
    let session = world.session().await;
    let mut client = world.client().await;
    let mut count = async |key: &str, id: u64| {
        let headers = [session.header(), ("Idempotency-Key", key)];
        client.post(&headers, &call(id, "count", json!({}))).await
    };
    for (key, id, runs, replayed) in
        [("order-1", 1, "1", None), ("order-1", 2, "1", Some("true")), ("order-2", 3, "2", None)]
    {
        let answer = count(key, id).await;
        assert_eq!((text(&answer.json()), answer.head.get("idempotency-replayed")), (runs, replayed));
    }
    let wrong = count("two words", 4).await;
    assert_eq!((wrong.refusal(), &wrong.json()["id"]), ((400, -32600), &json!(4)));
}

#[tokio::test]
async fn the_admin_token_admits_a_request_and_is_not_passed_on_to_its_work() {
    let http = http::Settings { admin_token: AdminToken::new("open sesame"), ..http::Settings::default() };
    let world = World::with(Plan { http, ..Plan::default() }).await;
    let session = world.session().await;
    let mut client = world.client().await;
    let mut admin = async |headers: &[(&str, &str)]| {
        let headers = [&[session.header()], headers].concat();
        let answer = client.post(&headers, &call(1, "who", json!({}))).await.json();
        let who: Value = serde_json::from_str(text(&answer)).unwrap();
        assert_eq!(who["name"], "local");
        who["admin"].as_bool().unwrap()
    };
    assert!(!admin(&[]).await);
    assert!(!admin(&[("X-Admin-Token", "open sesame")]).await);
    assert!(!admin(&[("X-Admin-Token", "open sesam")]).await);
    assert!(!admin(&[]).await, "it holds for one request only");
}
