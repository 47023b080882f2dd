//! What becomes of calls when a server reached over HTTP restarts, refuses or answers with something else.

use std::collections::BTreeMap;
use std::sync::Arc;

use orchestr8_contract::Code;
use orchestr8_testing::settled::{fault, text};
use orchestr8_testing::{until, within};
use orchestr8_tools::remote::{Link, Phase, Server};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::world::World;

/// How a server answers a session that it does not know.
#[derive(Clone, Copy)]
enum UnknownSession {
    /// As the specification has it.
    NotFound,
    /// As the examples of the TypeScript SDK do.
    BadRequestWithoutId,
    /// The same, with the id of the request.
    BadRequestWithId,
}

/// A server with sessions. What a call gets is set by the test.
struct Stateful {
    url: String,
    state: Arc<Mutex<State>>,
    serving: JoinHandle<()>,
}

struct State {
    unknown: UnknownSession,
    /// The ids of sessions that are known.
    sessions: Vec<String>,
    /// How often a call was executed.
    executed: usize,
    initialized: usize,
    /// Status line, further headers and body for calls, instead of a result.
    refusal: Option<(&'static str, &'static str, &'static str)>,
}

impl Stateful {
    async fn start(unknown: UnknownSession) -> Self {
        Self::listen(TcpListener::bind("127.0.0.1:0").await.unwrap(), unknown)
    }

    fn listen(listener: TcpListener, unknown: UnknownSession) -> Self {
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let state = State { unknown, sessions: Vec::new(), executed: 0, initialized: 0, refusal: None };
        let state = Arc::new(Mutex::new(state));
        let shared = state.clone();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = shared.clone();
                tokio::spawn(async move { answer(stream, &shared).await });
            }
        });
        Self { url, state, serving }
    }

    fn server(&self) -> Server {
        let mut server = Server::new("other", Link::Http { url: self.url.clone(), headers: BTreeMap::new() });
        server.timeout_ms = Some(10_000);
        server
    }

    /// Forgets all sessions, as a process does that is started again.
    fn forget_sessions(&self) {
        self.state.lock().sessions.clear();
    }

    fn refuse(&self, status: &'static str, headers: &'static str, body: &'static str) {
        self.state.lock().refusal = Some((status, headers, body));
    }
}

async fn answer(stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 || line.trim().is_empty() {
            break;
        }
        let line = line.to_lowercase();
        if let Some(given) = line.strip_prefix("content-length:") {
            length = given.trim().parse().unwrap_or(0);
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let reply = reply(&head, &message, &mut state.lock());
    stream.write_all(reply.as_bytes()).await
}

fn reply(head: &str, message: &Value, state: &mut State) -> String {
    let json = "Content-Type: application/json\r\n";
    if !head.starts_with("post") {
        return response("405 Method Not Allowed", "", "");
    }
    let is_known = state.sessions.iter().any(|id| head.contains(&format!("mcp-session-id: {id}\r\n")));
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => {
            state.initialized += 1;
            state.sessions.push(format!("session-{}", state.initialized));
            let headers = format!("{json}Mcp-Session-Id: session-{}\r\n", state.initialized);
            let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                                "serverInfo": {"name": "stateful", "version": "1"}});
            let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            return response("200 OK", &headers, &body.to_string());
        }
        _ if !is_known => {
            let error = json!({"code": -32_000, "message": "Bad Request: No valid session ID provided"});
            let refused = |id: &Value| json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string();
            return match state.unknown {
                UnknownSession::NotFound => response("404 Not Found", "", "no such session"),
                UnknownSession::BadRequestWithoutId => {
                    response("400 Bad Request", json, &refused(&Value::Null))
                }
                UnknownSession::BadRequestWithId => {
                    response("400 Bad Request", json, &refused(&message["id"]))
                }
            };
        }
        "tools/list" => {
            let tool = |name: &str, read: bool| json!({"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": read}});
            json!({"tools": [tool("read", true), tool("write", false)]})
        }
        "tools/call" => {
            if let Some((status, headers, body)) = state.refusal {
                return response(status, headers, body);
            }
            state.executed += 1;
            json!({"content": [{"type": "text", "text": "done"}]})
        }
        _ => return response("202 Accepted", "", ""),
    };
    let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    response("200 OK", json, &body.to_string())
}

fn response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn a_server_that_forgot_its_session_is_initialized_again_and_the_call_repeated_once() {
    for unknown in
        [UnknownSession::NotFound, UnknownSession::BadRequestWithoutId, UnknownSession::BadRequestWithId]
    {
        let upstream = Stateful::start(unknown).await;
        let world = World::with(upstream.server()).await;
        assert_eq!(text(world.call("other.write", json!({})).await), "done");
        upstream.forget_sessions();
        assert_eq!(text(world.call("other.write", json!({})).await), "done");
        let counts = {
            let state = upstream.state.lock();
            (state.executed, state.initialized)
        };
        assert_eq!(counts, (2, 2));
        assert_eq!(world.seen().phase, Phase::Running);
        world.remote.stop().await;
    }
}

