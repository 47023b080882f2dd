//! Attacks of callers without the role: every REST operation of workflows against every role, and tools over MCP.

use serde_json::{Value, json};

use super::actors::{ROLES, ask, audit, echo, expect, serve, tokens};
use crate::program::Place;
use crate::server::Server;

/// An operation, and the roles that may use it besides the owner.
struct Operation {
    method: &'static str,
    path: &'static str,
    body: Option<Value>,
    roles: &'static [&'static str],
}

const READERS: &[&str] = &["viewer", "agent", "operator", "editor", "approver"];

fn operations() -> Vec<Operation> {
    let of = |method, path, body, roles| Operation { method, path, body, roles };
    vec![
        of("GET", "/v1/workflows", None, READERS),
        of("GET", "/v1/executions", None, READERS),
        of("GET", "/v1/executions/none", None, READERS),
        of("GET", "/v1/executions/none/journal", None, READERS),
        of("GET", "/v1/schedules", None, READERS),
        of("GET", "/v1/approvals", None, READERS),
        of("GET", "/v1/audit", None, &["admin"]),
        of("POST", "/v1/workflows/execute", Some(json!({"workflow": echo("w")})), &["operator"]),
        of("PUT", "/v1/workflows", Some(json!({"workflow": echo("w")})), &["editor"]),
        of("DELETE", "/v1/workflows/none", None, &["editor"]),
        of(
            "PUT",
            "/v1/schedules/none",
            Some(json!({"workflowId": "none", "cron": "0 3 * * *"})),
            &["editor"],
        ),
        of("DELETE", "/v1/schedules/none", None, &["editor"]),
        of("POST", "/v1/schedules/none/trigger", None, &["operator"]),
        of("POST", "/v1/schedules/none/pause", None, &["operator"]),
        of("POST", "/v1/executions/none/cancel", None, &["operator"]),
        of("POST", "/v1/executions/none/pause", None, &["operator"]),
        of("POST", "/v1/executions/none/resume", None, &["operator"]),
        of("POST", "/v1/executions/none/retry", None, &["operator"]),
        of("POST", "/v1/approvals", Some(json!({"token": "none", "decision": "approve"})), &["approver"]),
        of("POST", "/v1/workers/pay/poll", Some(json!({"workerId": "w"})), &["worker"]),
        of("POST", "/aacp/messages", Some(message("ann")), &["agent", "operator"]),
        of("GET", "/aacp/pairs", None, READERS),
        of("GET", "/documents", None, READERS),
        of("POST", "/documents", Some(json!({"title": "t", "content": {"body": "b"}})), &["agent", "editor"]),
    ]
}

fn message(source: &str) -> Value {
    json!({"messageType": "EVENT", "sourceAgentId": source, "targetAgentId": "echo", "payload": {"n": 1}})
}

fn is_forbidden(server: &Server, token: &str, operation: &Operation) -> bool {
    let answer = ask(server, token, operation.method, operation.path, operation.body.clone());
    assert_ne!(answer.status, 401, "{token} {} {}: {answer:?}", operation.method, operation.path);
    assert!(answer.status < 500, "{token} {} {}: {answer:?}", operation.method, operation.path);
    answer.status == 403
}

#[test]
fn every_operation_asks_for_its_role() {
    let place = Place::new();
    let server = serve(&place, &tokens());
    for operation in operations() {
        for role in ROLES {
            let allowed = role == "owner" || operation.roles.contains(&role);
            let what = format!("{role} {} {}", operation.method, operation.path);
            assert_eq!(is_forbidden(&server, role, &operation), !allowed, "{what}");
        }
        // A token without a role is a viewer.
        let reads = operation.roles.contains(&"viewer");
        assert_eq!(is_forbidden(&server, "plain", &operation), !reads, "plain {}", operation.path);
    }
}

#[test]
fn a_refusal_names_the_roles_and_is_in_the_audit_chain() {
    let place = Place::new();
    let server = serve(&place, &tokens());
    let refused = expect(
        &server,
        "viewer",
        ("POST", "/v1/workflows/execute"),
        Some(json!({"workflow": echo("w")})),
        403,
    );
    let text = refused.to_string();
    assert!(text.contains("operator") && text.contains("owner"), "{text}");
    let entries = audit(&server, "admin", "action=workflows.execute");
    let entry = &entries[0];
    assert_eq!(
        (&entry["principal"], &entry["end"], &entry["tenant"]),
        (&json!("viewer"), &json!("refused"), &json!("acme")),
        "{entry}"
    );
}

#[test]
fn the_start_of_an_execution_is_on_record_with_its_principal() {
    let place = Place::new();
    let server = serve(&place, &tokens());
    let body = json!({"workflow": echo("w")});
    let started = expect(&server, "operator", ("POST", "/v1/workflows/execute?mode=sync"), Some(body), 200);
    let id = started["executionId"].as_str().unwrap();
    let entries = audit(&server, "owner", "action=workflows.execute");
    assert_eq!(
        (&entries[0]["principal"], &entries[0]["object"]),
        (&json!("operator"), &json!(id)),
        "{entries:?}"
    );
    let shown = expect(&server, "viewer", ("GET", &format!("/v1/executions/{id}")), None, 200);
    assert_eq!(shown["startedBy"], "operator", "{shown}");
    let listed = expect(&server, "viewer", ("GET", "/v1/executions"), None, 200);
    assert_eq!(listed["executions"][0]["startedBy"], "operator", "{listed}");
    let journal = expect(&server, "viewer", ("GET", &format!("/v1/executions/{id}/journal")), None, 200);
    assert!(journal.to_string().contains(r#""startedBy":"operator""#), "{journal}");
}

#[test]
fn a_viewer_runs_no_workflow_over_mcp() {
    let place = Place::new();
    let server = serve(&place, &tokens());
    let call = |token: &str| {
        let params = json!({"name": "run_workflow", "arguments": {"workflow": echo("w")}});
        let more = format!("Authorization: Bearer {token}\r\n");
        server.connect().modern(1, "tools/call", params, &more).unwrap().body
    };
    let refused = call("viewer");
    assert!(refused.contains("NOT_FOUND") || refused.contains("UNAUTHORIZED"), "{refused}");
    let accepted = call("agent");
    assert!(accepted.contains("executionId"), "{accepted}");
}
