//! Tools that an admin registers while the server runs belong to the tenant, and deceive neither models nor people.

use serde_json::{Value, json};

use super::actors::{serve, token};
use crate::program::Place;
use crate::server::Server;

fn served(place: &Place) -> Server {
    let config = [
        &token("alice", "acme", &["owner"]),
        &token("eve", "rival", &["owner"]),
        "[tools]\nadminRegistrationEnabled = true\n[tools.adminPolicy]\nmode = 'token'\ntokenEnvVar = 'O8_ADMIN'\n",
        "[security]\ndynamicRegistrationEnabled = true\n[sessions]\ncwd = '/tmp'\n",
    ]
    .concat();
    serve(place, &config)
}

fn ask(server: &Server, who: &str, method: &str, params: Value) -> Value {
    let more = format!("Authorization: Bearer {who}\r\nX-Admin-Token: adm1n\r\n");
    server.connect().modern(1, method, params, &more).unwrap().json()["result"].clone()
}

fn call(server: &Server, who: &str, name: &str, arguments: Value) -> Value {
    ask(server, who, "tools/call", json!({"name": name, "arguments": arguments}))
}

fn register(server: &Server, who: &str, name: &str, description: &str) -> Value {
    let args = json!({"name": name, "description": description, "toolType": "echo"});
    call(server, who, "admin.registerTool", args)
}

fn listed(server: &Server, who: &str) -> String {
    ask(server, who, "tools/list", json!({})).to_string()
}

#[test]
fn a_tool_of_one_tenant_is_not_there_for_another() {
    let place = Place::new().with("O8_ADMIN", "adm1n");
    let server = served(&place);
    assert_eq!(register(&server, "eve", "pay.out", "by eve")["isError"], false);
    assert!(listed(&server, "eve").contains("pay.out"));
    assert_eq!(call(&server, "eve", "pay.out", json!({"message": "m"}))["isError"], false);
    assert!(!listed(&server, "alice").contains("pay.out"), "{}", listed(&server, "alice"));
    let called = call(&server, "alice", "pay.out", json!({"message": "m"}));
    assert!(called["isError"] == true && called.to_string().contains("NOT_FOUND"), "{called}");
    let search = call(&server, "alice", "tool_search", json!({"query": "pay"}));
    assert!(!search.to_string().contains("pay.out"), "{search}");
    let removed = call(&server, "alice", "admin.unregisterTool", json!({"name": "pay.out"}));
    assert_eq!(removed["isError"], true, "{removed}");
    // The name is free for acme, and its tool is another one.
    assert_eq!(register(&server, "alice", "pay.out", "by alice")["isError"], false);
    assert!(listed(&server, "alice").contains("by alice") && listed(&server, "eve").contains("by eve"));
    let session =
        call(&server, "alice", "start_session", json!({}))["structuredContent"]["sessionId"].clone();
    assert_eq!(register(&server, "eve", "only.eve", "x")["isError"], false);
    let prompt = json!({"sessionId": session, "message": "/tool only.eve {\"message\":\"m\"}"});
    call(&server, "alice", "prompt_session", prompt);
    let told = call(&server, "alice", "get_session", json!({"sessionId": session})).to_string();
    assert!(told.contains("There is no tool named"), "{told}");
    assert_eq!(call(&server, "eve", "admin.unregisterTool", json!({"name": "pay.out"}))["isError"], false);
    assert_eq!(call(&server, "alice", "pay.out", json!({"message": "m"}))["isError"], false);
}

#[test]
fn names_that_can_be_taken_for_others_and_hidden_characters_are_refused() {
    let place = Place::new().with("O8_ADMIN", "adm1n");
    let server = served(&place);
    assert_eq!(register(&server, "eve", "my.tool", "x")["isError"], false);
    let names = [
        "Echo",
        "ECHO",
        "e-cho",
        "run-workflow",
        "RunWorkflow",
        "agent.sendmessage",
        "agent-list",
        "ech0",
        "my_tool",
        "MY.TOOL",
        ".",
        "..",
        "-",
        "_-.",
        "health.",
    ];
    for name in names {
        let refused = register(&server, "eve", name, "x");
        assert_eq!(refused["isError"], true, "{name}: {refused}");
    }
    for description in ["\u{1b}[2Jx", "a\0b", "a\u{202e}b", "a\u{200b}b", "a\u{9b}b", "a\u{e0041}b"] {
        let refused = register(&server, "eve", "other.tool", description);
        assert_eq!(refused["isError"], true, "{description:?}: {refused}");
    }
    assert_eq!(register(&server, "eve", "other.tool", "Zählt\nzwei Zeilen 👩‍🚀")["isError"], false);
}
