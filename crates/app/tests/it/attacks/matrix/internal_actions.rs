//! Internal actions, which answer for other calls or serve the program itself: over every face, by every name, for every caller,
//! they do not exist.

use serde_json::{Value, json};

use super::content::{envelope, workflow};
use super::coverage::INTERNAL;
use super::objects::{Objects, TENANT};
use super::reference::ROLES;
use super::wire::{Request, Verdict, Wire, post, tool};
use super::{reached, serve};
use crate::stdio::Client;

/// The action as a client may try to name it.
fn names(action: &str) -> Vec<String> {
    let bare = action.rsplit('.').next().unwrap_or(action);
    vec![action.to_owned(), bare.to_owned(), format!("workspace.{bare}"), format!("workspace.{action}")]
}

/// Every way by which a client names something to be run.
fn requests(objects: &Objects, name: &str) -> Vec<(String, Request)> {
    let envelope =
        envelope("owner", TENANT, &objects.uuid(), name, json!({"name": "write_file", "code": "NOT_FOUND"}));
    let input = json!({"tool": name, "arguments": {"name": "write_file"}});
    let step =
        json!({"id": "a", "agentId": "@orchestr8/tool", "input": input, "resilience": {"maxAttempts": 1}});
    let calling = workflow(&objects.fresh("calling"), json!([step]));
    vec![
        (format!("tools/call {name}"), tool(name, json!({"name": "write_file", "code": "PREFLIGHT_FAILED"}))),
        (
            format!("prompts/get {name}"),
            Request::Mcp { method: "prompts/get", params: json!({"name": name}) },
        ),
        (
            format!("resources/read {name}"),
            Request::Mcp { method: "resources/read", params: json!({"uri": format!("{name}://x")}) },
        ),
        (format!("command {name}"), Request::Command(json!({"type": name}))),
        (format!("envelope {name}"), post(format!("/mcp/actions/{name}"), envelope)),
        (format!("step {name}"), post("/v1/workflows/execute?mode=sync", json!({"workflow": calling}))),
    ]
}

#[test]
fn no_client_reaches_an_internal_action() {
    let (place, server) = serve();
    let objects = Objects::new(server.address);
    let internal: Vec<String> =
        reached(&place).into_iter().filter(|(_, way)| way == "internal").map(|(action, _)| action).collect();
    assert_eq!(
        internal,
        ["workspace.refused_call", "workspace.unknown_tool"],
        "`orchestr8 access` says which"
    );
    assert!(internal.iter().all(|action| INTERNAL.contains(&action.as_str())));
    let mut mistakes = Vec::new();
    for role in ROLES {
        let token = if role == "owner" { String::from("owner") } else { format!("{role}-0") };
        let mut wire = Wire::new(server.address, &token);
        for name in internal.iter().flat_map(|action| names(action)) {
            for (what, request) in requests(&objects, &name) {
                let reply = wire.ask(&request);
                let is_governed_answer = reply.text.contains("PREFLIGHT_FAILED");
                if reply.verdict == Verdict::Done || is_governed_answer {
                    mistakes.push(format!("{role} {what}: {:?} {}", reply.verdict, reply.text));
                }
            }
        }
    }
    assert!(mistakes.is_empty(), "{} mistakes:\n{}", mistakes.len(), mistakes.join("\n"));
}

#[test]
fn nor_over_stdio() {
    let (place, server) = serve();
    let internal = INTERNAL.into_iter().flat_map(names).collect::<Vec<_>>();
    assert!(server.terminate().success());
    for args in [
        &["--ephemeral"][..],
        &["--ephemeral", "--governed", "planner"],
        &["--ephemeral", "--governed", "executor"],
    ] {
        let mut client = Client::ready(&place, args);
        for (id, name) in (1..).zip(&internal) {
            let answer = client.call(id, name, json!({"name": "approve_plan", "code": "PREFLIGHT_FAILED"}));
            let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
            let error: Value = serde_json::from_str(text).unwrap_or_else(|_| panic!("{answer}"));
            assert_eq!(error["code"], "NOT_FOUND", "{args:?} {name}: {answer}");
        }
        client.end();
    }
}
