//! Attempts of tokens with a scope to have more done than it allows: by work that others start, go on with or take over.

use orchestr8_outbound::signature;
use serde_json::{Value, json};

use super::actors::{ask, expect, serve, token, workflow};
use super::sessions::{Socket, of};
use crate::program::Place;
use crate::server::Server;

/// alice is an owner of acme, olga operates there. Tokens with a scope are created by alice.
fn people() -> String {
    [
        token("alice", "acme", &["owner"]),
        token("olga", "acme", &["operator"]),
        "[sessions]\ncwd = '/tmp'\n".to_owned(),
    ]
    .concat()
}

/// The text and the id of a token that has the role of an owner and this scope.
fn create(server: &Server, name: &str, scope: &[&str], more: Value) -> (String, String) {
    let mut body = json!({"name": name, "roles": ["owner"], "scope": scope});
    body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    let made = expect(server, "alice", ("POST", "/v1/tokens"), Some(body), 201);
    (made["token"].as_str().unwrap().to_owned(), made["id"].as_str().unwrap().to_owned())
}

fn scoped(server: &Server, name: &str, scope: &[&str]) -> String {
    create(server, name, scope, json!({})).0
}

/// A workflow that sends a message, which is the action `aacp.send`.
fn sends(id: &str, version: &str) -> Value {
    let mut definition = workflow(id, json!([send_step()]));
    definition["version"] = version.into();
    definition
}

fn send_step() -> Value {
    json!({"id": "t", "agentId": "@orchestr8/send", "input": {"to": "echo", "payload": {}}})
}

/// The same behind an approval.
fn sends_later(id: &str) -> Value {
    let mut step = send_step();
    step["dependsOn"] = json!(["ok"]);
    workflow(id, json!([{"id": "ok", "approval": {"message": "Go on?"}}, step]))
}

fn store(server: &Server, who: &str, definition: Value) {
    expect(server, who, ("PUT", "/v1/workflows"), Some(json!({"workflow": definition})), 201);
}

/// Starts an execution and gives its id.
fn start(server: &Server, who: &str, body: Value) -> String {
    let started = expect(server, who, ("POST", "/v1/workflows/execute"), Some(body), 202);
    started["executionId"].as_str().unwrap().to_owned()
}

fn end_of(server: &Server, id: &str) -> Value {
    expect(server, "alice", ("GET", &format!("/v1/executions/{id}?wait=10s")), None, 200)
}

fn assert_completed(server: &Server, id: &str) {
    let ended = end_of(server, id);
    assert_eq!(ended["status"], "completed", "{ended}");
}

fn assert_refused(server: &Server, id: &str, reason: &str) {
    let ended = end_of(server, id);
    let error = &ended["errors"][0];
    let told = (&ended["status"], &error["code"], &error["details"]["reason"]);
    assert_eq!(told, (&json!("failed"), &json!("FORBIDDEN"), &json!(reason)), "{ended}");
}

fn approve(server: &Server) {
    let open = |_| {
        let open = expect(server, "alice", ("GET", "/v1/approvals"), None, 200);
        open["approvals"][0]["token"].as_str().map(str::to_owned)
    };
    let token = (0..20_000).find_map(open).expect("no approval is requested");
    let decision = json!({"decision": "approve"});
    expect(server, "alice", ("POST", &format!("/v1/approvals/{token}")), Some(decision), 200);
}

#[test]
fn a_stored_workflow_is_held_to_the_scopes_of_its_first_and_of_its_last_author() {
    let place = Place::new();
    let server = serve(&place, &people());
    let deploy = scoped(&server, "deploy", &["workflows.apply"]);
    let run = || start(&server, "alice", json!({"workflowId": "nightly"}));
    store(&server, "alice", sends("nightly", "1.0.0"));
    assert_completed(&server, &run());
    store(&server, &deploy, sends("nightly", "1.0.1"));
    assert_refused(&server, &run(), "scope");
    store(&server, "alice", sends("nightly", "1.0.2"));
    assert_completed(&server, &run());
    store(&server, &deploy, sends("weekly", "1.0.0"));
    store(&server, "alice", sends("weekly", "1.0.1"));
    assert_refused(&server, &start(&server, "alice", json!({"workflowId": "weekly"})), "scope");
}

