//! Attacks on sessions of other principals: a session belongs to the principal that started it.

use std::net::TcpStream;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Message, WebSocket, client};

use super::actors::{expect, serve, token};
use crate::program::{PATIENCE, Place};
use crate::server::Server;

/// Calls a tool over MCP as the bearer of a token.
fn call(server: &Server, token: &str, tool: &str, arguments: Value) -> Value {
    let more = format!("Authorization: Bearer {token}\r\n");
    let params = json!({"name": tool, "arguments": arguments});
    server.connect().modern(1, "tools/call", params, &more).unwrap().json()["result"].clone()
}

#[test]
fn a_session_is_not_found_by_another_principal_of_its_tenant_or_of_another() {
    let place = Place::new();
    let config = [
        token("alice", "acme", &["agent"]),
        token("bob", "acme", &["agent"]),
        token("olivia", "acme", &["owner"]),
        token("eve", "rival", &["owner"]),
        "[sessions]\ncwd = '/tmp'\n".to_owned(),
    ]
    .concat();
    let server = serve(&place, &config);
    let started = call(&server, "alice", "start_session", json!({}));
    let id =
        started["structuredContent"]["sessionId"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned();
    let secret = json!({"sessionId": id, "message": "my password is hunter2"});
    assert_eq!(call(&server, "alice", "prompt_session", secret)["isError"], false);
    for stranger in ["bob", "eve"] {
        let read = call(&server, stranger, "get_session", json!({"sessionId": id}));
        assert_eq!(read["isError"], true, "{stranger}: {read}");
        assert!(read.to_string().contains("NOT_FOUND") && !read.to_string().contains("hunter2"), "{read}");
        let said = call(&server, stranger, "prompt_session", json!({"sessionId": id, "message": "hello"}));
        assert_eq!(said["isError"], true, "{stranger}: {said}");
    }
    let shown = call(&server, "olivia", "get_session", json!({"sessionId": id}));
    assert_eq!(shown["isError"], false, "an owner of the tenant may look: {shown}");
}

/// A WebSocket of the session protocol, opened with a token.
pub(super) struct Socket {
    socket: WebSocket<TcpStream>,
    sent: u64,
    who: String,
    /// Everything that was heard beside responses.
    heard: Vec<Value>,
}

impl Socket {
    pub(super) fn open(server: &Server, who: &str) -> Self {
        let stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut request = format!("ws://{}/ws/session", server.address).into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {who}").parse().unwrap());
        Self { socket: client(request, stream).unwrap().0, sent: 0, who: who.to_owned(), heard: Vec::new() }
    }

    fn ask(&mut self, kind: &str, more: Value) -> Value {
        self.sent += 1;
        let id = format!("{}-{}", self.who, self.sent);
        self.ask_as(&id, kind, more)
    }

    fn ask_as(&mut self, id: &str, kind: &str, more: Value) -> Value {
        let mut command = more;
        command["type"] = kind.into();
        command["id"] = id.into();
        self.socket.send(Message::text(command.to_string())).unwrap();
        loop {
            let Message::Text(text) = self.socket.read().unwrap() else { continue };
            let heard: Value = serde_json::from_str(&text).unwrap();
            if heard["type"] == "response" && heard["id"] == *id {
                return heard;
            }
            self.heard.push(heard);
        }
    }

    pub(super) fn succeed(&mut self, kind: &str, more: Value) -> Value {
        let answer = self.ask(kind, more);
        assert_eq!(answer["success"], true, "{}: {kind}: {answer}", self.who);
        answer
    }

    fn refused(&mut self, kind: &str, more: Value) -> Value {
        let answer = self.ask(kind, more);
        assert_eq!(answer["success"], false, "{}: {kind}: {answer}", self.who);
        assert!(!answer.to_string().contains("hunter2"), "{}: {kind}: {answer}", self.who);
        answer
    }
}

/// alice and bob talk to sessions of acme, vic only looks, eve owns another tenant.
fn people() -> String {
    [
        token("alice", "acme", &["agent", "editor"]),
        token("bob", "acme", &["agent"]),
        token("vic", "acme", &["viewer"]),
        token("eve", "rival", &["owner"]),
        "[sessions]\ncwd = '/tmp'\n".to_owned(),
    ]
    .concat()
}

/// Everything that a command may name a session for, and that tells or changes something of it.
fn uses() -> [(&'static str, Value); 13] {
    [
        ("get_messages", json!({})),
        ("get_state", json!({})),
        ("get_tree", json!({})),
        ("get_last_assistant_text", json!({})),
        ("switch_session", json!({})),
        ("prompt", json!({"message": "by another"})),
        ("steer", json!({"message": "by another"})),
        ("follow_up", json!({"message": "by another"})),
        ("set_session_name", json!({"name": "by another"})),
        ("share_session", json!({"principal": "bob", "access": "write"})),
        ("export_html", json!({})),
        ("abort", json!({})),
        ("delete_session", json!({})),
    ]
}

pub(super) fn of(session: &str, mut more: Value) -> Value {
    more["sessionId"] = session.into();
    more
}

#[test]
fn no_command_of_another_principal_reaches_a_session_that_is_not_shared() {
    let place = Place::new();
    let server = serve(&place, &people());
    let mut alice = Socket::open(&server, "alice");
    alice.succeed("create_session", of("trip", json!({})));
    alice.succeed("prompt", of("trip", json!({"message": "my password is hunter2"})));
    for who in ["bob", "vic", "eve"] {
        let mut stranger = Socket::open(&server, who);
        for (kind, more) in uses() {
            stranger.refused(kind, of("trip", more));
        }
        let listed = stranger.succeed("list_sessions", json!({}));
        assert!(!listed.to_string().contains("trip"), "{who}: {listed}");
        let history = stranger.succeed("get_command_history", of("trip", json!({})));
        assert!(!history.to_string().contains("alice-"), "{who}: {history}");
    }
    let told = alice.succeed("get_messages", of("trip", json!({}))).to_string();
    assert!(told.contains("hunter2") && !told.contains("by another"), "{told}");
}

#[test]
fn a_shared_session_is_read_or_written_as_it_was_shared_and_no_further() {
    let place = Place::new();
    let server = serve(&place, &people());
    let (mut alice, mut bob) = (Socket::open(&server, "alice"), Socket::open(&server, "bob"));
    alice.succeed("create_session", of("trip", json!({})));
    let share = |access: &str| of("trip", json!({"principal": "bob", "access": access}));
    alice.succeed("share_session", share("read"));
    let read = ["get_messages", "get_state", "get_tree", "get_last_assistant_text", "switch_session"];
    for kind in read {
        bob.succeed(kind, of("trip", json!({})));
    }
    for (kind, more) in uses().into_iter().filter(|(kind, _)| !read.contains(kind)) {
        bob.refused(kind, of("trip", more));
    }
    let over_mcp = call(&server, "bob", "get_session", json!({"sessionId": "trip"}));
    assert_eq!(over_mcp["isError"], false, "{over_mcp}");
    let over_mcp =
        call(&server, "bob", "prompt_session", json!({"sessionId": "trip", "message": "by another"}));
    assert_eq!(over_mcp["isError"], true, "{over_mcp}");
    alice.succeed("share_session", share("write"));
    bob.succeed("prompt", of("trip", json!({"message": "by another"})));
    let over_mcp =
        call(&server, "bob", "prompt_session", json!({"sessionId": "trip", "message": "by another"}));
    assert_eq!(over_mcp["isError"], false, "{over_mcp}");
    bob.refused("share_session", of("trip", json!({"principal": "vic", "access": "read"})));
    bob.refused("delete_session", of("trip", json!({})));
    alice.succeed("share_session", share("none"));
    for (kind, more) in uses() {
        bob.refused(kind, of("trip", more));
    }
}

/// A message that waits in the session of another must not make tools run with rights that its sender lacks.
#[test]
fn a_message_queued_by_another_reduces_the_rights_of_the_turn() {
    let place = Place::new();
    let server = serve(&place, &people());
    let (mut alice, mut bob) = (Socket::open(&server, "alice"), Socket::open(&server, "bob"));
    alice.succeed("create_session", of("trip", json!({})));
    alice.succeed("share_session", of("trip", json!({"principal": "bob", "access": "write"})));
    let edit = json!({"workflow": {"id": "w", "version": "1.0.0", "name": "w", "steps": [
        {"id": "k", "agentId": "@orchestr8/knowledge", "input": {"operation": "create", "title": "By follow-up", "body": "x"}},
        {"id": "e", "dependencies": ["k"], "agentId": "@orchestr8/knowledge",
         "input": {"operation": "update", "document_id": "${steps.k.output.id}", "body": "by bob"}}]}});
    bob.succeed("follow_up", of("trip", json!({"message": format!("/tool run_workflow {edit}")})));
    alice.succeed("prompt", of("trip", json!({"message": "hello"})));
    let list = expect(&server, "alice", ("GET", "/v1/executions?workflowId=w"), None, 200);
    let id = list["executions"][0]["executionId"].as_str().unwrap_or_else(|| panic!("{list}")).to_owned();
    let ended = expect(&server, "alice", ("GET", &format!("/v1/executions/{id}?wait=10s")), None, 200);
    assert_eq!(ended["errors"][0]["code"], "FORBIDDEN", "bob may add documents and not change them: {ended}");
}

#[test]
fn the_id_of_another_ones_command_answers_nothing_of_it() {
    let place = Place::new();
    let server = serve(&place, &people());
    let (mut alice, mut bob) = (Socket::open(&server, "alice"), Socket::open(&server, "bob"));
    alice.succeed("create_session", of("trip", json!({})));
    alice.succeed("prompt", of("trip", json!({"message": "my password is hunter2"})));
    let first = alice.ask_as("c-1", "get_last_assistant_text", of("trip", json!({})));
    assert!(first.to_string().contains("hunter2"), "{first}");
    let said = alice.ask_as("c-2", "prompt", of("trip", json!({"message": "hunter2 again"})));
    assert_eq!(said["success"], true, "{said}");
    for id in ["c-1", "c-2"] {
        let kind = if id == "c-1" { "get_last_assistant_text" } else { "prompt" };
        let stolen = bob.ask_as(id, kind, of("trip", json!({"message": "hunter2 again"})));
        assert!(stolen["success"] == false && stolen["replayed"] != true, "{stolen}");
        assert!(!stolen.to_string().contains("password"), "{stolen}");
    }
    let again = alice.ask_as("c-2", "prompt", of("trip", json!({"message": "hunter2 again"})));
    assert_eq!(again["replayed"], true, "her own repeat is answered: {again}");
}

#[test]
fn what_happens_to_a_session_is_told_to_those_who_may_see_it() {
    let place = Place::new();
    let server = serve(&place, &people());
    let (mut alice, mut bob, mut eve) =
        (Socket::open(&server, "alice"), Socket::open(&server, "bob"), Socket::open(&server, "eve"));
    alice.succeed("create_session", of("secret-trip", json!({})));
    alice.succeed("create_session", of("open-trip", json!({})));
    alice.succeed("share_session", of("open-trip", json!({"principal": "bob", "access": "read"})));
    bob.succeed("switch_session", of("open-trip", json!({})));
    for session in ["secret-trip", "open-trip"] {
        alice.succeed("prompt", of(session, json!({"message": "my password is hunter2"})));
        alice.succeed("set_session_name", of(session, json!({"name": "named"})));
        alice.succeed("delete_session", of(session, json!({})));
    }
    // Their own commands come after everything that was told before.
    bob.succeed("health_check", json!({}));
    eve.succeed("health_check", json!({}));
    let (bob, eve) = (Value::Array(bob.heard).to_string(), Value::Array(eve.heard).to_string());
    assert!(
        bob.contains("open-trip") && bob.contains("hunter2"),
        "who follows a shared session hears it: {bob}"
    );
    assert!(!bob.contains("secret-trip"), "{bob}");
    assert!(!eve.contains("trip") && !eve.contains("hunter2"), "{eve}");
}
