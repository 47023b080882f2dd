//! A process that can write the data file, and nothing else, makes or changes rows that grant rights.

use rusqlite::Connection;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::actors::workflow;
use super::tokens::{ask, create, served};
use crate::program::Place;
use crate::server::Server;

/// Changes the data file of a server that was stopped, and starts it again.
fn tampered(place: &Place, server: Server, sql: &str) -> Server {
    assert!(server.terminate().success());
    let file = Connection::open(place.data_file()).unwrap();
    file.execute_batch(sql).unwrap();
    drop(file);
    Server::start(place, &[])
}

fn entries(server: &Server, token: &str, action: &str) -> Vec<Value> {
    let page = ask(server, token, "GET", &format!("/v1/audit?action={action}"), None).json();
    page["entries"].as_array().cloned().unwrap_or_default()
}

#[test]
fn tokens_that_were_made_or_changed_in_the_data_file_grant_nothing() {
    let (place, server) = served(&[]);
    let role = |name: &str, role: &str| create(&place, &["--name", name, "--tenant", "acme", "--role", role]);
    let (owner, _) = role("olga", "owner");
    let (viewer, viewer_id) = role("vic", "viewer");
    let (gone, gone_id) = role("gone", "owner");
    let (rotated, rotated_id) = role("rot", "viewer");
    assert_eq!(place.run(&["tokens", "revoke", &gone_id, "--yes"]).code, Some(0));
    let fresh = place.run(&["tokens", "rotate", &rotated_id, "--grace", "0", "--quiet"]).out;
    let (forged, forged_id) = create(&Place::new(), &["--name", "forged", "--role", "owner"]);
    let hash: String = Sha256::digest(&forged).iter().map(|byte| format!("{byte:02x}")).collect();
    let sql = format!(
        "UPDATE api_tokens SET roles = '[\"owner\"]' WHERE id = '{viewer_id}';
         UPDATE api_tokens SET revoked_ms = NULL WHERE id = '{gone_id}';
         INSERT INTO api_tokens (id, tenant, name, roles, scope, sha256, created_ms, created_by)
             VALUES ('{forged_id}', 'acme', 'forged', '[\"owner\"]', '[]', '{hash}', 1, 'local');"
    );
    let server = tampered(&place, server, &sql);
    for (what, token) in [("changed", &viewer), ("revived", &gone), ("forged", &forged), ("old", &rotated)] {
        assert_eq!(ask(&server, token, "GET", "/v1/executions", None).status, 401, "{what}");
    }
    for (what, token) in [("untouched", owner.as_str()), ("rotated", fresh.trim())] {
        assert_eq!(ask(&server, token, "GET", "/v1/executions", None).status, 200, "{what}");
    }
    let refused = entries(&server, &owner, "tokens.refused");
    let names: Vec<&str> = refused.iter().filter_map(|entry| entry["principal"].as_str()).collect();
    assert!(
        names.len() == 3 && ["vic", "gone", "forged"].iter().all(|name| names.contains(name)),
        "{refused:?}"
    );
}

