//! GET /events: server-sent events, resumable by id (contract: Live).

use orchestr8_edge as edge;
use orchestr8_workflows_face::Settings;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::server::Server;

const ASK: &str = "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// The data of the one event in a block of the stream.
fn data(block: &str) -> Value {
    let line = block.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    serde_json::from_str(line).unwrap()
}

#[tokio::test]
async fn a_stream_begins_with_its_connection_and_tells_what_happens() {
    let server = Server::start(Settings::new("1")).await;
    server.feed.push("workflow.started", "old");
    let mut stream = server.open(ASK).await;
    let head = stream.until("\r\n\r\n").await.to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200") && head.contains("content-type: text/event-stream"), "{head}");
    assert!(head.contains("x-frame-options: deny") && !head.contains("access-control"), "{head}");
    let first = stream.until("\n\n").await;
    assert!(first.contains("id: 1\nevent: connection.established\n"), "{first}");
    assert_eq!(data(&first)["data"]["lastEventId"], 1);
    server.feed.push("step.failed", "e1");
    let event = stream.until("event: step.failed").await + &stream.until("\n\n").await;
    assert!(event.contains("id: 2\n"), "{event}");
    let told = data(&event);
    assert_eq!((&told["executionId"], &told["type"]), (&json!("e1"), &json!("step.failed")));
    assert_eq!(told["data"]["error"]["code"], "RETRYABLE", "errors speak the words of the contract");
}

#[tokio::test]
async fn a_stream_goes_on_where_the_client_was() {
    let server = Server::start(Settings::new("1")).await;
    for kind in ["workflow.started", "step.started", "step.completed", "workflow.completed"] {
        server.feed.push(kind, "e1");
    }
    for ask in [
        "GET /v1/events?lastEventId=2 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /v1/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: 2\r\n\r\n",
        // What a browser says by itself goes before what the address said once.
        "GET /v1/events?lastEventId=0 HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: 2\r\n\r\n",
    ] {
        let mut stream = server.open(ask).await;
        let told = stream.until("event: workflow.completed").await;
        assert!(told.contains("id: 3\nevent: step.completed"), "{told}");
        assert!(told.contains("id: 4\n") && !told.contains("step.started"), "{told}");
    }
}

#[tokio::test]
async fn a_stream_of_one_execution_tells_of_no_other() {
    let server = Server::start(Settings::new("1")).await;
    let mut stream = server
        .open("GET /api/v1/events?executionId=e1&lastEventId=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    server.feed.push("workflow.started", "e2");
    server.feed.push("workflow.started", "e1");
    let told = stream.until("workflow.started").await + &stream.until("\n\n").await;
    assert!(told.contains("\"e1\"") && !told.contains("\"e2\""), "{told}");
}

#[tokio::test]
async fn silence_is_broken_by_comments() {
    let server = Server::start(Settings { heartbeat_ms: 20, ..Settings::new("1") }).await;
    let mut stream = server.open(ASK).await;
    stream.until(": heartbeat\n\n").await;
    stream.until(": heartbeat\n\n").await;
    server.feed.push("workflow.started", "e1");
    stream.until("event: workflow.started").await;
}

#[tokio::test]
async fn streams_end_when_the_server_stops() {
    let server = Server::start(Settings::new("1")).await;
    let mut stream = server.open(ASK).await;
    stream.until("connection.established").await;
    server.stop.cancel();
    let rest = stream.rest().await;
    assert!(rest.ends_with("0\r\n\r\n"), "{rest}");
}

#[tokio::test]
async fn a_strange_place_is_refused() {
    let server = Server::start(Settings::new("1")).await;
    for ask in [
        "GET /v1/events?lastEventId=x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "GET /v1/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: -1\r\nConnection: close\r\n\r\n",
    ] {
        let answer = server.open(ask).await.rest().await;
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("\"VALIDATION\""), "{answer}");
    }
}

#[tokio::test]
async fn whoever_shows_a_token_is_who_asks() {
    let token = edge::Token {
        name: "ci".into(),
        sha256_hex: Sha256::digest("s3cret").iter().map(|byte| format!("{byte:02x}")).collect(),
        roles: vec![],
        tenant: "acme".into(),
        reuse_name: false,
    };
    let server = Server::guarded(Settings::new("1"), edge::Auth { tokens: vec![token], stored: None }).await;
    let ask =
        |more: &str| format!("GET /v1/agents HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}\r\n");
    let answer = server.open(&ask("Authorization: Bearer s3cret\r\n")).await.rest().await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(server.world.heard_once("workflows.agents").principal, "ci");
    let answer = server.open(&ask("")).await.rest().await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
}

/// The contract asks for 403 FORBIDDEN; the edge finds it out, and the face words it.
#[tokio::test]
async fn what_the_edge_refuses_is_refused_in_our_envelope() {
    let server = Server::start(Settings::new("1")).await;
    for (request, status, code) in [
        ("GET /v1/agents HTTP/1.1\r\nHost: evil.example.com\r\n", 403, "FORBIDDEN"),
        (
            "GET /api/v1/agents HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example.com\r\n",
            403,
            "FORBIDDEN",
        ),
        (
            "POST /v1/workflows HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n",
            415,
            "VALIDATION",
        ),
        (
            "POST /v1/workflows HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n",
            413,
            "PAYLOAD_TOO_LARGE",
        ),
    ] {
        let answer = server
            .open(&format!("{request}X-Correlation-ID: c9\r\nConnection: close\r\n\r\n"))
            .await
            .rest()
            .await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(
            (&body["error"]["code"], &body["correlationId"]),
            (&json!(code), &json!("c9")),
            "{answer}"
        );
        assert!(
            head.to_ascii_lowercase().contains(&format!("x-error-code: {}", code.to_ascii_lowercase())),
            "{head}"
        );
    }
    // Elsewhere the edge speaks for itself.
    let answer = server
        .open("GET /other HTTP/1.1\r\nHost: evil.example.com\r\nConnection: close\r\n\r\n")
        .await
        .rest()
        .await;
    assert!(answer.contains("\"hint\""), "{answer}");
}
