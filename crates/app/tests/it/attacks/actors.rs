//! A server with two tenants and a token for every role, and callers with these tokens.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::program::Place;
use crate::server::{Answer, Server};

pub const ROLES: [&str; 8] =
    ["viewer", "agent", "operator", "editor", "approver", "worker", "admin", "owner"];

/// One `[[auth.tokens]]`: the token is its name.
pub fn token(name: &str, tenant: &str, roles: &[&str]) -> String {
    let hash: String = Sha256::digest(name).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("[[auth.tokens]]\nname = '{name}'\ntenant = '{tenant}'\nsha256 = '{hash}'\nroles = {roles:?}\n")
}

/// In `acme` a token for each role, named after it, and `plain` without a role; in `rival` the owner `eve`.
pub fn tokens() -> String {
    let of_roles = ROLES.iter().map(|role| token(role, "acme", &[role]));
    of_roles.chain([token("plain", "acme", &[]), token("eve", "rival", &["owner"])]).collect()
}

pub fn serve(place: &Place, config: &str) -> Server {
    place.write("orchestr8.toml", config);
    Server::start(place, &[])
}

/// A request of a token's bearer.
pub fn ask(server: &Server, token: &str, method: &str, path: &str, body: Option<Value>) -> Answer {
    let more = format!("Authorization: Bearer {token}\r\n");
    let body = body.map(|body| body.to_string());
    server.connect().request(method, path, &more, body.as_deref()).unwrap()
}

/// The same, which must be answered with this status.
pub fn expect(
    server: &Server,
    token: &str,
    (method, path): (&str, &str),
    body: Option<Value>,
    status: u16,
) -> Value {
    let answer = ask(server, token, method, path, body);
    assert_eq!(answer.status, status, "{token} {method} {path}: {answer:?}");
    serde_json::from_str(&answer.body).unwrap_or(Value::Null)
}

/// A workflow of these steps.
pub fn workflow(id: &str, steps: Value) -> Value {
    json!({"id": id, "version": "1.0.0", "name": id, "steps": steps})
}

pub fn echo(id: &str) -> Value {
    workflow(id, json!([{"id": "a", "agentId": "@orchestr8/echo", "input": {"message": "hello"}}]))
}

/// Executes a definition and waits for its end.
pub fn execute(server: &Server, token: &str, body: Value) -> Value {
    expect(server, token, ("POST", "/v1/workflows/execute?mode=sync"), Some(body), 200)
}

/// The entries of the audit chain, the newest first.
pub fn audit(server: &Server, token: &str, query: &str) -> Vec<Value> {
    let answer = expect(server, token, ("GET", &format!("/v1/audit?{query}")), None, 200);
    answer["entries"].as_array().cloned().unwrap_or_default()
}