#[tokio::test]
async fn a_refusal_of_a_fresh_session_is_answered_and_not_repeated_for_ever() {
    let upstream = Stateful::start(UnknownSession::BadRequestWithoutId).await;
    let world = World::with(upstream.server()).await;
    let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"not today"}}"#;
    upstream.refuse("400 Bad Request", "Content-Type: application/json\r\n", body);
    let refused = fault(world.call("other.write", json!({})).await);
    assert_eq!(refused.code, Code::InvalidArgument, "{refused}");
    assert!(refused.message.contains("not today"), "{refused}");
    assert_eq!(upstream.state.lock().executed, 0);
    world.remote.stop().await;
}

#[tokio::test]
async fn statuses_keep_their_meaning() {
    let upstream = Stateful::start(UnknownSession::NotFound).await;
    let world = World::with(upstream.server()).await;
    let json = "Content-Type: application/json\r\n";
    for (status, headers, code) in [
        ("401 Unauthorized", "", Code::Unauthorized),
        ("403 Forbidden", "Content-Type: text/plain\r\n", Code::Unauthorized),
        ("413 Payload Too Large", "", Code::PayloadTooLarge),
        ("422 Unprocessable Entity", json, Code::InvalidArgument),
        ("429 Too Many Requests", "Retry-After: 7\r\n", Code::ResourceExhausted),
        ("503 Service Unavailable", "Retry-After: 7\r\n", Code::Unavailable),
        ("500 Internal Server Error", "", Code::OutcomeUnknown),
        ("504 Gateway Timeout", "", Code::OutcomeUnknown),
        ("200 OK", "Content-Type: text/plain\r\n", Code::OutcomeUnknown),
    ] {
        upstream.refuse(status, headers, "because of the moon");
        let refused = fault(world.call("other.write", json!({})).await);
        assert_eq!(refused.code, code, "{status}: {refused}");
        assert!(refused.message.contains("because of the moon"), "{status}: {refused}");
        let details = refused.details.unwrap();
        let number: u16 = status[..3].parse().unwrap();
        assert_eq!(details["status"], number, "{details:?}");
        let wait = headers.starts_with("Retry-After").then_some(json!(7000));
        assert_eq!(details.get("retryAfterMs"), wait.as_ref(), "{status}");
        upstream.state.lock().refusal = None;
        assert_eq!(text(world.call("other.write", json!({})).await), "done", "it closes the breaker too");
    }
    upstream.refuse("500 Internal Server Error", "", "because of the moon");
    let refused = fault(world.call("other.read", json!({})).await);
    assert_eq!(refused.code, Code::Unavailable, "a repeat does no harm, so nothing is unknown: {refused}");
    world.remote.stop().await;
}

#[tokio::test]
async fn an_unknown_path_after_a_fresh_session_is_not_found() {
    let upstream = Stateful::start(UnknownSession::NotFound).await;
    let world = World::with(upstream.server()).await;
    upstream.refuse("404 Not Found", "", "nothing here");
    let refused = fault(world.call("other.write", json!({})).await);
    assert_eq!((refused.code, &refused.details.unwrap()["status"]), (Code::NotFound, &json!(404)));
    world.remote.stop().await;
}

#[tokio::test]
async fn refusals_do_not_open_the_breaker() {
    let upstream = Stateful::start(UnknownSession::NotFound).await;
    let world = World::with(upstream.server()).await;
    let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"it broke"}}"#;
    for (status, headers) in [("401 Unauthorized", ""), ("429 Too Many Requests", "Retry-After: 60\r\n")] {
        upstream.refuse(status, headers, error);
        for _ in 0..6 {
            let code = world.call("other.write", json!({})).await.code();
            assert_ne!(code, Some(Code::CircuitOpen), "{status}");
        }
    }
    upstream.state.lock().refusal = None;
    assert_eq!(text(world.call("other.write", json!({})).await), "done");
    world.remote.stop().await;
}

#[tokio::test]
async fn a_server_that_is_away_is_reported_so_and_serves_again_as_soon_as_it_is_back() {
    let upstream = Stateful::start(UnknownSession::NotFound).await;
    let address = upstream.url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let world = World::with(upstream.server()).await;
    upstream.serving.abort();
    let _ = upstream.serving.await;
    for _ in 0..10 {
        let away = fault(world.call("other.write", json!({})).await);
        assert_eq!(away.code, Code::Unavailable, "nothing was sent, and no breaker opened: {away}");
    }
    until("the status to say so", || world.seen().phase == Phase::Waiting).await;
    let seen = world.seen();
    assert!(seen.problem.is_some() && seen.next_attempt_at_ms.is_some(), "{seen:?}");
    assert!(seen.last_error.is_some(), "{seen:?}");
    let _back = Stateful::listen(TcpListener::bind(&address).await.unwrap(), UnknownSession::NotFound);
    within(async {
        while world.call("other.write", json!({})).await.code().is_some() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let seen = world.seen();
    assert_eq!((seen.phase, seen.problem, seen.next_attempt_at_ms), (Phase::Running, None, None));
    world.remote.stop().await;
}
