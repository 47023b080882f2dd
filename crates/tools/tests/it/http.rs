//! A server reached over HTTP.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use orchestr8_contract::{Code, TraceParent};
use orchestr8_kernel::peer::About;
use orchestr8_testing::settled::{fault, text};
use orchestr8_testing::{Person, within};
use orchestr8_tools::remote::{Link, Phase, Server, limits};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::world::World;

/// The smallest server there is: one request a connection, answers in JSON.
struct Small {
    url: String,
    /// The heads of all requests.
    heard: Arc<Mutex<Vec<String>>>,
    serving: JoinHandle<()>,
}

/// What all connections of a server share.
#[derive(Default)]
struct Shared {
    heard: Arc<Mutex<Vec<String>>>,
    /// Questions of ours that wait for their answer, by id.
    asking: Mutex<HashMap<String, oneshot::Sender<Value>>>,
}

impl Small {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let shared = Arc::new(Shared::default());
        let heard = shared.heard.clone();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = shared.clone();
                tokio::spawn(async move { answer(stream, &shared).await });
            }
        });
        Self { url, heard, serving }
    }

    /// As the server `other`, whose tools begin with `web.`.
    fn server(&self) -> Server {
        let headers = BTreeMap::from([("X-Team".to_owned(), "blue".to_owned())]);
        let mut server = Server::new("other", Link::Http { url: self.url.clone(), headers });
        server.prefix = Some("web".into());
        server.timeout_ms = Some(10_000);
        server
    }

    async fn stop(self) {
        self.serving.abort();
        let _ = self.serving.await;
    }
}

async fn answer(stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        if let Some(given) = line.to_lowercase().strip_prefix("content-length:") {
            length = given.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    shared.heard.lock().push(head.clone());
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    if message["params"]["name"] == "ask" {
        return ask(stream, &message, shared).await;
    }
    let waiting = message["id"].as_str().and_then(|id| shared.asking.lock().remove(id));
    if let Some(waiting) = waiting {
        let _ = waiting.send(message["result"].clone());
    }
    let is_stream = message["params"]["name"] == "stream";
    let (status, body) = match (head.starts_with("POST"), reply(&message)) {
        (false, _) => ("405 Method Not Allowed", String::new()),
        (true, None) => ("202 Accepted", String::new()),
        (true, Some((status, member, value))) => {
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], member: value}).to_string();
            (status, if is_stream { format!("data: {answer}\n\n") } else { answer })
        }
    };
    let kind = if is_stream { "text/event-stream" } else { "application/json" };
    // Without a length, so that a client cannot know beforehand how much comes.
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await
}

/// Asks in the stream of the call, and ends it with the answer.
async fn ask(mut stream: BufReader<TcpStream>, message: &Value, shared: &Shared) -> std::io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    let (id, (sender, answer)) = (format!("about {}", message["id"]), oneshot::channel());
    shared.asking.lock().insert(id.clone(), sender);
    let params = json!({
        "message": message["params"]["arguments"]["message"],
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    });
    let question = json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params});
    stream.write_all(format!("data: {question}\n\n").as_bytes()).await?;
    let answer = answer.await.unwrap_or_default();
    let result = json!({"content": [{"type": "text", "text": answer.to_string()}]});
    let result = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    stream.write_all(format!("data: {result}\n\n").as_bytes()).await
}

fn reply(message: &Value) -> Option<(&'static str, &'static str, Value)> {
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "h", "version": "1"}
        }),
        "tools/list" => {
            let tool = |name: &str, read| json!({"name": name, "inputSchema": {}, "annotations": {"readOnlyHint": read}});
            json!({"tools": [tool("greet", true), tool("write", false), tool("stream", false), tool("refuse", false), tool("ask", false)]})
        }
        "tools/call" if message["params"]["name"] == "refuse" => {
            return Some(("400 Bad Request", "error", json!({"code": -32_602, "message": "not so"})));
        }
        "tools/call" => {
            let count = message["params"]["arguments"]["count"].as_u64().unwrap_or(1);
            let text = "hello".repeat(usize::try_from(count).unwrap());
            json!({"content": [{"type": "text", "text": text}]})
        }
        _ => return None,
    };
    Some(("200 OK", "result", result))
}

