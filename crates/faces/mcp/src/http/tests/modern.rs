//! The modern era: every request stands for itself.

use orchestr8_contract::{AllowedRoles, Output};
use orchestr8_kernel::{Action, Context, Policy, Why};
use serde_json::{Value, json};

use super::client::{Answer, Client, EVENTS, JSON, MODERN, text};
use super::world::World;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

fn request(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({VERSION: "2026-07-28", CAPABILITIES: {"elicitation": {}}, "progressToken": id});
    super::client::request(id, method, params)
}

fn call(id: u64, tool: &str, arguments: Value) -> Value {
    request(id, "tools/call", json!({"name": tool, "arguments": arguments}))
}

fn headers<'a>(method: &'a str, name: &'a str) -> Vec<(&'a str, &'a str)> {
    let mut headers = vec![MODERN, ("Mcp-Method", method)];
    if !name.is_empty() {
        headers.push(("Mcp-Name", name));
    }
    headers
}

async fn ask(client: &mut Client, name: &str, body: &Value) -> Answer {
    client.post(&headers(body["method"].as_str().unwrap(), name), body).await
}

#[tokio::test]
async fn a_request_needs_no_session_and_has_a_connection_of_its_own() {
    let world = World::new().await;
    let mut client = world.client().await;
    let mut connections = std::collections::BTreeSet::new();
    for id in 1..=3 {
        let answer = ask(&mut client, "echo", &call(id, "echo", json!({"message": "hi"}))).await;
        assert_eq!((answer.head.status, answer.head.get("content-type")), (200, Some("application/json")));
        let body = answer.json();
        assert_eq!((text(&body), &body["result"]["resultType"]), ("hi", &json!("complete")));
        assert_eq!(answer.head.get("mcp-session-id"), None);
        connections.insert(answer.head.get("x-correlation-id").unwrap().to_owned());
    }
    assert_eq!(connections.len(), 3);
    // A session id of an older time is passed over.
    let old = [headers("tools/call", "echo"), vec![("Mcp-Session-Id", "no such session")]].concat();
    assert_eq!(client.post(&old, &call(4, "echo", json!({"message": "hi"}))).await.head.status, 200);
    let discovered = ask(&mut client, "", &request(5, "server/discover", json!({}))).await.json();
    assert!(discovered["result"]["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")));
    assert_eq!(world.sessions(), 0);
}

#[tokio::test]
async fn the_trace_of_a_call_comes_from_its_meta_or_its_header() {
    const HEADER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const META: &str = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-00f067aa0ba902b7-00";
    let world = World::new().await;
    let tool =
        Action::tool("trace", "Tells.", json!({"type": "object"}), Policy::read(), |_, context: Context| {
            let trace = context.trace.map(|trace| trace.to_string()).unwrap_or_default();
            std::future::ready(Ok(Output::text(trace).into()))
        });
    world.kernel.registry().register(tool.unwrap().allowed_to(AllowedRoles::ANYONE)).unwrap();
    let mut client = world.client().await;
    let mut told = async |header: &str, meta: &str| {
        let mut body = call(1, "trace", json!({}));
        body["params"]["_meta"]["traceparent"] = meta.into();
        let headers = [headers("tools/call", "trace"), vec![("traceparent", header)]].concat();
        text(&client.post(&headers, &body).await.json()).to_owned()
    };
    let (from_header, from_meta) = (told(HEADER, "").await, told(HEADER, META).await);
    assert!(from_header.starts_with(&HEADER[..36]) && from_header.ends_with("-01"), "{from_header}");
    assert!(!from_header.contains("00f067aa0ba902b7"), "its own run is the parent now: {from_header}");
    assert!(from_meta.starts_with(&META[..36]) && from_meta.ends_with("-00"), "{from_meta}");
    assert_eq!(told("00-nonsense", "nonsense").await, "");
}