#[test]
fn schedules_and_approvals_that_were_changed_in_the_data_file_do_nothing() {
    let (place, server) = served(&[]);
    let (owner, _) = create(&place, &["--name", "olga", "--tenant", "acme", "--role", "owner"]);
    let (approver, _) = create(&place, &["--name", "ann", "--tenant", "acme", "--role", "approver"]);
    let send = |server: &Server, method: &str, path: &str, body: Value, status: u16| {
        let answer = ask(server, &owner, method, path, Some(body));
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        answer.json()
    };
    let mut echo =
        workflow("w", json!([{"id": "a", "agentId": "@orchestr8/echo", "input": {"m": "{{inputs.m}}"}}]));
    echo["inputs"] = json!({"type": "object", "properties": {"m": {"type": "string"}}});
    send(&server, "PUT", "/v1/workflows", json!({"workflow": echo}), 201);
    for id in ["changed", "resumed", "intact"] {
        let schedule =
            json!({"workflowId": "w", "cron": "0 3 * * *", "inputs": {"m": "x"}, "paused": id == "resumed"});
        send(&server, "PUT", &format!("/v1/schedules/{id}"), schedule, 200);
    }
    let pay = workflow("pay", json!([{"id": "ok", "approval": {"message": "Pay?", "who": ["the-cfo"]}}]));
    send(&server, "POST", "/v1/workflows/execute", json!({"workflow": pay}), 202);
    let server = tampered(
        &place,
        server,
        "UPDATE wf_schedules SET spec = replace(spec, '\"m\":\"x\"', '\"m\":\"evil\"') WHERE id = 'changed';
         UPDATE wf_schedules SET paused = 0, next_ms = 1 WHERE id = 'resumed';
         UPDATE wf_approvals SET ask = replace(ask, '[\"the-cfo\"]', '[]');",
    );
    let refused = send(&server, "POST", "/v1/schedules/changed/trigger", json!({}), 500);
    assert!(refused.to_string().contains("data file"), "{refused}");
    assert_eq!(ask(&server, &owner, "POST", "/v1/schedules/intact/trigger", None).status, 202);
    let paused =
        (0..20_000).find_map(|_| entries(&server, &owner, "schedules.pause").into_iter().next()).unwrap();
    assert_eq!(
        (&paused["object"], &paused["detail"]["reason"]),
        (&json!("resumed"), &json!("row_seal")),
        "{paused}"
    );
    let shown = ask(&server, &owner, "GET", "/v1/schedules?limit=10", None).json();
    let resumed =
        shown["schedules"].as_array().unwrap().iter().find(|found| found["id"] == "resumed").unwrap();
    assert!(resumed["lastAt"].is_null(), "it started nothing: {resumed}");
    let open = ask(&server, &approver, "GET", "/v1/approvals", None).json();
    let path = format!("/v1/approvals/{}", open["approvals"][0]["token"].as_str().unwrap());
    let decided = ask(&server, &approver, "POST", &path, Some(json!({"decision": "approve"})));
    assert_eq!(decided.status, 500, "{decided:?}");
    // They can be deleted and stored again.
    assert_eq!(ask(&server, &owner, "DELETE", "/v1/schedules/changed", None).status, 200);
}

#[test]
fn an_audit_entry_that_was_changed_is_marked_and_reported_at_the_start() {
    let (place, server) = served(&[]);
    let (owner, _) = create(&place, &["--name", "olga", "--role", "owner"]);
    assert!(server.terminate().success());
    let file = Connection::open(place.data_file()).unwrap();
    let sql = "UPDATE chain SET body = replace(body, '\"principal\":\"local\"', '\"principal\":\"mallory\"')
        WHERE name = 'actions' AND body LIKE '%tokens.create%'";
    assert_eq!(file.execute(sql, []).unwrap(), 1);
    drop(file);
    let log = place.path().join("serve.log");
    let mut command = place.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.stderr(std::fs::File::create(&log).unwrap());
    let server = Server::logging(command);
    let shown = entries(&server, &owner, "tokens.create");
    assert_eq!(
        (&shown[0]["principal"], &shown[0]["intact"]),
        (&json!("mallory"), &json!(false)),
        "{shown:?}"
    );
    let url = format!("http://{}", server.address);
    let said = place.run(&["audit", "list", "--action", "tokens.create", "--server", &url]);
    assert!(said.out.contains("CHANGED"), "{said:?}");
    let told = (0..20_000).any(|_| {
        server.connect().get("/healthz");
        std::fs::read_to_string(&log).unwrap().contains("the audit trail was changed")
    });
    assert!(told, "{}", std::fs::read_to_string(&log).unwrap());
    let fresh = ask(&server, &owner, "POST", "/v1/tokens", Some(json!({"name": "x"})));
    assert_eq!(fresh.status, 201);
    assert_eq!(entries(&server, &owner, "tokens.create")[0]["intact"], true);
}
