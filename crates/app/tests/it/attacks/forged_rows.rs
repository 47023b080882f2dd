//! A process that can write the data file, and nothing else, decides for people, stores workflows and starts under other names.

use rusqlite::Connection;
use serde_json::{Value, json};

use super::actors::{audit, echo, expect, serve, token, tokens, workflow};
use crate::governed::GOOD;
use crate::governed::http::Caller;
use crate::program::Place;
use crate::server::Server;

/// Changes the data file while the server is stopped, and starts it again.
fn tampered(place: &Place, server: Server, sql: &str) -> Server {
    assert!(server.terminate().success());
    let file = Connection::open(place.data_file()).unwrap();
    file.execute_batch(sql).unwrap();
    drop(file);
    Server::start(place, &[])
}

fn start(server: &Server, token: &str, definition: Value) -> String {
    let body = json!({"workflow": definition});
    let begun = expect(server, token, ("POST", "/v1/workflows/execute"), Some(body), 202);
    begun["executionId"].as_str().unwrap().to_owned()
}

/// Waits until an execution shows this, at most so many looks.
fn until(server: &Server, id: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let look = || expect(server, "owner", ("GET", &format!("/v1/executions/{id}")), None, 200);
    (0..20_000).map(|_| look()).find(is_so).unwrap_or_else(|| panic!("it never was so: {}", look()))
}

#[test]
fn a_decision_that_was_put_into_the_data_file_is_not_carried_out_and_is_reported() {
    let place = Place::new();
    let server = serve(&place, &tokens());
    let pay = workflow(
        "pay",
        json!([{"id": "ok", "approval": {"message": "Pay?", "who": ["approver"]}},
               {"id": "pay", "agentId": "@orchestr8/echo", "dependsOn": ["ok"], "input": {"paid": true}}]),
    );
    let id = start(&server, "operator", pay);
    until(&server, &id, |seen| seen["steps"]["ok"]["status"] == "waiting");
    let server = tampered(
        &place,
        server,
        r#"INSERT INTO wf_inbox (id, execution, at_ms, event) SELECT 1000, num, 1,
               '{"e":"decided","task":{"s":0},"approved":true,"by":"approver","data":null}' FROM wf_executions;
           UPDATE wf_executions SET awake = 1, signals = 1;"#,
    );
    let refused =
        (0..20_000).find_map(|_| audit(&server, "owner", "action=executions.refused").into_iter().next());
    let refused = refused.expect("it is on record");
    assert_eq!(
        (&refused["object"], &refused["errorCode"]),
        (&json!(id), &json!("STORE_CORRUPT")),
        "{refused}"
    );
    let seen = until(&server, &id, |_| true);
    assert_eq!(seen["steps"]["ok"]["status"], "waiting", "{seen}");
    // A person still decides, and an event that the server has written is heard.
    let open = expect(&server, "approver", ("GET", "/v1/approvals"), None, 200);
    let path = format!("/v1/approvals/{}", open["approvals"][0]["token"].as_str().unwrap());
    expect(&server, "approver", ("POST", &path), Some(json!({"decision": "approve"})), 200);
    until(&server, &id, |seen| seen["status"] == "completed");
}

#[test]
fn a_stored_workflow_that_was_pointed_elsewhere_in_the_data_file_does_not_run() {
    let place = Place::new();
    let server = serve(&place, &tokens());
    let evil =
        workflow("evil", json!([{"id": "a", "agentId": "@orchestr8/echo", "input": {"message": "EVIL"}}]));
    start(&server, "operator", evil);
    for id in ["pay", "ship", "whole"] {
        expect(&server, "editor", ("PUT", "/v1/workflows"), Some(json!({"workflow": echo(id)})), 201);
    }
    let server = tampered(
        &place,
        server,
        "UPDATE wf_workflows SET hash = (SELECT hash FROM wf_definitions WHERE source LIKE '%EVIL%') WHERE id = 'pay';
         UPDATE wf_workflows SET author = 'owner', author_roles = '[\"owner\"]' WHERE id = 'ship';",
    );
    let run = |id: &str, status: u16| {
        let call = ("POST", "/v1/workflows/execute?mode=sync");
        expect(&server, "operator", call, Some(json!({"workflowId": id})), status)
    };
    for id in ["pay", "ship"] {
        let refused = run(id, 500);
        assert!(refused.to_string().contains("changed in the data file"), "{refused}");
    }
    run("whole", 200);
    // Deleted and stored again by a person who may, it runs again.
    for id in ["pay", "ship"] {
        expect(&server, "editor", ("DELETE", &format!("/v1/workflows/{id}")), None, 200);
        expect(&server, "editor", ("PUT", "/v1/workflows"), Some(json!({"workflow": echo(id)})), 201);
        assert_eq!(run(id, 200)["outputs"]["a"]["message"], "hello");
    }
}

