//! One correlation id for a request, in the header, the body and the log; and refusals of the edge in our words.

use serde_json::{Value, json};

use super::client::{ACCEPT, Answer, JSON, MODERN, request, text};
use super::world::{Plan, World};

const HEADER: &str = "x-correlation-id";

fn call(meta: Value) -> Value {
    request(1, "tools/call", json!({"name": "echo", "arguments": {"message": "hi"}, "_meta": meta}))
}

/// The id in the body of an error, or of a failed call.
fn in_body(answer: &Answer) -> String {
    let body = answer.json();
    let of_error = body["error"]["data"]["correlationId"].as_str().map(str::to_owned);
    of_error.unwrap_or_else(|| {
        serde_json::from_str::<Value>(text(&body)).unwrap()["correlationId"].as_str().unwrap().to_owned()
    })
}

#[tokio::test]
async fn the_id_of_the_client_is_used_everywhere() {
    let world = World::new().await;
    let session = world.session().await;
    let mut client = world.client().await;
    let id = ("Mcp-Session-Id", session.id.as_str());
    let given = ("X-Correlation-ID", "given-in-header");
    let unknown_tool = |meta: Value| request(2, "tools/call", json!({"name": "none", "_meta": meta}));
    for (body, expected) in [
        (call(json!({})), "given-in-header"),
        (call(json!({"correlationId": "given-in-meta"})), "given-in-meta"),
        (request(3, "ping", json!({})), "given-in-header"),
        (json!({"jsonrpc": "2.0", "method": "notifications/cancelled"}), "given-in-header"),
    ] {
        let answer = client.post(&[id, given], &body).await;
        assert_eq!(answer.head.get(HEADER), Some(expected), "{body}");
    }
    for (body, expected) in [
        (unknown_tool(json!({})), "given-in-header"),
        (unknown_tool(json!({"correlationId": "given-in-meta"})), "given-in-meta"),
        (request(4, "no/such", json!({})), "given-in-header"),
        (
            request(5, "tools/call", json!({"name": 7, "_meta": {"correlationId": "given-in-meta"}})),
            "given-in-meta",
        ),
    ] {
        let answer = client.post(&[id, given], &body).await;
        assert_eq!(
            (answer.head.get(HEADER), in_body(&answer).as_str()),
            (Some(expected), expected),
            "{body}"
        );
    }
    // Refusals of the transport too.
    let answer = client.post(&[("Mcp-Session-Id", "none"), given], &call(json!({}))).await;
    assert_eq!((answer.head.status, answer.head.get(HEADER)), (404, Some("given-in-header")));
    assert_eq!(in_body(&answer), "given-in-header");
}

#[tokio::test]
async fn an_id_that_is_made_here_is_the_same_in_header_and_body() {
    let world = World::new().await;
    let session = world.session().await;
    let mut client = world.client().await;
    let mut ids = std::collections::BTreeSet::new();
    for body in [
        request(1, "no/such", json!({})),
        request(2, "tools/call", json!({"name": 7})),
        request(3, "tools/call", json!({"name": "none"})),
        request(4, "resources/read", json!({"uri": "no://such"})),
    ] {
        let answer = client.post(&[("Mcp-Session-Id", session.id.as_str())], &body).await;
        let id = in_body(&answer);
        assert_eq!(answer.head.get(HEADER), Some(id.as_str()), "{body}");
        ids.insert(id);
        let modern = [MODERN, ("Mcp-Method", body["method"].as_str().unwrap())];
        let answer = client.post(&modern, &body).await;
        assert_eq!(answer.head.get(HEADER), Some(in_body(&answer).as_str()), "{body}");
    }
    assert_eq!(ids.len(), 4, "each request has an id of its own");
}

/// The client writes its whole body before it reads, as Python's do.
#[tokio::test]
async fn a_body_that_is_too_large_is_refused_in_json_rpc_and_the_answer_is_read() {
    for limit in [1 << 20, 64 << 20] {
        let world = World::with(Plan { edge_body_limit: limit, ..Plan::default() }).await;
        let body = vec![b' '; 12 << 20];
        for _ in 0..3 {
            let answer = world.client().await.ask("POST", &[JSON, ACCEPT], &body).await;
            assert_eq!(answer.refusal(), (413, -32600), "{}", answer.text);
            let body = answer.json();
            assert_eq!((&body["id"], &body["jsonrpc"]), (&Value::Null, &json!("2.0")));
            assert_eq!(answer.head.get(HEADER), Some(in_body(&answer).as_str()));
        }
    }
}
