//! Attempts to gain rights through work of others: stored workflows, children, schedules and approvals.

use serde_json::{Value, json};

use super::actors::{ask, execute, expect, serve, token, workflow};
use crate::program::Place;
use crate::server::Server;

/// alice is an owner, ed edits, olga operates, vic views, ann approves.
fn people() -> String {
    [
        token("alice", "acme", &["owner"]),
        token("ed", "acme", &["editor"]),
        token("olga", "acme", &["operator"]),
        token("vic", "acme", &["viewer"]),
        token("ann", "acme", &["approver"]),
    ]
    .concat()
}

/// A workflow that adds a document, which an editor may, and calls a tool, which an editor may not.
fn powerful(id: &str) -> Value {
    workflow(
        id,
        json!([{"id": "t", "agentId": "@orchestr8/send", "input": {"to": "echo", "payload": {"by": id}}}]),
    )
}

/// Runs it, which must fail for want of a role, and gives the id of the execution.
fn fails_for_want_of_a_role(server: &Server, who: &str, body: Value) -> String {
    let path = "/v1/workflows/execute?mode=sync";
    let ended = expect(server, who, ("POST", path), Some(body), 422);
    assert_eq!(ended["error"]["code"], "FORBIDDEN", "{ended}");
    assert!(ended["error"]["message"].as_str().unwrap().contains("needs the role"), "{ended}");
    ended["error"]["details"]["executionId"].as_str().unwrap().to_owned()
}

#[test]
fn an_edited_workflow_runs_with_the_rights_that_its_editor_and_its_starter_share() {
    let place = Place::new();
    let server = serve(&place, &people());
    let put = |who: &str, definition: Value, status| {
        expect(&server, who, ("PUT", "/v1/workflows"), Some(json!({"workflow": definition})), status)
    };
    assert_eq!(
        ask(&server, "vic", "PUT", "/v1/workflows", Some(json!({"workflow": powerful("nightly")}))).status,
        403
    );
    put("alice", powerful("nightly"), 201);
    let body = || json!({"workflowId": "nightly"});
    assert_eq!(execute(&server, "alice", body())["status"], "completed");
    // ed may not send messages; nor does the workflow that he wrote, even if an owner starts it.
    let mut changed = powerful("nightly");
    changed["version"] = "1.0.1".into();
    changed["steps"][0]["input"]["payload"]["by"] = "ed".into();
    put("ed", changed, 201);
    let id = fails_for_want_of_a_role(&server, "alice", body());
    let shown = expect(&server, "vic", ("GET", &format!("/v1/executions/{id}")), None, 200);
    let names = (&shown["startedBy"], &shown["definedBy"], &shown["editedBy"]);
    assert_eq!(names, (&json!("alice"), &json!("alice"), &json!("ed")), "{shown}");
}

#[test]
fn a_stored_child_has_no_more_rights_than_its_author() {
    let place = Place::new();
    let server = serve(&place, &people());
    expect(&server, "ed", ("PUT", "/v1/workflows"), Some(json!({"workflow": powerful("child")})), 201);
    let parent = workflow("parent", json!([{"id": "c", "workflow": {"id": "child"}}]));
    fails_for_want_of_a_role(&server, "alice", json!({"workflow": parent}));
}

#[test]
fn a_schedule_pins_its_revision_and_has_the_rights_of_its_author() {
    let place = Place::new();
    let server = serve(&place, &people());
    expect(&server, "alice", ("PUT", "/v1/workflows"), Some(json!({"workflow": powerful("nightly")})), 201);
    let schedule = json!({"workflowId": "nightly", "cron": "0 3 * * *"});
    let applied = expect(&server, "alice", ("PUT", "/v1/schedules/sn"), Some(schedule), 200);
    assert_eq!((&applied["author"], &applied["revision"]), (&json!("alice"), &json!(1)), "{applied}");
    let mut changed = powerful("nightly");
    changed["version"] = "1.0.1".into();
    changed["steps"][0]["input"]["payload"]["by"] = "ed".into();
    expect(&server, "ed", ("PUT", "/v1/workflows"), Some(json!({"workflow": changed})), 201);
    let ended = trigger(&server, "olga");
    assert_eq!(ended["status"], "completed", "the revision of alice runs: {ended}");
    assert_eq!((&ended["startedBy"], &ended["scheduledBy"]), (&json!("olga"), &json!("alice")), "{ended}");
}