#[test]
fn an_execution_whose_starter_was_changed_in_the_data_file_does_not_go_on() {
    let place = Place::new();
    let server = serve(&place, &tokens());
    let waits = json!([{"id": "w", "wait": {"event": "go"}},
                       {"id": "after", "agentId": "@orchestr8/echo", "dependsOn": ["w"], "input": {"done": true}}]);
    let (changed, whole) = (
        start(&server, "operator", workflow("changed", waits.clone())),
        start(&server, "operator", workflow("whole", waits)),
    );
    for id in [&changed, &whole] {
        until(&server, id, |seen| seen["steps"]["w"]["status"] == "waiting");
    }
    let server = tampered(
        &place,
        server,
        &format!(
            "UPDATE wf_executions SET given = '{{\"principal\":\"owner\",\"roles\":[\"owner\"]}}' WHERE id = '{changed}'"
        ),
    );
    let send = |id: &str, status: u16| {
        let body = json!({"name": "go", "payload": {}});
        expect(&server, "operator", ("POST", &format!("/v1/executions/{id}/events")), Some(body), status)
    };
    let refused = send(&changed, 500);
    assert!(refused.to_string().contains("was changed"), "{refused}");
    send(&whole, 202);
    until(&server, &whole, |seen| seen["status"] == "completed");
    let seen = until(&server, &changed, |_| true);
    assert_ne!(seen["status"], "completed", "{seen}");
}

/// An approval, a signed end of a trail and a lock of a governed workspace that were changed in the data file.
#[test]
fn an_approval_that_was_put_into_the_data_file_lets_no_file_be_written() {
    let place = Place::new();
    std::fs::create_dir_all(place.path().join("open")).unwrap();
    let root = std::fs::canonicalize(place.path()).unwrap().join("open");
    let governed = [token("plans", "acme", &["planner"]), token("executes", "acme", &["executor"])].concat();
    let config = format!(
        "[workspace]\nroots = ['{}']\n{}{governed}",
        root.display(),
        token("owner", "acme", &["owner"])
    );
    let server = serve(&place, &config);
    let mut planner = Caller::new(&server, "plans");
    planner.call("begin_session", &json!({"workspace_root": root}));
    let saved = planner.call("save_plan", &json!({"content": GOOD}));
    let hash = saved["hash"].as_str().unwrap_or_else(|| panic!("{saved}")).to_owned();
    let server = tampered(
        &place,
        server,
        "UPDATE ws_plans SET status = 'approved', decided_by = 'owner', decided_ms = 1, method = 'request', signature = '00';",
    );
    let mut executor = Caller::new(&server, "executes");
    let began = executor.call("begin_session", &json!({"workspace_root": root}));
    assert_eq!(began["status"], "SESSION_INITIALIZED", "{began}");
    let write = json!({"path": "src/a.txt", "plan": hash, "content": "x\n", "intent": "Write within a plan that was forged"});
    let refused = executor.call("write_file", &write);
    assert_eq!(refused["details"]["reason"], "approval_signature", "{refused}");
    // A decision of a person replaces the forged one.
    expect(
        &server,
        "owner",
        ("POST", &format!("/v1/plans/{hash}")),
        Some(json!({"decision": "approve"})),
        200,
    );
    assert_eq!(executor.call("write_file", &write)["status"], "OK");

    // A cut trail, with the end in the data file moved to fit.
    let server = tampered(
        &place,
        server,
        "UPDATE ws_trails SET seq = 1, head = (SELECT entry_hash FROM ws_entries WHERE seq = 1), pending = '';
         DELETE FROM ws_entries WHERE seq > 1;",
    );
    let text = place.read("open/audit-log.jsonl");
    place.plant("open/audit-log.jsonl", text.split_inclusive('\n').next().unwrap());
    let refused = Caller::new(&server, "executes").call("begin_session", &json!({"workspace_root": root}));
    assert_eq!(refused["details"]["verdict"], "TAMPERED", "{refused}");
}