#[test]
fn a_child_is_held_to_the_scope_of_its_author_and_to_that_of_its_parent() {
    let place = Place::new();
    let server = serve(&place, &people());
    let deploy = scoped(&server, "deploy", &["workflows.apply"]);
    store(&server, &deploy, sends("child", "1.0.0"));
    let parent = |id: &str, child: Value| workflow(id, json!([{"id": "c", "workflow": child}]));
    let id = start(&server, "alice", json!({"workflow": parent("outer", json!({"id": "child"}))}));
    assert_eq!(end_of(&server, &id)["status"], "failed");
    // An owner's child inside of a parent that was stored with a scope.
    store(&server, "alice", sends("free", "1.0.0"));
    store(&server, &deploy, parent("stored", json!({"id": "free"})));
    let id = start(&server, "alice", json!({"workflowId": "stored"}));
    assert_eq!(end_of(&server, &id)["status"], "failed");
    let inline = parent("inline", sends("inner", "1.0.0"));
    store(&server, &deploy, inline);
    let id = start(&server, "alice", json!({"workflowId": "inline"}));
    assert_eq!(end_of(&server, &id)["status"], "failed");
}

#[test]
fn a_scope_holds_after_a_crash_and_for_what_is_retried() {
    let place = Place::new();
    let server = serve(&place, &people());
    let deploy = scoped(&server, "deploy", &["workflows.apply"]);
    store(&server, &deploy, sends_later("later"));
    let id = start(&server, "alice", json!({"workflowId": "later"}));
    server.kill();
    let server = serve(&place, &people());
    approve(&server);
    assert_refused(&server, &id, "scope");
    expect(&server, "alice", ("POST", &format!("/v1/executions/{id}/retry")), None, 202);
    assert_refused(&server, &id, "scope");
    let many = json!({"workflowId": "later"});
    let retried = expect(&server, "alice", ("POST", "/v1/executions/retry"), Some(many), 202);
    assert_eq!(retried["retried"], json!([id]), "{retried}");
    assert_refused(&server, &id, "scope");
}

#[test]
fn a_schedule_is_held_to_the_scopes_of_its_author_and_of_the_caller() {
    let place = Place::new();
    let server = serve(&place, &people());
    let planner = scoped(&server, "planner", &["schedules.apply"]);
    let caller = scoped(&server, "caller", &["schedules.trigger"]);
    let deploy = scoped(&server, "deploy", &["workflows.apply"]);
    store(&server, "alice", sends("nightly", "1.0.0"));
    store(&server, &deploy, sends("deployed", "1.0.0"));
    let schedule = |who: &str, id: &str, workflow: &str| {
        let body = json!({"workflowId": workflow, "cron": "0 3 * * *"});
        expect(&server, who, ("PUT", &format!("/v1/schedules/{id}")), Some(body), 200);
    };
    let trigger = |who: &str, id: &str| {
        let started = expect(&server, who, ("POST", &format!("/v1/schedules/{id}/trigger")), None, 202);
        started["executionId"].as_str().unwrap().to_owned()
    };
    schedule("alice", "own", "nightly");
    assert_completed(&server, &trigger("alice", "own"));
    assert_refused(&server, &trigger(&caller, "own"), "scope");
    schedule(&planner, "planned", "nightly");
    assert_refused(&server, &trigger("alice", "planned"), "scope");
    schedule("alice", "of-deployed", "deployed");
    assert_refused(&server, &trigger("alice", "of-deployed"), "scope");
}

#[test]
fn a_trigger_is_held_to_the_scopes_of_its_author_and_of_the_author_of_the_workflow() {
    const SECRET: &str = "a secret of the sender";
    let place = Place::new();
    let server = serve(&place, &people());
    let planner = scoped(&server, "planner", &["triggers.apply"]);
    let deploy = scoped(&server, "deploy", &["workflows.apply"]);
    store(&server, "alice", sends("order", "1.0.0"));
    store(&server, &deploy, sends("deployed", "1.0.0"));
    let fire = |who: &str, id: &str, workflow: &str| {
        let body = json!({"workflowId": workflow, "webhook": {}, "secret": {"value": SECRET}});
        expect(&server, who, ("PUT", &format!("/v1/triggers/{id}")), Some(body), 200);
        let signed = format!("X-Hub-Signature-256: {}\r\n", signature(SECRET, "{}").unwrap());
        let path = format!("/v1/hooks/{id}.acme");
        let taken = server.connect().request("POST", &path, &signed, Some("{}")).unwrap();
        assert_eq!(taken.status, 202, "{taken:?}");
        taken.json()["executionId"].as_str().unwrap().to_owned()
    };
    assert_completed(&server, &fire("alice", "own", "order"));
    assert_refused(&server, &fire(&planner, "planned", "order"), "scope");
    assert_refused(&server, &fire("alice", "of-deployed", "deployed"), "scope");
}

