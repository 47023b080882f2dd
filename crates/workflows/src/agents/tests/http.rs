//! `@orchestr8/http` against real servers on this machine.

use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use orchestr8_contract::Code;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::super::Settings;
use super::server::Server;
use super::world::World;

const HTTP: &str = "@orchestr8/http";

fn fine(text: &'static str) -> impl Fn(&super::server::Asked) -> Response {
    move |_| ([("content-type", "application/json")], text).into_response()
}

fn status(number: u16) -> StatusCode {
    StatusCode::from_u16(number).unwrap()
}

#[tokio::test]
async fn a_request_carries_what_the_step_says_and_the_ids_of_the_attempt() {
    let (world, server) = (World::open(), Server::start(fine(r#"{"ok": true}"#)).await);
    let mut call = world
        .call(HTTP, json!({"query": {"q": "a b", "n": [1, 2]}, "body": {"x": 1}, "headers": {"X-Two": 2}}));
    call.config = json!({"url": server.url("/p"), "headers": {"Authorization": "Bearer abc", "x-two": "1"}});
    let answer = world.agent(HTTP).call(call).await.unwrap();
    assert_eq!((&answer.output["status"], &answer.output["body"]), (&json!(200), &json!({"ok": true})));
    assert_eq!(answer.output["headers"]["content-type"], "application/json");
    let asked = server.asked().remove(0);
    assert_eq!((asked.method.as_str(), asked.uri.to_string().as_str()), ("POST", "/p?n=1&n=2&q=a+b"));
    assert_eq!(serde_json::from_slice::<Value>(&asked.body).unwrap(), json!({"x": 1}));
    assert_eq!((asked.header("authorization"), asked.header("x-two")), ("Bearer abc", "2"));
    assert_eq!(asked.header("content-type"), "application/json");
    let ids =
        ["idempotency-key", "x-correlation-id", "x-execution-id"].map(|name| asked.header(name).to_owned());
    assert_eq!(ids, ["exec-1:step", "corr-1", "exec-1"]);
    assert_eq!(asked.header("traceparent"), "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
}

#[tokio::test]
async fn the_target_is_the_host() {
    let world = World::new();
    let agent = world.agent(HTTP);
    let target = |url: &str| agent.target(&Value::Null, &json!({"url": url}));
    assert_eq!(target("https://API.example.com/a?b").as_deref(), Some("api.example.com"));
    assert_eq!(target("http://u:p@h:81/").as_deref(), Some("h:81"));
    assert_eq!((target("nonsense"), agent.target(&json!({"url": 7}), &Value::Null)), (None, None));
}

#[tokio::test]
async fn inside_addresses_are_refused_before_a_byte_is_sent() {
    let (world, server) = (World::new(), Server::start(fine("{}")).await);
    let port = server.address.port();
    for host in ["127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]"] {
        let fault = world.output(HTTP, json!({"url": format!("http://{host}:{port}/")})).await.unwrap_err();
        assert_eq!(fault.code, Code::Unauthorized, "{host}: {fault}");
        assert!(fault.message.contains("allowedHosts"), "{fault}");
    }
    assert!(server.asked().is_empty());
    let mut settings = Settings::default();
    settings.http.allowed_hosts.push("localhost".into());
    let named = World::with(&settings, Vec::new());
    assert!(named.output(HTTP, json!({"url": format!("http://localhost:{port}/")})).await.is_ok());
    assert!(named.output(HTTP, json!({"url": server.url("/")})).await.is_err());
}

#[tokio::test]
async fn statuses_become_faults_that_say_what_to_do() {
    let world = World::open();
    let server = Server::start(|asked| {
        let number = asked.uri.path()[1..].parse().unwrap();
        let echoed = asked.header("authorization").to_owned();
        (status(number), [("retry-after", "7"), ("location", "http://elsewhere/")], echoed).into_response()
    })
    .await;
    for (number, code) in [
        (302, Code::InvalidArgument),
        (400, Code::InvalidArgument),
        (401, Code::Unauthorized),
        (404, Code::NotFound),
        (408, Code::Timeout),
        (429, Code::ResourceExhausted),
        (500, Code::Unavailable),
        (504, Code::Timeout),
    ] {
        let input = json!({"url": server.url(&format!("/{number}")), "headers": {"authorization": "Bearer canary-token"}});
        let fault = world.output(HTTP, input).await.unwrap_err();
        assert_eq!(fault.code, code, "{number}");
        let details = fault.details.clone().unwrap();
        assert_eq!((&details["status"], &details["retryAfterMs"]), (&json!(number), &json!(7000)));
        assert!(!format!("{fault:?}").contains("canary"), "{fault:?}");
        assert!(details["body"].as_str().unwrap().contains("[REDACTED]"));
    }
    assert_eq!(server.asked().len(), 8, "no redirect was followed");
}

#[tokio::test]
async fn bodies_are_read_as_expected_and_no_further_than_allowed() {
    let world = World::open();
    let server = Server::start(|asked| match asked.uri.path() {
        "/text" => "plain".into_response(),
        "/none" => StatusCode::NO_CONTENT.into_response(),
        "/broken" => ([("content-type", "application/problem+json")], "{").into_response(),
        "/stream" => {
            let endless = futures::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b'x'; 65_536]));
            Body::from_stream(endless).into_response()
        }
        _ => "x".repeat(2_000_000).into_response(),
    })
    .await;
    let get = |path: &str, more: Value| {
        let mut input = json!({"url": server.url(path)});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        world.output(HTTP, input)
    };
    assert_eq!(get("/text", json!({})).await.unwrap()["body"], "plain");
    assert_eq!(get("/none", json!({"expect": "json"})).await.unwrap()["body"], Value::Null);
    assert_eq!(get("/text", json!({"expect": "json"})).await.unwrap_err().code, Code::AgentFailed);
    assert_eq!(get("/broken", json!({})).await.unwrap_err().code, Code::AgentFailed);
    assert_eq!(get("/broken", json!({"expect": "text"})).await.unwrap()["body"], "{");
    assert_eq!(get("/text", json!({"maxBytes": 4})).await.unwrap_err().code, Code::PayloadTooLarge);
    for path in ["/large", "/stream"] {
        assert_eq!(get(path, json!({})).await.unwrap_err().code, Code::PayloadTooLarge, "{path}");
    }
}

#[tokio::test]
async fn what_cannot_be_sent_is_refused_without_showing_it() {
    let world = World::open();
    for wrong in [
        json!({}),
        json!({"url": "canary"}),
        json!({"url": 5}),
        json!({"url": "http://h/", "method": "canary"}),
        json!({"url": "http://h/", "headers": {"host": "canary"}}),
        json!({"url": "http://h/", "headers": {"a": "canary\n"}}),
        json!({"url": "http://h/", "headers": {"a": ["canary"]}}),
        json!({"url": "http://h/", "expect": "canary"}),
        json!({"url": "http://h/", "maxBytes": 0}),
        json!({"url": "http://h/", "query": {"a": {"b": "canary"}}}),
        json!({"url": "file:///canary"}),
        json!("canary"),
        json!({"url": format!("http://h/{}", "canary".repeat(2000))}),
    ] {
        let fault = world.output(HTTP, wrong.clone()).await.unwrap_err();
        assert_eq!(fault.code, Code::InvalidArgument, "{wrong}");
        assert!(!format!("{fault:?}").contains("canary"), "{fault:?}");
    }
}

#[tokio::test]
async fn a_lost_connection_may_be_tried_again() {
    let world = World::open();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/canary?token=canary", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 1024];
        let _ = socket.read(&mut buffer).await.unwrap();
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf").await.unwrap();
    });
    let fault = world.output(HTTP, json!({"url": url})).await.unwrap_err();
    serving.await.unwrap();
    assert_eq!(fault.code, Code::Unavailable);
    let fault = world.output(HTTP, json!({"url": url})).await.unwrap_err();
    assert_eq!(fault.code, Code::Unavailable, "nobody listens any more");
    let shown = format!("{fault:?} {}", fault.cause().map(ToString::to_string).unwrap_or_default());
    assert!(!shown.contains("canary"), "{shown}");
}

#[tokio::test]
async fn a_cancelled_call_ends_at_once_and_hangs_up() {
    let world = World::open();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let call = world.call(HTTP, json!({"url": format!("http://{}/", listener.local_addr().unwrap())}));
    let cancel = call.cancel.clone();
    let calling = tokio::spawn(world.agent(HTTP).call(call));
    let (mut socket, _) = listener.accept().await.unwrap();
    let mut request = [0; 1024];
    assert!(socket.read(&mut request).await.unwrap() > 0);
    cancel.cancel();
    let ended =
        tokio::time::timeout(Duration::from_millis(100), calling).await.expect("within 100 ms").unwrap();
    assert_eq!(ended.unwrap_err().code, Code::Cancelled);
    assert_eq!(socket.read(&mut request).await.unwrap(), 0, "the connection is closed");
}
