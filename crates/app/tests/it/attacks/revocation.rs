//! What outlives a revoked token: requests that wait, work that it registered, and its name.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::actors::{token, workflow};
use super::secrets::Mirror;
use super::tokens::{ask, create, served, with};
use crate::program::{PATIENCE, Place};
use crate::server::Server;

/// Sends a request and does not wait for its answer.
fn begin(server: &Server, token: &str, method: &str, target: &str, body: &Value) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: {}\r\n{}Content-Type: application/json\r\nConnection: close\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n",
        server.address,
        with(token),
        body.len()
    );
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
    stream
}

/// The status line of the answer and everything after it.
fn finish(stream: TcpStream) -> (String, String) {
    let mut reader = BufReader::new(stream);
    let (mut status, mut rest) = (String::new(), String::new());
    reader.read_line(&mut status).unwrap();
    // The other end closes, or resets what it has closed: either way it is over.
    let _ = reader.read_to_string(&mut rest);
    (status, rest)
}

#[test]
fn requests_that_wait_end_with_their_token_and_get_nothing() {
    let (place, server) = served(&[]);
    let role = |name: &str, role: &str| create(&place, &["--name", name, "--tenant", "acme", "--role", role]);
    let (owner, _) = role("olga", "owner");
    let (other, _) = role("second-worker", "worker");
    let (worker, worker_id) = role("worker", "worker");
    let (agent, agent_id) = role("agent", "agent,operator");
    let open = workflow("open", json!([{"id": "ok", "approval": {"message": "ok?"}}]));
    let started =
        ask(&server, &owner, "POST", "/v1/workflows/execute", Some(json!({"workflow": open}))).json();
    let id = started["executionId"].as_str().unwrap();
    let poll = json!({"workerId": "w", "waitMs": 20_000});
    let status = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "get_status", "arguments": {"executionId": id, "waitForMs": 20_000},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}}}});
    let waiting = [
        ("worker poll", begin(&server, &worker, "POST", "/v1/workers/pay/poll", &poll)),
        ("REST wait", begin(&server, &agent, "GET", &format!("/v1/executions/{id}?wait=20s"), &Value::Null)),
        (
            "sync",
            begin(&server, &agent, "POST", "/v1/workflows/execute?mode=sync", &json!({"workflow": open})),
        ),
    ];
    let mut call = begin_modern(&server, &agent, &status);
    for token in [worker_id, agent_id] {
        let said = place.run(&["tokens", "revoke", &token, "--yes"]);
        assert_eq!(said.code, Some(0), "{said:?}");
    }
    // Work that comes now is for a worker that may have it.
    let pay = workflow("pay", json!([{"id": "p", "agentId": "@worker/pay", "input": {"card": "4711"}}]));
    ask(&server, &owner, "POST", "/v1/workflows/execute", Some(json!({"workflow": pay})));
    for (what, stream) in waiting {
        let (status, rest) = finish(stream);
        assert!(status.contains(" 401 "), "{what}: {status}{rest}");
        assert!(!rest.contains("4711") && !rest.contains("\"status\""), "{what}: {rest}");
    }
    let mut rest = String::new();
    let _ = call.read_to_string(&mut rest);
    assert!(!rest.contains("waiting") && !rest.contains("running"), "get_status: {rest}");
    let mine = ask(&server, &other, "POST", "/v1/workers/pay/poll", Some(poll)).json();
    assert_eq!(mine["tasks"][0]["input"]["card"], "4711", "{mine}");
}

/// A tool call that stands for itself.
fn begin_modern(server: &Server, token: &str, body: &Value) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let body = body.to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\n{}Content-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nConnection: close\r\nMcp-Name: get_status\r\nAccept: application/json, text/event-stream\r\n\
         Content-Length: {}\r\n",
        server.address,
        with(token),
        body.len()
    );
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
    stream
}

/// Asks until there is an entry of this action; asking is what takes time.
fn audited(server: &Server, token: &str, action: &str) -> Value {
    let path = format!("/v1/audit?action={action}");
    for _ in 0..20_000 {
        let page = ask(server, token, "GET", &path, None).json();
        if let Some(entry) = page["entries"].as_array().and_then(|entries| entries.first()) {
            return entry.clone();
        }
    }
    panic!("there is no entry of {action}");
}

/// Asks until the mirror has heard it.
fn told(server: &Server, mirror: &Mirror, what: &str) {
    for _ in 0..20_000 {
        if mirror.heard().contains(what) {
            return;
        }
        server.connect().get("/healthz");
    }
    panic!("never told of {what}");
}

fn open_place() -> (Place, Server) {
    let place = Place::new();
    place.write(
        "orchestr8.toml",
        "[knowledge.webhooks]\nallowPrivate = true\n[aacp.callbacks]\nallowPrivate = true\n",
    );
    let server = Server::start(&place, &[]);
    let url = format!("http://{}", server.address);
    (place.with("ORCHESTR8_SERVER", &url), server)
}

fn document(number: u8, title: &str) -> Value {
    json!({"document_id": format!("00000000-0000-4000-8000-00000000000{number}"), "parent_id": "root",
        "metadata": {"title": title}, "content": {"mime_type": "text/plain", "body": "x"}})
}