#[test]
fn a_fork_has_no_rights_that_the_first_execution_did_not_have() {
    let place = Place::new();
    let server = serve(&place, &people());
    let runner = scoped(&server, "runner", &["workflows.execute"]);
    let fork = |who: &str, id: &str| {
        let path = format!("/v1/executions/{id}/fork?fromStep=t");
        let forked = expect(&server, who, ("POST", &path), Some(json!({})), 202);
        forked["executionId"].as_str().unwrap().to_owned()
    };
    // A definition of a scoped token, and of an operator, who may not delete documents.
    let delete = json!({"operation": "delete", "document_id": "none"});
    let delete = json!([{"id": "t", "agentId": "@orchestr8/knowledge", "input": delete}]);
    for (who, definition, reason) in
        [(&*runner, sends("inline", "1.0.0"), "scope"), ("olga", workflow("deletes", delete), "role_missing")]
    {
        let first = start(&server, who, json!({"workflow": definition}));
        assert_refused(&server, &first, reason);
        let forked = fork("alice", &first);
        assert_refused(&server, &forked, reason);
        assert_refused(&server, &fork("alice", &forked), reason);
    }
    // A scoped token takes over what an owner ran.
    let forker = scoped(&server, "forker", &["executions.fork"]);
    let own = start(&server, "alice", json!({"workflow": sends("inline", "1.0.0")}));
    assert_completed(&server, &own);
    assert_completed(&server, &fork("alice", &own));
    assert_refused(&server, &fork(&forker, &own), "scope");
}

#[test]
fn a_fork_ends_with_the_credentials_of_the_first_starter() {
    let place = Place::new();
    let server = serve(&place, &people());
    let (runner, id) = create(&server, "runner", &[], json!({}));
    let first = start(&server, &runner, json!({"workflow": sends("inline", "1.0.0")}));
    assert_completed(&server, &first);
    expect(&server, "alice", ("DELETE", &format!("/v1/tokens/{id}")), None, 200);
    let path = format!("/v1/executions/{first}/fork?fromStep=t");
    let forked = expect(&server, "alice", ("POST", &path), Some(json!({})), 202);
    assert_refused(&server, forked["executionId"].as_str().unwrap(), "principal_revoked");
}

#[test]
fn a_link_that_decides_an_approval_is_not_given_to_a_token_that_may_not_decide() {
    let place = Place::new();
    let server = serve(&place, &people());
    let reader = scoped(&server, "reader", &["executions.approvals"]);
    let decider = scoped(&server, "decider", &["executions.approvals", "executions.approve"]);
    let started = start(&server, "alice", json!({"workflow": sends_later("guarded")}));
    let open = |who: &str| {
        let seen = |_| {
            let open = expect(&server, who, ("GET", "/v1/approvals"), None, 200);
            open["approvals"].get(0).cloned()
        };
        (0..20_000).find_map(seen).expect("no approval is requested")
    };
    let (read, decided) = (open(&reader), open(&decider));
    assert_eq!((&read["token"], &read["url"]), (&Value::Null, &Value::Null), "{read}");
    let url = decided["url"].as_str().unwrap_or_else(|| panic!("{decided}"));
    assert_eq!(ask(&server, &reader, "POST", url, Some(json!({"decision": "approve"}))).status, 403);
    expect(&server, &decider, ("POST", url), Some(json!({"decision": "approve"})), 200);
    assert_completed(&server, &started);
}

/// The executions that a message to a session started.
fn started_by_message(server: &Server) -> usize {
    let list = expect(server, "alice", ("GET", "/v1/executions?workflowId=by-message"), None, 200);
    list["executions"].as_array().unwrap().len()
}

