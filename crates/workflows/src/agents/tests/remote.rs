//! Agents behind `POST /process`, as real servers on this machine.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use orchestr8_contract::Code;
use serde_json::{Value, json};

use super::super::{Settings, Usage, settings};
use super::server::{Asked, Server};
use super::world::World;

fn world(url: String, timeout_ms: Option<u64>) -> World {
    let headers = BTreeMap::from([("authorization".to_owned(), "Bearer canary".to_owned())]);
    let remote = settings::Remote { url, headers, timeout_ms, max_concurrent: None };
    let settings =
        Settings { remote: BTreeMap::from([("research".to_owned(), remote)]), ..Settings::default() };
    World::with(&settings, Vec::new())
}

fn json_answer(status: u16, body: &Value) -> Response {
    (StatusCode::from_u16(status).unwrap(), [("content-type", "application/json")], body.to_string())
        .into_response()
}

/// Answers as its input says.
fn obedient(asked: &Asked) -> Response {
    let input: Value = serde_json::from_slice(&asked.body).unwrap_or_default();
    json_answer(u16::try_from(input["status"].as_u64().unwrap_or(200)).unwrap(), &input["body"])
}

#[tokio::test]
async fn the_input_is_sent_and_the_data_comes_back_with_its_usage() {
    let data = json!({"result": "found", "metadata": {"usage": {"tokens": 12, "cost": 0.5}}});
    let given = data.clone();
    let server = Server::start(move |_| json_answer(200, &json!({"success": true, "data": given}))).await;
    let world = world(server.url("/base/"), None);
    let agent = world.agent("research");
    assert_eq!(agent.target(&Value::Null, &Value::Null), Some(server.address.to_string()));
    let answer = agent.call(world.call("research", json!({"query": "q"}))).await.unwrap();
    assert_eq!((answer.output, answer.usage), (data, Usage { tokens: 12, cost: 0.5 }));
    let asked = server.asked().remove(0);
    assert_eq!((asked.method.as_str(), asked.uri.path()), ("POST", "/base/process"));
    assert_eq!(serde_json::from_slice::<Value>(&asked.body).unwrap(), json!({"query": "q"}));
    let ids = ["idempotency-key", "x-correlation-id", "x-execution-id", "authorization", "content-type"];
    let ids = ids.map(|name| asked.header(name).to_owned());
    assert_eq!(ids, ["exec-1:step", "corr-1", "exec-1", "Bearer canary", "application/json"]);
}

#[tokio::test]
async fn tokens_count_in_every_notation_of_numbers() {
    let server = Server::start(obedient).await;
    let world = world(server.url(""), None);
    let agent = world.agent("research");
    for (tokens, counted) in [
        (json!(12), 12),
        (json!(12.0), 12),
        (json!(11.5), 12),
        (json!(1e30), u64::MAX),
        (json!(-3), 0),
        (json!("12"), 0),
    ] {
        let data = json!({"metadata": {"usage": {"tokens": tokens}}});
        let input = json!({"body": {"success": true, "data": data}});
        let answer = agent.call(world.call("research", input)).await.unwrap();
        assert_eq!(answer.usage.tokens, counted, "{tokens}");
    }
}

#[tokio::test]
async fn failures_keep_their_reason_and_the_status_says_what_to_do() {
    let server = Server::start(obedient).await;
    let world = world(server.url(""), None);
    let failed = json!({"success": false, "error": "no luck"});
    for (status, body, code, message) in [
        (200, failed.clone(), Code::AgentFailed, "research failed: no luck"),
        (500, failed.clone(), Code::Unavailable, "research answered 500 Internal Server Error: no luck"),
        (
            400,
            json!({"success": false, "error": {"message": "bad"}}),
            Code::InvalidArgument,
            "research answered 400 Bad Request: bad",
        ),
        (429, json!({}), Code::ResourceExhausted, "research answered 429 Too Many Requests"),
        (503, json!({"success": true}), Code::Unavailable, "research answered 503 Service Unavailable"),
        (
            200,
            json!({"data": 1}),
            Code::AgentFailed,
            "research answered with something other than {success, data}",
        ),
        (200, json!({"success": false}), Code::AgentFailed, "research failed: it gives no reason"),
    ] {
        let fault = world.output("research", json!({"status": status, "body": body})).await.unwrap_err();
        assert_eq!((fault.code, fault.message.as_ref()), (code, message));
    }
    let empty = world.output("research", json!({"body": {"success": true}})).await.unwrap();
    assert_eq!(empty, Value::Null);
}

#[tokio::test]
async fn health_is_asked_and_silence_is_a_timeout() {
    let server = Server::start(|asked| match asked.uri.path() {
        "/well/health" => "ok".into_response(),
        _ => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    })
    .await;
    let well = world(server.url("/well"), None);
    assert!(well.agent("research").health().unwrap().await.is_ok());
    let ill = world(server.url("/ill"), None);
    assert_eq!(ill.agent("research").health().unwrap().await.unwrap_err().code, Code::Unavailable);
    assert!(well.agent("@orchestr8/echo").health().is_none());
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let slow = world(format!("http://{}", silent.local_addr().unwrap()), Some(50));
    assert_eq!(slow.output("research", Value::Null).await.unwrap_err().code, Code::Timeout);
}

#[tokio::test]
async fn a_cancelled_call_ends_at_once_and_wrong_settings_are_named() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let world = world(format!("http://{}", silent.local_addr().unwrap()), None);
    let call = world.call("research", Value::Null);
    let cancel = call.cancel.clone();
    let calling = tokio::spawn(world.agent("research").call(call));
    let (_socket, _) = silent.accept().await.unwrap();
    cancel.cancel();
    let result =
        tokio::time::timeout(Duration::from_millis(100), calling).await.expect("within 100 ms").unwrap();
    assert_eq!(result.unwrap_err().code, Code::Cancelled);
    for url in ["ftp://x", "nowhere", "http://h/?q=canary"] {
        let fault = super::remote::world(url.into(), None).output("research", Value::Null).await.unwrap_err();
        assert_eq!(fault.code, Code::Configuration);
        assert!(!fault.message.contains("canary"));
    }
}
