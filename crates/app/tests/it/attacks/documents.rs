//! Attempts to get at documents that are for signed requests only (profile `external`) without a signature.

use serde_json::{Value, json};

use super::actors::{ask, expect, token, workflow};
use crate::program::Place;
use crate::server::Server;

const ID: &str = "0f9c2a52-5d0f-4f57-9c0f-0a1b2c3d4e5f";

/// A server of this profile with a document of acme that was written with a signature. Its owner is alice.
fn external(place: Place, more: &str) -> (Place, Server) {
    let said = place.run(&[
        "keys",
        "new",
        "--tenant",
        "acme",
        "--principal",
        "svc:a",
        "--role",
        "owner",
        "--out",
        "owner.key",
    ]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let tokens = token("alice", "acme", &["owner"]);
    let config =
        format!("{tokens}[sessions]\ncwd = '/tmp'\n[knowledge.security]\nprofile = 'external'\n{more}");
    place.write("orchestr8.toml", &config);
    let server = Server::start(&place, &[]);
    let place = place.with("ORCHESTR8_TOKEN", "alice");
    let mine = ["--server", &format!("http://{}", server.address), "--key", "owner.key"];
    let put = place.run_with(&[&["knowledge", "put", "/Secret", "-"], &mine[..]].concat(), "signed secret");
    assert_eq!(put.code, Some(0), "{put:?}");
    (place, server)
}

fn call(server: &Server, method: &str, params: Value) -> Value {
    let uri = params["uri"].as_str().map_or_else(String::new, |uri| format!("Mcp-Name: {uri}\r\n"));
    let more = format!("Authorization: Bearer alice\r\n{uri}");
    server.connect().modern(1, method, params, &more).unwrap().json()
}

fn knowledge(input: Value) -> Value {
    json!({"workflow": workflow("w", json!([{"id": "k", "agentId": "@orchestr8/knowledge", "input": input}]))})
}

/// Every way to the documents that asks for no signature, and what came back.
fn attempts(server: &Server) -> Vec<(&'static str, Value)> {
    let tool = |name: &str, arguments: Value| {
        call(server, "tools/call", json!({"name": name, "arguments": arguments}))
    };
    let run =
        |body: Value| ask(server, "alice", "POST", "/v1/workflows/execute?mode=sync", Some(body)).json();
    let step = json!([{"id": "t", "agentId": "@orchestr8/tool", "input": {"tool": "list_documents"}}]);
    let session = tool("start_session", json!({}))["result"]["structuredContent"]["sessionId"].clone();
    let prompt = json!({"sessionId": session, "message": "/tool list_documents"});
    tool("prompt_session", prompt);
    vec![
        ("list_documents", tool("list_documents", json!({}))),
        ("search_knowledge", tool("search_knowledge", json!({"query": "signed secret"}))),
        ("get_document", tool("get_document", json!({"document_id": ID}))),
        ("resource", call(server, "resources/read", json!({"uri": format!("knowledge://{ID}")}))),
        ("step list", run(knowledge(json!({"operation": "list"})))),
        ("step create", run(knowledge(json!({"operation": "create", "title": "by a step", "body": "x"})))),
        ("step tool", run(json!({"workflow": workflow("t", step)}))),
        ("session", tool("get_session", json!({"sessionId": session}))),
    ]
}

#[test]
fn documents_for_signed_requests_are_not_read_or_written_through_other_faces() {
    let (place, server) = external(Place::new(), "");
    for (way, answer) in attempts(&server) {
        let text = answer.to_string();
        assert!(text.contains("signed requests only"), "{way}: {answer}");
        assert!(!text.contains("Secret") && !text.contains("signed secret\\n"), "{way}: {answer}");
    }
    let server_at = format!("http://{}", server.address);
    let tree = place.run(&["knowledge", "tree", "--server", &server_at, "--key", "owner.key"]);
    assert_eq!(tree.out, "/\n└── Secret\n", "nothing was written: {tree:?}");
    assert_eq!(expect(&server, "alice", ("GET", "/documents"), None, 401)["error"]["code"], "UNAUTHORIZED");
}

#[test]
fn the_settings_name_the_faces_that_need_no_signature() {
    let (_place, server) = external(Place::new(), "allowUnsigned = ['workflows']\n");
    let ways = attempts(&server);
    let refused = |way: &str| {
        let answer = &ways.iter().find(|(name, _)| *name == way).unwrap().1;
        answer.to_string().contains("signed requests only")
    };
    for way in ["list_documents", "search_knowledge", "get_document", "resource"] {
        assert!(refused(way), "{way}");
    }
    for way in ["step list", "step create", "step tool", "session"] {
        assert!(!refused(way), "{way}: {ways:?}");
    }
}

#[test]
fn a_face_that_does_not_exist_cannot_be_excepted() {
    let place = Place::new();
    place.write("orchestr8.toml", "[knowledge.security]\nprofile = 'external'\nallowUnsigned = ['rest']\n");
    let started = place.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(started.code != Some(0) && started.err.contains("allowUnsigned"), "{started:?}");
}