/// alice's session `trip`, which bob may write to.
fn shared_session(server: &Server) -> Socket {
    let mut alice = Socket::open(server, "alice");
    alice.succeed("create_session", of("trip", json!({})));
    alice.succeed("share_session", of("trip", json!({"principal": "bob", "access": "write"})));
    alice
}

fn start_by_tool() -> Value {
    let definition = json!({"workflow": sends("by-message", "1.0.0")});
    of("trip", json!({"message": format!("/tool run_workflow {definition}")}))
}

#[test]
fn a_queued_message_makes_no_tool_run_that_the_scope_of_its_sender_forbids() {
    let place = Place::new();
    let server = serve(&place, &people());
    let mut bob = Socket::open(&server, &scoped(&server, "bob", &["session.*"]));
    let mut alice = shared_session(&server);
    for kind in ["follow_up", "steer"] {
        bob.succeed(kind, start_by_tool());
        alice.succeed("prompt", of("trip", json!({"message": "hello"})));
        assert_eq!(started_by_message(&server), 0, "{kind}");
    }
    // The message of bob is gone with the turn: the next one has all rights of alice.
    alice.succeed("prompt", start_by_tool());
    assert_eq!(started_by_message(&server), 1);
}

#[test]
fn a_queued_message_makes_no_tool_run_once_the_token_of_its_sender_is_revoked() {
    let place = Place::new();
    let server = serve(&place, &people());
    let (bob, id) = create(&server, "bob", &[], json!({}));
    let mut alice = shared_session(&server);
    Socket::open(&server, &bob).succeed("follow_up", start_by_tool());
    expect(&server, "alice", ("DELETE", &format!("/v1/tokens/{id}")), None, 200);
    alice.succeed("prompt", of("trip", json!({"message": "hello"})));
    assert_eq!(started_by_message(&server), 0);
}

#[test]
fn what_a_scoped_session_starts_is_held_to_the_scope() {
    let place = Place::new();
    let server = serve(&place, &people());
    let talker = scoped(&server, "talker", &["session.*", "run_workflow"]);
    let mut session = Socket::open(&server, &talker);
    session.succeed("create_session", of("trip", json!({})));
    session.succeed("prompt", start_by_tool());
    let list = expect(&server, "alice", ("GET", "/v1/executions?workflowId=by-message"), None, 200);
    let id = list["executions"][0]["executionId"].as_str().unwrap_or_else(|| panic!("{list}"));
    assert_refused(&server, id, "scope");
}

#[test]
fn work_that_goes_on_is_held_to_the_scope_that_its_principals_have_now() {
    let place = Place::new();
    let server = serve(&place, &people());
    let (runner, runner_id) = create(&server, "runner", &[], json!({}));
    let (author, author_id) = create(&server, "author", &[], json!({}));
    let started = start(&server, &runner, json!({"workflow": sends_later("started")}));
    store(&server, &author, sends_later("stored"));
    let stored = start(&server, "alice", json!({"workflowId": "stored"}));
    for (name, id) in [("runner", &runner_id), ("author", &author_id)] {
        expect(&server, "alice", ("DELETE", &format!("/v1/tokens/{id}")), None, 200);
        create(&server, name, &["executions.*", "workflows.*"], json!({"reuseName": true}));
    }
    approve(&server);
    approve(&server);
    assert_refused(&server, &started, "scope");
    assert_refused(&server, &stored, "scope");
}

#[test]
fn scopes_that_share_no_face_leave_actions_that_both_allow() {
    let place = Place::new();
    let server = serve(&place, &people());
    let deploy = scoped(&server, "deploy", &["face:workflows", "workflows.apply", "aacp.*"]);
    let runner = scoped(&server, "runner", &["face:mcp", "run_workflow", "aacp.send"]);
    store(&server, &deploy, sends("nightly", "1.0.0"));
    let more = format!("Authorization: Bearer {runner}\r\n");
    let params = json!({"name": "run_workflow", "arguments": {"workflowId": "nightly"}});
    let said = server.connect().modern(1, "tools/call", params, &more).unwrap().json();
    assert_eq!(said["result"]["isError"], false, "{said}");
    let list = expect(&server, "alice", ("GET", "/v1/executions?workflowId=nightly"), None, 200);
    assert_completed(&server, list["executions"][0]["executionId"].as_str().unwrap());
    assert_eq!(ask(&server, &runner, "GET", "/v1/executions", None).status, 403);
}