#[tokio::test]
async fn its_tools_are_called_with_the_headers_it_wants() {
    let small = Small::start().await;
    let world = World::with(small.server()).await;
    let seen = world.seen();
    let tools = ["web.greet", "web.write", "web.stream", "web.refuse", "web.ask"].map(String::from);
    assert_eq!(
        (seen.phase, &seen.tools[..], seen.pid),
        (Phase::Running, &tools[..], None),
        "{:?}",
        seen.problem
    );
    let table = world.kernel.registry().table();
    assert_eq!(table.find("web.greet").unwrap().about.description, "greet of other");
    assert_eq!(text(world.call("web.greet", json!({})).await), "hello");
    assert_eq!(text(world.call("web.stream", json!({})).await), "hello");
    let refused = fault(world.call("web.refuse", json!({})).await);
    assert_eq!(
        (refused.code, &refused.details.unwrap()["remoteCode"]),
        (Code::InvalidArgument, &json!(-32_602))
    );
    assert!(small.heard.lock().iter().all(|head| head.to_lowercase().contains("x-team: blue")));
    small.stop().await;
    for tool in ["web.greet", "web.write"] {
        let away = world.call(tool, json!({})).await.code();
        assert_eq!(away, Some(Code::Unavailable), "{tool}: nothing was sent, so nothing is unknown");
    }
    world.remote.stop().await;
}

#[tokio::test]
async fn a_call_that_is_part_of_a_trace_says_so() {
    let small = Small::start().await;
    let world = World::with(small.server()).await;
    let mut submission = world.submission("web.greet", json!({}));
    submission.trace = TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    let settled = within(world.kernel.submit(submission)).await;
    let run = settled.run.0;
    text(settled);
    let parent = TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
    let told = format!("traceparent: {}", parent.within(run));
    assert_eq!(small.heard.lock().iter().filter(|head| head.contains(&told)).count(), 1, "{told}");
    assert_eq!(small.heard.lock().iter().filter(|head| head.contains("traceparent")).count(), 1);
    world.remote.stop().await;
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_refused_in_either_form() {
    let small = Small::start().await;
    let world = World::with(small.server()).await;
    let count = limits::MESSAGE_BYTES / "hello".len();
    // In a stream the library tells only that it broke off.
    for (tool, code) in [("web.write", Code::PayloadTooLarge), ("web.stream", Code::OutcomeUnknown)] {
        let whole = text(world.call(tool, json!({"count": count - 100})).await);
        assert_eq!(whole.len(), (count - 100) * 5, "{tool}");
        let refused = fault(world.call(tool, json!({"count": count + 1})).await);
        assert_eq!(refused.code, code, "{tool}");
        assert_eq!(text(world.call(tool, json!({})).await), "hello", "{tool}: it goes on");
    }
    world.remote.stop().await;
}

#[tokio::test]
async fn a_question_in_the_stream_of_a_call_is_asked_of_its_client_and_no_other() {
    let small = Small::start().await;
    let world = World::with(small.server()).await;
    let answer = |name: &str| json!({"action": "accept", "content": {"name": name}});
    let people = ["Ada", "Bo", "Cy"].map(|name| Person::always(&[About::Elicit], answer(name)));
    let calls = people.iter().zip(["a", "b", "c"]).map(|(person, message)| {
        let mut submission = world.submission("web.ask", json!({"message": message}));
        submission.peer = Some(person.clone());
        world.kernel.submit(submission)
    });
    let answered = within(futures::future::join_all(calls)).await;
    let names = answered.into_iter().map(|settled| serde_json::from_str::<Value>(&text(settled)).unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["Ada", "Bo", "Cy"].map(answer));
    for (person, message) in people.iter().zip(["other: a", "other: b", "other: c"]) {
        let asked = person.asked.lock();
        assert_eq!((asked.len(), &asked[0].params["message"]), (1, &json!(message)));
    }
    world.remote.stop().await;
}

#[tokio::test]
async fn a_header_the_transport_sets_itself_is_refused() {
    let headers = BTreeMap::from([("Mcp-Session-Id".to_owned(), "mine".to_owned())]);
    let link = Link::Http { url: "http://127.0.0.1:1/mcp".into(), headers };
    let world = World::with(Server::new("other", link)).await;
    assert_eq!(world.seen().problem.as_deref(), Some("the header \"Mcp-Session-Id\" cannot be sent"));
    world.remote.stop().await;
}

#[tokio::test]
async fn an_address_where_nobody_listens_is_a_problem_and_no_more() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let world = World::with(Server::new("other", Link::Http { url, headers: BTreeMap::new() })).await;
    assert!(world.seen().problem.is_some());
    world.remote.stop().await;
}