#[tokio::test]
async fn headers_and_body_must_agree() {
    let world = World::new().await;
    let mut client = world.client().await;
    let echo = call(9, "echo", json!({"message": "hi"}));
    let wrong: [&[(&str, &str)]; 7] = [
        &[MODERN, ("Mcp-Name", "echo")],
        &[MODERN, ("Mcp-Method", "tools/list"), ("Mcp-Name", "echo")],
        &[MODERN, ("Mcp-Method", "TOOLS/CALL"), ("Mcp-Name", "echo")],
        &[MODERN, ("Mcp-Method", "tools/call")],
        &[MODERN, ("Mcp-Method", "tools/call"), ("Mcp-Name", "Echo")],
        &[("MCP-Protocol-Version", "2026-07-29"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "echo")],
        // The body is of the modern era, the headers say nothing of it.
        &[],
    ];
    for headers in wrong {
        let answer = client.post(headers, &echo).await;
        assert_eq!((answer.refusal(), &answer.json()["id"]), ((400, -32020), &json!(9)), "{headers:?}");
        assert_eq!(answer.head.get("content-type"), Some("application/json"));
    }
    let padded = [MODERN, ("mcp-method", "  tools/call "), ("MCP-NAME", "=?base64?ZWNobw==?=")];
    assert_eq!(client.post(&padded, &echo).await.head.status, 200);
    // Within a session, a modern body without its headers is refused all the same.
    let session = world.session().await;
    assert_eq!(session.post(&echo).await.refusal(), (400, -32020));
}

#[tokio::test]
async fn an_annotated_argument_travels_in_a_header_too() {
    let world = World::new().await;
    let mut client = world.client().await;
    let body = call(1, "mirror", json!({"region": "Hello"}));
    let mut with = async |value: Option<&str>| {
        let mut headers = headers("tools/call", "mirror");
        headers.extend(value.map(|value| ("Mcp-Param-Region", value)));
        client.post(&headers, &body).await
    };
    for right in ["Hello", "=?base64?SGVsbG8=?="] {
        assert_eq!(with(Some(right)).await.head.status, 200, "{right}");
    }
    for wrong in [Some("hello"), Some("=?base64?SGVsbG8?="), Some("=?base64?SGVs!!!bG8=?="), None] {
        assert_eq!(with(wrong).await.refusal(), (400, -32020), "{wrong:?}");
    }
}

#[tokio::test]
async fn the_first_thing_that_is_wrong_decides() {
    let world = World::new().await;
    let mut client = world.client().await;
    let meta = |meta: Value| super::client::request(1, "server/discover", json!({"_meta": meta}));
    let discover = headers("server/discover", "");
    let far = [("MCP-Protocol-Version", "v999.0.0"), ("Mcp-Method", "server/discover")];
    for (headers, body, refusal) in [
        (&discover[..], super::client::request(1, "server/discover", json!({})), (400, -32602)),
        (&discover, meta(json!({CAPABILITIES: {}})), (400, -32602)),
        (&discover, meta(json!({VERSION: "2026-07-28"})), (400, -32602)),
        (&discover, meta(json!({VERSION: "v999.0.0", CAPABILITIES: {}})), (400, -32020)),
        (&far, meta(json!({VERSION: "v999.0.0", CAPABILITIES: {}})), (400, -32022)),
    ] {
        let answer = client.post(headers, &body).await;
        assert_eq!((answer.refusal(), &answer.json()["id"]), (refusal, &json!(1)), "{body}");
    }
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "no/such", "tasks/result"]
    {
        let answer = ask(&mut client, "", &request(2, method, json!({}))).await;
        assert_eq!(answer.refusal(), (404, -32601), "{method}");
    }
    let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(client.post(&[MODERN], &note).await.head.status, 202);
}

#[tokio::test]
async fn there_is_nothing_but_post() {
    let world = World::new().await;
    let session = world.session().await;
    let mut client = world.client().await;
    for method in ["GET", "DELETE"] {
        let answer = client.ask(method, &[EVENTS, MODERN, session.header()], b"").await;
        assert_eq!((answer.head.status, answer.head.get("allow")), (405, Some("POST")));
    }
    assert_eq!(world.sessions(), 1);
}

