//! Attacks on sessions of other principals: a session belongs to the principal that started it.

use serde_json::{Value, json};

use super::actors::{serve, token};
use crate::program::Place;
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
