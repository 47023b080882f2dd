//! Governed by credential: the role of a bearer token is the role of its connections.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::program::Place;
use crate::server::{Http, Server};

fn config(place: &Place) -> String {
    let hash =
        |token: &str| Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let token = |name: &str, role: &str| {
        format!("[[auth.tokens]]\nname = '{name}'\nsha256 = '{}'\nroles = [{role}]\n", hash(name))
    };
    let root = std::fs::canonicalize(place.path()).unwrap().join("open");
    format!(
        "{}{}{}[workspace]\nroots = ['{}']\n",
        token("plans", "'planner'"),
        token("executes", "'executor'"),
        token("plain", ""),
        root.display()
    )
}

/// A connection over HTTP by a bearer token, past the handshake.
pub struct Caller {
    http: Http,
    token: String,
    session: String,
}

impl Caller {
    pub fn new(server: &Server, token: &str) -> Self {
        let mut caller = Self { http: server.connect(), token: token.to_owned(), session: String::new() };
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "it", "version": "1"}}});
        let answer = caller.post(&hello);
        let line = answer
            .0
            .lines()
            .find(|line| line.to_lowercase().starts_with("mcp-session-id:"))
            .unwrap()
            .to_owned();
        caller.session = format!("{line}\r\n");
        caller.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        caller
    }

    /// The head and the body of an answer.
    pub fn post(&mut self, message: &Value) -> (String, Value) {
        let more = format!("Authorization: Bearer {}\r\n{}", self.token, self.session);
        let answer = self.http.post(&more, &message.to_string()).unwrap();
        let body = answer
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .next_back()
            .unwrap_or(&answer.body);
        (answer.head.clone(), serde_json::from_str(body).unwrap_or_default())
    }

    fn call(&mut self, tool: &str, args: &Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": args}});
        let answer = self.post(&message).1;
        serde_json::from_str(
            answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")),
        )
        .unwrap()
    }
}

#[test]
fn the_role_of_the_token_is_the_role_of_the_connection() {
    let place = Place::new();
    place.write("open/a.txt", "hello\n");
    place.write("closed/a.txt", "secret\n");
    place.write("orchestr8.toml", &config(&place));
    let server = Server::start(&place, &["--ephemeral"]);
    let root = std::fs::canonicalize(place.path()).unwrap();

    let mut executor = Caller::new(&server, "executes");
    let refused = executor.call("begin_session", &json!({"workspace_root": root.join("closed")}));
    assert_eq!(refused["error_code"], "INSUFFICIENT_PERMISSIONS");
    let began = executor.call("begin_session", &json!({"workspace_root": root.join("open")}));
    assert_eq!(began["status"], "SESSION_INITIALIZED", "{began}");
    assert_eq!(executor.call("read_file", &json!({"path": "a.txt"}))["content"], "hello\n");
    let refused = executor.call("save_plan", &json!({"content": "x"}));
    assert_eq!(
        (&refused["error_code"], &refused["role"]),
        (&json!("UNAUTHORIZED_ACTION"), &json!("WINDSURF"))
    );

    // Another connection of the same token has a session of its own.
    let mut second = Caller::new(&server, "executes");
    assert_eq!(second.call("read_file", &json!({"path": "a.txt"}))["error_code"], "SESSION_NOT_INITIALIZED");

    let mut planner = Caller::new(&server, "plans");
    planner.call("begin_session", &json!({"workspace_root": root.join("open")}));
    let refused = planner.call("write_file", &json!({"path": "a.txt"}));
    assert_eq!(
        (&refused["error_code"], &refused["role"]),
        (&json!("UNAUTHORIZED_ACTION"), &json!("ANTIGRAVITY"))
    );

    let mut plain = Caller::new(&server, "plain");
    let refused = plain.call("begin_session", &json!({"workspace_root": root.join("open")}));
    assert_eq!((&refused["code"], &refused["role"]), (&json!("NOT_FOUND"), &Value::Null));
}

/// In the modern era every request stands for itself; what lasts is the credential.
#[test]
fn a_modern_client_keeps_its_session_by_its_credential() {
    let place = Place::new();
    place.write("open/a.txt", "hello\n");
    place.write("orchestr8.toml", &config(&place));
    let server = Server::start(&place, &["--ephemeral"]);
    let root = std::fs::canonicalize(place.path()).unwrap().join("open");
    let mut http = server.connect();
    let mut call = |tool: &str, args: Value| {
        let params = json!({"name": tool, "arguments": args});
        let answer =
            http.modern(1, "tools/call", params, "Authorization: Bearer executes\r\n").unwrap().json();
        serde_json::from_str::<Value>(answer["result"]["content"][0]["text"].as_str().unwrap()).unwrap()
    };
    assert_eq!(call("begin_session", json!({"workspace_root": root}))["status"], "SESSION_INITIALIZED");
    assert_eq!(call("read_file", json!({"path": "a.txt"}))["content"], "hello\n");
}

#[test]
fn a_token_that_plans_and_executes_is_refused() {
    let place = Place::new();
    let hash = "0".repeat(64);
    place.write(
        "orchestr8.toml",
        &format!("[[auth.tokens]]\nname = 'both'\nsha256 = '{hash}'\nroles = ['planner', 'executor']\n"),
    );
    let said = place.run(&["config", "check"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("auth.tokens[0].roles"), "{said:?}");
}