#[tokio::test]
async fn what_is_said_before_the_reply_makes_a_stream_without_ids() {
    let world = World::new().await;
    let mut client = world.client().await;
    let head = client.open(&headers("tools/call", "say"), &call(1, "say", json!({"times": 2}))).await;
    assert!(head.is_stream() && head.get("x-accel-buffering") == Some("no"));
    for done in [1, 2] {
        let event = client.event().await.unwrap();
        assert_eq!((event.id.as_ref(), &event.json()["params"]["progress"]), (None, &json!(done)));
    }
    assert_eq!(text(&client.event().await.unwrap().json()), "said");
    assert_eq!(client.event().await, None);
    // Nobody is sent away where nobody can come back.
    world.gate.add_permits(1);
    let answer = ask(&mut client, "park", &call(2, "park", json!({}))).await;
    assert_eq!(text(&answer.json()), "let go");
}

#[tokio::test]
async fn a_client_that_leaves_has_cancelled() {
    let mut world = World::new().await;
    // While the answer is awaited,
    let mut client = world.client().await;
    let all = [headers("tools/call", "hold"), vec![JSON]].concat();
    client.send("POST", &all, call(1, "hold", json!({})).to_string().as_bytes()).await;
    while world.kernel.running() == 0 {
        tokio::task::yield_now().await;
    }
    drop(client);
    assert_eq!(world.stopped.recv().await, Some(Some(Why::Disconnect)));
    // and while it streams.
    let mut client = world.client().await;
    client.open(&headers("tools/call", "talk"), &call(1, "talk", json!({}))).await;
    client.event().await.unwrap();
    drop(client);
    assert_eq!(world.stopped.recv().await, Some(Some(Why::Disconnect)));
}

#[tokio::test]
async fn a_question_is_the_answer_and_the_call_comes_again() {
    let world = World::new().await;
    let mut client = world.client().await;
    let answer = ask(&mut client, "ask", &call(1, "ask", json!({}))).await;
    let result = &answer.json()["result"];
    assert_eq!((answer.head.status, &result["resultType"]), (200, &json!("input_required")));
    let mut again = call(2, "ask", json!({}));
    again["params"]["inputResponses"] = json!({"name": {"action": "accept", "content": {"name": "Ada"}}});
    again["params"]["requestState"] = result["requestState"].clone();
    assert_eq!(text(&ask(&mut client, "ask", &again).await.json()), "Ada");
}

async fn listen(world: &World, id: u64, wanted: Value) -> Client {
    let mut client = world.client().await;
    let body = request(id, "subscriptions/listen", json!({"notifications": wanted}));
    let head = client.open(&headers("subscriptions/listen", ""), &body).await;
    assert!(head.is_stream());
    let first = client.event().await.unwrap().json();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(
        (&first["params"]["notifications"], &first["params"]["_meta"][SUBSCRIPTION]),
        (&wanted, &json!(id))
    );
    client
}

#[tokio::test]
async fn news_come_on_a_stream_that_asked_for_them_until_the_server_says_goodbye() {
    let world = World::new().await;
    let mut tools = listen(&world, 1, json!({"toolsListChanged": true})).await;
    let mut prompts = listen(&world, 2, json!({"promptsListChanged": true})).await;
    world.change("tools");
    world.change("prompts");
    let heard = tools.event().await.unwrap().json();
    assert_eq!(
        (&heard["method"], &heard["params"]["_meta"][SUBSCRIPTION]),
        (&json!("notifications/tools/list_changed"), &json!(1))
    );
    let heard = prompts.event().await.unwrap().json();
    assert_eq!(
        (&heard["method"], &heard["params"]["_meta"][SUBSCRIPTION]),
        (&json!("notifications/prompts/list_changed"), &json!(2))
    );
    let ended = tokio::spawn(world.end());
    for (client, id) in [(&mut tools, 1), (&mut prompts, 2)] {
        let last = client.event().await.unwrap().json();
        assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!(id), &json!("complete")));
        assert_eq!(client.event().await, None);
    }
    assert_eq!(ended.await.unwrap().cut, 0);
}

#[tokio::test]
async fn a_listener_that_leaves_is_forgotten() {
    let world = World::new().await;
    let client = listen(&world, 1, json!({"toolsListChanged": true})).await;
    assert_eq!(world.listeners(), 1);
    drop(client);
    while world.listeners() > 0 {
        tokio::task::yield_now().await;
    }
}