#[test]
fn webhooks_and_callbacks_of_a_revoked_principal_are_paused() {
    let mirror = Mirror::start();
    let (place, server) = open_place();
    let (owner, _) = create(&place, &["--name", "olga", "--tenant", "acme", "--role", "owner"]);
    let (spy, spy_id) = create(&place, &["--name", "spy", "--tenant", "acme", "--role", "owner"]);
    let post = |token: &str, target: &str, body: Value| {
        let answer = ask(&server, token, "POST", target, Some(body));
        assert!(answer.status < 300, "{target}: {answer:?}");
        answer.json()
    };
    let hook = post(&spy, "/webhooks", json!({"url": mirror.url()}));
    post(&spy, "/aacp/agents", json!({"agentId": "ear", "callbackUrl": mirror.url()}));
    let message = |text: &str| json!({"sourceAgentId": "me", "targetAgentId": "ear", "messageType": "EVENT", "payload": {"text": text}});
    post(&owner, "/documents", document(1, "before-the-end"));
    post(&owner, "/aacp/messages", message("message-before-the-end"));
    told(&server, &mirror, "message-before-the-end");
    told(&server, &mirror, "\"title\":\"before-the-end\"");
    let said = place.run(&["tokens", "revoke", &spy_id, "--yes"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    post(&owner, "/documents", document(2, "after-the-end"));
    post(&owner, "/aacp/messages", message("message-after-the-end"));
    let paused = audited(&server, &owner, "webhooks.pause");
    assert_eq!((&paused["object"], &paused["detail"]["author"]), (&hook["id"], &json!("spy")), "{paused}");
    let paused = audited(&server, &owner, "agents.pause");
    assert_eq!((&paused["object"], &paused["detail"]["owner"]), (&json!("ear"), &json!("spy")), "{paused}");
    post(&owner, "/documents", document(3, "long-after-the-end"));
    let listed = ask(&server, &owner, "GET", "/webhooks", None).json();
    assert_eq!(listed["webhooks"][0]["paused"], "principal_revoked", "{listed}");
    assert_eq!(listed["webhooks"][0]["waiting"], 0, "{listed}");
    let agents = ask(&server, &owner, "GET", "/aacp/agents", None).json();
    let ear = agents["agents"].as_array().unwrap().iter().find(|agent| agent["agentId"] == "ear").unwrap();
    assert_eq!(ear["paused"], "principal_revoked", "{ear}");
    assert!(!mirror.heard().contains("after-the-end"), "{}", mirror.heard());
    // An owner takes the agent over, and what waited is brought.
    post(&owner, "/aacp/agents", json!({"agentId": "ear", "callbackUrl": mirror.url()}));
    told(&server, &mirror, "message-after-the-end");
}

#[test]
fn a_new_token_does_not_silently_inherit_the_name_of_a_revoked_one() {
    let (place, server) = served(&[]);
    let acme = ["--tenant", "acme"];
    let (owner, _) = create(&place, &[&["--name", "olga", "--role", "owner"], &acme[..]].concat());
    let (admin, _) = create(&place, &[&["--name", "ada", "--role", "admin,agent"], &acme[..]].concat());
    let (_, old) = create(&place, &[&["--name", "bot", "--role", "agent"], &acme[..]].concat());
    assert_eq!(place.run(&["tokens", "revoke", &old, "--yes"]).code, Some(0));
    let again = |more: Value| {
        let mut body = json!({"name": "bot", "roles": ["agent"]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Some(body)
    };
    let refused = ask(&server, &owner, "POST", "/v1/tokens", again(json!({})));
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(refused.body.contains("inherit"), "{refused:?}");
    let said = place.run(&[&["tokens", "create", "--name", "bot", "--role", "agent"], &acme[..]].concat());
    assert!(said.code == Some(5) && said.err.contains("--reuse-name"), "{said:?}");
    let by_admin = ask(&server, &admin, "POST", "/v1/tokens", again(json!({"reuseName": true})));
    assert_eq!(by_admin.status, 403, "what belongs to a name is not the admin's to hand out: {by_admin:?}");
    let (_, new) =
        create(&place, &[&["--name", "bot", "--role", "agent", "--reuse-name"], &acme[..]].concat());
    let entry = audited(&server, &owner, "tokens.reuse_name");
    assert_eq!((&entry["object"], &entry["principal"]), (&json!("bot"), &json!("local")), "{entry}");
    // The same name in another tenant is another principal.
    create(&place, &["--name", "bot", "--tenant", "rival", "--role", "agent"]);
    assert_eq!(place.run(&["tokens", "revoke", &new, "--yes"]).code, Some(0));
    server.terminate();
    configured_names(&place);
}

/// The settings do not take over a name either, and names that left the settings are remembered.
fn configured_names(place: &Place) {
    let bot = token("bot", "acme", &["agent"]);
    let carl = token("carl", "acme", &["owner"]);
    place.write("orchestr8.toml", &[bot.as_str(), &carl].concat());
    let refused = place.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(refused.code == Some(5) && refused.err.contains("reuseName"), "{refused:?}");
    place.write("orchestr8.toml", &format!("{carl}{bot}reuseName = true\n"));
    let server = Server::start(place, &[]);
    assert_eq!(audited(&server, "carl", "tokens.reuse_name")["object"], "bot");
    server.terminate();
    place.write("orchestr8.toml", &token("dora", "acme", &["owner"]));
    let server = Server::start(place, &[]);
    let refused =
        ask(&server, "dora", "POST", "/v1/tokens", Some(json!({"name": "carl", "roles": ["owner"]})));
    assert_eq!(refused.status, 409, "{refused:?}");
    server.terminate();
    let twin = token("carl-2", "acme", &["viewer"]).replace("name = 'carl-2'", "name = 'carl'");
    place.write("orchestr8.toml", &[carl, twin].concat());
    let twice = place.run(&["config", "check"]);
    assert!(twice.err.contains("auth.tokens[1].name"), "{twice:?}");
}
