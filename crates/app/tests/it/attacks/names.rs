//! Names that can be taken for those of others.

use serde_json::json;

use super::actors::{ask, execute, expect, serve, token, workflow};
use crate::program::Place;

#[test]
fn an_agent_is_not_named_like_another_one() {
    let place = Place::new();
    let config = [
        token("alice", "acme", &["owner"]),
        token("mallory", "acme", &["agent"]),
        token("eve", "rival", &["agent"]),
    ]
    .concat();
    let server = serve(&place, &config);
    let register = |who: &str, name: &str| {
        ask(&server, who, "POST", "/aacp/agents", Some(json!({"agentId": name}))).status
    };
    assert_eq!(register("alice", "builder"), 200);
    for (name, status) in [("Builder", 409), ("BUILDER", 409), ("builder ", 400), (" builder", 400)] {
        assert_eq!(register("mallory", name), status, "{name:?}");
    }
    assert_eq!(register("mallory", "builder-2"), 200);
    assert_eq!(register("alice", "builder"), 200, "its own name");
    assert_eq!(register("eve", "Builder"), 200, "another tenant");
}

#[test]
fn a_step_sends_under_no_name_of_the_server_or_of_another_workflow() {
    let place = Place::new();
    let server = serve(&place, &token("alice", "acme", &["owner"]));
    expect(&server, "alice", ("POST", "/aacp/agents"), Some(json!({"agentId": "builder"})), 200);
    let send = |from: &str| {
        let input = json!({"from": from, "to": "builder", "payload": 1});
        workflow("mine", json!([{"id": "s", "agentId": "@orchestr8/send", "input": input}]))
    };
    let by_tool = |from: &str| {
        let arguments =
            json!({"sourceAgentId": from, "targetAgentId": "builder", "messageType": "EVENT", "payload": 1});
        let input = json!({"tool": "aacp.send", "arguments": arguments});
        workflow("mine", json!([{"id": "s", "agentId": "@orchestr8/tool", "input": input}]))
    };
    for from in ["svc:orchestr8", "SVC:orchestr8", "workflow:pay", "Workflow:mine", "*"] {
        for definition in [send(from), by_tool(from)] {
            let path = ("POST", "/v1/workflows/execute?mode=sync");
            let failed = expect(&server, "alice", path, Some(json!({"workflow": definition})), 422);
            assert!(failed.to_string().contains("reserved"), "{from}: {failed}");
        }
    }
    for definition in [send("workflow:mine"), by_tool("workflow:mine"), send("alice")] {
        assert_eq!(execute(&server, "alice", json!({"workflow": definition}))["status"], "completed");
    }
}
