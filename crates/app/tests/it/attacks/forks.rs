//! Attempts to get around approvals by forking executions that were approved.

use serde_json::{Value, json};

use super::actors::{expect, serve, token, workflow};
use crate::program::Place;
use crate::server::Server;

fn people() -> String {
    [
        token("alice", "acme", &["owner"]),
        token("olga", "acme", &["operator"]),
        token("ann", "acme", &["approver"]),
    ]
    .concat()
}

fn store(server: &Server, definition: Value) {
    expect(server, "alice", ("PUT", "/v1/workflows"), Some(json!({"workflow": definition})), 201);
}

/// The one open approval; a child asks for it some time after its parent has begun.
fn open_approval(server: &Server) -> Value {
    let look = |_| {
        let open = expect(server, "ann", ("GET", "/v1/approvals"), None, 200);
        open["approvals"].as_array().and_then(|open| open.first()).cloned()
    };
    (0..20_000).find_map(look).expect("no approval is requested")
}

fn approve(server: &Server) {
    let path = format!("/v1/approvals/{}", open_approval(server)["token"].as_str().unwrap());
    expect(server, "ann", ("POST", &path), Some(json!({"decision": "approve"})), 200);
}

fn shown(server: &Server, id: &Value, query: &str) -> Value {
    let path = format!("/v1/executions/{}{query}", id.as_str().unwrap());
    expect(server, "olga", ("GET", &path), None, 200)
}

/// Starts the stored workflow `pay` for an amount of 1, as olga, and lets ann approve it.
fn approved(server: &Server) -> String {
    let body = json!({"workflowId": "pay", "inputs": {"amount": 1}});
    let started = expect(server, "olga", ("POST", "/v1/workflows/execute"), Some(body), 202);
    approve(server);
    let ended = shown(server, &started["executionId"], "?wait=10s");
    assert_eq!(ended["status"], "completed", "{ended}");
    started["executionId"].as_str().unwrap().to_owned()
}

/// Forks from the step; the fork must wait for a new decision before the payment runs.
fn asks_again(server: &Server, id: &str, from: &str, body: Value) {
    let path = format!("/v1/executions/{id}/fork?fromStep={from}");
    let fork = expect(server, "olga", ("POST", &path), Some(body.clone()), 202);
    open_approval(server);
    let waiting = shown(server, &fork["executionId"], "");
    assert!(waiting["outputs"]["pay"].is_null(), "{from} {body}: {waiting}");
    approve(server);
    let ended = shown(server, &fork["executionId"], "?wait=10s");
    assert_eq!(ended["status"], "completed", "{ended}");
}

fn steps(review: Value) -> Value {
    json!([
        review,
        {"id": "pay", "agentId": "@orchestr8/echo", "dependsOn": ["review"], "input": {"message": "${variables.amount}"}},
        {"id": "other", "agentId": "@orchestr8/echo", "input": {"message": "not behind the approval"}}
    ])
}

fn pay(review: Value) -> Value {
    let mut definition = workflow("pay", steps(review));
    definition["variables"] = json!({"amount": 0});
    definition
}

#[test]
fn an_approval_decides_one_execution_and_not_its_forks() {
    let place = Place::new();
    let server = serve(&place, &people());
    store(&server, pay(json!({"id": "review", "approval": {"message": "Pay?", "excludeStarter": true}})));
    let id = approved(&server);
    for body in [json!({}), json!({"inputs": {"amount": 99}})] {
        asks_again(&server, &id, "pay", body);
    }
    // Nothing behind the approval runs again: the decision and the payment stay.
    let path = format!("/v1/executions/{id}/fork?fromStep=other");
    let fork = expect(&server, "olga", ("POST", &path), Some(json!({})), 202);
    let ended = shown(&server, &fork["executionId"], "?wait=10s");
    assert_eq!(
        (&ended["status"], &ended["outputs"]["review"]["by"]),
        (&json!("completed"), &json!("ann")),
        "{ended}"
    );
    // A fork of that fork runs the payment again, and so asks.
    asks_again(&server, fork["executionId"].as_str().unwrap(), "pay", json!({}));
}

#[test]
fn an_approval_inside_a_child_is_requested_again_too() {
    let place = Place::new();
    let server = serve(&place, &people());
    let ask = json!([{"id": "ok", "approval": {"message": "Pay?", "excludeStarter": true}}]);
    store(&server, workflow("inner", ask));
    store(&server, workflow("check", json!([{"id": "deep", "workflow": {"id": "inner"}}])));
    store(&server, pay(json!({"id": "review", "workflow": {"id": "check"}})));
    let id = approved(&server);
    for body in [json!({}), json!({"inputs": {"amount": 99}})] {
        asks_again(&server, &id, "pay", body);
    }
}
