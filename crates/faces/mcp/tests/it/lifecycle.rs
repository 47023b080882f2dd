//! The life of a connection: saved and restored, closed, its client gone.

use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::id::{CorrelationId, Key};
use orchestr8_kernel::{Principal, Transport};
use orchestr8_mcp::{Facts, Incoming, Phase, Received, Saved};
use serde_json::{Value, json};

use crate::world::{Client, Heard, face, modern};

fn request(id: u64, method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

#[tokio::test(start_paused = true)]
async fn a_conversation_outlives_a_restart() {
    let face_before = face();
    let client = Client::of(&face_before);
    assert!(client.connection.saved().is_none() && client.connection.version().is_none());
    let before = client.connection.revision();
    let client = Client::running(&face_before, "2025-06-18", &json!({"sampling": {}}));
    client.ask(json!(1), "logging/setLevel", json!({"level": "warning"})).await;
    client.ask(json!(2), "resources/subscribe", json!({"uri": "test://fixed"})).await;
    assert!(client.connection.revision() > before);
    let text = serde_json::to_string(&client.connection.saved().unwrap()).unwrap();
    let saved: Saved = serde_json::from_str(&text).unwrap();

    let face = face();
    let heard = Arc::new(Heard::default());
    let connection = face.restore(saved, Arc::new(Principal::local()), Transport::Http, heard.clone());
    let restored = Client { connection, heard };
    assert_eq!(restored.connection.id(), client.connection.id());
    assert_eq!(
        (restored.connection.phase(), restored.connection.version()),
        (Phase::Running, Some("2025-06-18"))
    );
    assert_eq!(serde_json::to_string(&restored.connection.saved().unwrap()).unwrap(), text);
    restored.call(3, "changes", json!({"uri": "test://fixed"})).await;
    assert_eq!(restored.hear().await["method"], "notifications/resources/updated");
}

#[tokio::test(start_paused = true)]
async fn a_closed_connection_says_nothing_more_and_its_work_goes_on() {
    let face = face();
    let client = Client::running(&face, "2025-11-25", &json!({}));
    client.tell(&request(1, "tools/call", json!({"name": "stubborn", "arguments": {"ms": 50}})));
    assert_eq!((face.kernel().running(), client.connection.waiting()), (1, 1));
    client.connection.close();
    assert!(client.connection.saved().is_none());
    client.tell(&request(2, "ping", json!({})));
    client.tell("nonsense");
    assert!(client.rest().await.is_empty());
    assert_eq!(face.kernel().running(), 1, "the work goes on");
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert!(client.rest().await.is_empty(), "its end is not answered");
    assert_eq!((face.kernel().running(), client.connection.waiting()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_dropped_is_a_client_that_is_gone() {
    let face = face();
    let client = Client::running(&face, "2025-11-25", &json!({}));
    let text = request(1, "tools/call", json!({"name": "sleep", "arguments": {"ms": 5000}}));
    match client.connection.receive(text.as_bytes(), &Incoming::default(), client.heard.clone()) {
        Received::Pending(pending) => drop(pending),
        Received::Nothing | Received::Reply(_) => panic!("it takes its time"),
    }
    client.rest().await;
    assert_eq!((face.kernel().running(), client.connection.waiting()), (0, 0), "the work has heard of it");
}

#[tokio::test(start_paused = true)]
async fn what_the_transport_knows_is_used_where_the_message_says_nothing() {
    let client = Client::running(&face(), "2025-11-25", &json!({}));
    let incoming = Incoming {
        correlation: Some(CorrelationId::parse("from-a-header").unwrap()),
        idempotency_key: Some(Key::parse("once").unwrap()),
        who: Some(Arc::new(Principal {
            roles: orchestr8_contract::RoleSet::named(["admin"]),
            ..Principal::local()
        })),
        ..Incoming::default()
    };
    let give = async |text: String| match client.connection.receive(
        text.as_bytes(),
        &incoming,
        client.heard.clone(),
    ) {
        Received::Reply(reply) => reply,
        Received::Pending(pending) => pending.await.unwrap(),
        Received::Nothing => panic!("a request is answered"),
    };
    let first = give(request(1, "tools/call", json!({"name": "store"}))).await;
    let second = give(request(1, "tools/call", json!({"name": "store"}))).await;
    assert_eq!((first.correlation.as_str(), first.status), ("from-a-header", 200));
    assert!(second.text.contains("orchestr8/replayed") && !first.text.contains("orchestr8/replayed"));
    let listed = give(request(2, "tools/list", json!({}))).await;
    assert!(listed.text.contains("roled"), "an admin sees what only admins may call");
    assert!(!client.ask(json!(3), "tools/list", json!({})).await.to_string().contains("roled"));
}

#[tokio::test(start_paused = true)]
async fn statuses_and_headers_follow_the_era() {
    let client = Client::of(&face());
    let check = |facts: &Facts<'_>| {
        let tool = facts.tool.map(|tool| tool.name.as_str());
        match (facts.method, facts.name, facts.version, tool, facts.arguments.map(|raw| raw.get())) {
            ("tools/call", Some("echo"), "2026-07-28", Some("echo"), Some("{}")) => Ok(()),
            ("tools/list", None, _, None, None) => Ok(()),
            _ => Err(String::from("Mcp-Name is something else")),
        }
    };
    let status = |modern: bool, text: String| {
        let incoming = Incoming { modern, check_headers: Some(&check), ..Incoming::default() };
        match client.connection.receive(text.as_bytes(), &incoming, client.heard.clone()) {
            Received::Reply(reply) => {
                let answer: Value = serde_json::from_str(&reply.text).unwrap();
                (reply.status, answer["error"]["code"].as_i64())
            }
            Received::Nothing | Received::Pending(_) => panic!("it is answered at once"),
        }
    };
    let with = |method: &str, params: Value| request(1, method, modern(params, &json!({})));
    assert_eq!(status(false, request(1, "ping", json!({}))), (400, Some(-32002)));
    assert_eq!(status(false, "{".into()), (400, Some(-32700)));
    assert_eq!(
        status(true, request(1, "tools/list", json!({}))),
        (400, Some(-32602)),
        "before the headers are looked at"
    );
    assert_eq!(status(true, with("ping", json!({}))), (404, Some(-32601)));
    assert_eq!(status(false, with("tools/call", json!({"name": "echo", "arguments": {}}))), (200, None));
    assert_eq!(
        status(false, with("tools/call", json!({"name": "sum", "arguments": {}}))),
        (400, Some(-32020))
    );
    let mut other = modern(json!({}), &json!({}));
    other["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("v999");
    assert_eq!(status(true, request(1, "tools/list", other.clone())), (400, Some(-32022)));
    other["name"] = json!("x");
    assert_eq!(
        status(true, request(1, "prompts/get", other)),
        (400, Some(-32020)),
        "a mismatch comes before the version"
    );
}
