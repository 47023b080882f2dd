//! Servers that speak only one of the two eras.

use serde_json::json;

use super::client::{EVENTS, MODERN, call, initialize, request, text};
use super::world::{Plan, World};
use crate::face::Eras;

async fn world(legacy: bool, modern: bool) -> World {
    World::with(Plan { eras: Eras { legacy, modern }, ..Plan::default() }).await
}

#[tokio::test]
async fn where_only_the_legacy_era_is_spoken_clients_of_both_fall_back() {
    let world = world(true, false).await;
    let mut client = world.client().await;
    let probe = request(
        1,
        "server/discover",
        json!({"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
        }}),
    );
    let answer = client.post(&[MODERN, ("Mcp-Method", "server/discover")], &probe).await;
    let (status, code) = answer.refusal();
    assert_eq!((status, &answer.json()["id"]), (400, &json!(1)));
    assert!(![-32020, -32021, -32022].contains(&code), "{code} would say that the modern era is spoken");
    assert_eq!(client.post(&[], &probe).await.refusal(), (400, -32002));
    assert_eq!(client.ask("GET", &[EVENTS, MODERN], b"").await.head.status, 400);
    let session = world.session().await;
    assert_eq!(text(&session.post(&call(1, "echo", json!({"message": "x"}))).await.json()), "x");
}

#[tokio::test]
async fn where_only_the_modern_era_is_spoken_there_are_no_sessions() {
    let world = world(false, true).await;
    let mut client = world.client().await;
    let legacy = ("MCP-Protocol-Version", "2025-11-25");
    for headers in [&[][..], &[legacy]] {
        let answer = client.post(headers, &initialize("2025-11-25")).await;
        assert!((400..500).contains(&answer.head.status), "{answer:?}");
        assert!(answer.head.get("mcp-session-id").is_none());
    }
    let named = client.post(&[legacy], &initialize("2025-11-25")).await;
    assert_eq!(named.refusal(), (400, -32022));
    assert_eq!(named.json()["error"]["data"]["supported"], json!(["2026-07-28"]));
    for method in ["GET", "DELETE", "PUT"] {
        for headers in [&[EVENTS][..], &[EVENTS, legacy], &[EVENTS, MODERN]] {
            let answer = client.ask(method, headers, b"").await;
            assert_eq!(
                (answer.head.status, answer.head.get("allow")),
                (405, Some("POST")),
                "{method} {headers:?}"
            );
        }
    }
    assert_eq!(world.sessions(), 0);
}