fn trigger(server: &Server, who: &str) -> Value {
    let started = expect(server, who, ("POST", "/v1/schedules/sn/trigger"), None, 202);
    let id = started["executionId"].as_str().unwrap();
    expect(server, who, ("GET", &format!("/v1/executions/{id}?wait=10s")), None, 200)
}

#[test]
fn a_schedule_ends_with_the_credentials_of_its_author() {
    let place = Place::new();
    let server = serve(&place, &people());
    expect(&server, "alice", ("PUT", "/v1/workflows"), Some(json!({"workflow": powerful("nightly")})), 201);
    let schedule = json!({"workflowId": "nightly", "cron": "0 3 * * *"});
    expect(&server, "alice", ("PUT", "/v1/schedules/sn"), Some(schedule), 200);
    assert!(server.terminate().success());
    let without_alice = people().replace(&token("alice", "acme", &["owner"]), "");
    let server = serve(&place, &without_alice);
    assert_eq!(ask(&server, "alice", "GET", "/v1/schedules", None).status, 401);
    let refused = expect(&server, "olga", ("POST", "/v1/schedules/sn/trigger"), None, 403);
    assert!(refused.to_string().contains("revoked"), "{refused}");
}

#[test]
fn an_approval_is_recorded_under_the_name_of_its_principal() {
    let place = Place::new();
    let server = serve(&place, &people());
    let pay = workflow("pay", json!([{"id": "ok", "approval": {"message": "Pay?", "excludeStarter": true}}]));
    let started =
        expect(&server, "alice", ("POST", "/v1/workflows/execute"), Some(json!({"workflow": pay})), 202);
    let id = started["executionId"].as_str().unwrap();
    let seen = expect(&server, "vic", ("GET", "/v1/approvals"), None, 200);
    assert!(seen["approvals"][0]["token"].is_null(), "a viewer must not get what decides: {seen}");
    let open = expect(&server, "ann", ("GET", "/v1/approvals"), None, 200);
    let path = format!("/v1/approvals/{}", open["approvals"][0]["token"].as_str().unwrap());
    let as_ceo = || Some(json!({"decision": "approve", "by": "the CEO"}));
    assert_eq!(ask(&server, "ann", "POST", &path, as_ceo()).status, 400, "by is not for the client to say");
    let approve = || Some(json!({"decision": "approve", "onBehalfOf": "the CEO"}));
    assert_eq!(ask(&server, "vic", "POST", &path, approve()).status, 403);
    assert_eq!(
        ask(&server, "alice", "POST", &path, approve()).status,
        403,
        "who started it must not decide it"
    );
    let link = server.connect().request("POST", &path, "", Some(&approve().unwrap().to_string())).unwrap();
    assert_eq!(
        link.status, 403,
        "the link alone does not decide an approval that excludes someone: {link:?}"
    );
    expect(&server, "ann", ("POST", &path), approve(), 200);
    let ended = expect(&server, "vic", ("GET", &format!("/v1/executions/{id}?wait=10s")), None, 200);
    let output = &ended["outputs"]["ok"];
    assert_eq!((&output["by"], &output["onBehalfOf"]), (&json!("ann"), &json!("the CEO")), "{ended}");
}

#[test]
fn a_link_decides_without_credentials_where_tokens_are_configured() {
    let place = Place::new();
    let server = serve(&place, &people());
    let ask_all = workflow("ask", json!([{"id": "ok", "approval": {"message": "Publish?"}}]));
    expect(&server, "alice", ("POST", "/v1/workflows/execute"), Some(json!({"workflow": ask_all})), 202);
    let open = expect(&server, "ann", ("GET", "/v1/approvals"), None, 200);
    let path = format!("/v1/approvals/{}", open["approvals"][0]["token"].as_str().unwrap());
    let page = server.connect().request("GET", &path, "Accept: text/html\r\n", None).unwrap();
    assert_eq!(page.status, 200, "{page:?}");
    assert!(page.body.contains("Publish?"), "{page:?}");
    let body = json!({"decision": "approve"}).to_string();
    assert_eq!(server.connect().request("POST", &path, "", Some(&body)).unwrap().status, 200);
    for (method, path) in [("GET", "/v1/approvals"), ("GET", "/v1/executions"), ("POST", "/v1/approvals")] {
        let body = (method == "POST").then_some(r#"{"token":"x","decision":"approve"}"#);
        let answer = server.connect().request(method, path, "", body).unwrap();
        assert_eq!(answer.status, 401, "{method} {path}: {answer:?}");
    }
}
