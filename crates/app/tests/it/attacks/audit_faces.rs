//! Entries of the audit trail for what faces and the server itself change without an action: keys, bus, artifacts, schedules, rekeying.

use rusqlite::Connection;
use serde_json::{Value, json};

use super::actors::{audit, echo, expect, serve, tokens};
use crate::bus::{letters, lost, publish};
use crate::program::Place;
use crate::server::Server;

const PUBLIC: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

/// The newest entry of an action, which must have come by HTTP from this principal.
fn entry(server: &Server, action: &str, principal: &str) -> Value {
    let entries = audit(server, "owner", &format!("action={action}"));
    let newest = entries.first().unwrap_or_else(|| panic!("no entry of {action}")).clone();
    assert_eq!((&newest["principal"], &newest["end"]), (&json!(principal), &json!("success")), "{newest}");
    newest
}

#[test]
fn keys_that_agents_sign_with_are_on_record() {
    let place = Place::new();
    let server = serve(&place, &tokens());
    let key = json!({"kid": "k1", "public": PUBLIC, "tenant_id": "acme", "principal": "svc:a", "roles": ["viewer"]});
    expect(&server, "owner", ("POST", "/admin/keys"), Some(key), 201);
    assert_eq!(entry(&server, "keys.add", "owner")["object"], "k1");
    let next = json!({"kid": "k2", "public": PUBLIC});
    expect(&server, "owner", ("POST", "/admin/keys/k1/rotate"), Some(next), 201);
    let rotated = entry(&server, "keys.rotate", "owner");
    assert_eq!((&rotated["object"], &rotated["detail"]["newKid"]), (&json!("k1"), &json!("k2")), "{rotated}");
    expect(&server, "owner", ("POST", "/admin/keys/k2/revoke"), Some(json!({})), 200);
    assert_eq!(entry(&server, "keys.revoke", "owner")["object"], "k2");
}

#[test]
fn artifacts_are_on_record() {
    let place = Place::new();
    let server = serve(&place, &tokens());
    expect(&server, "owner", ("POST", "/artifacts"), Some(json!({"an": "artifact"})), 201);
    let made = entry(&server, "artifacts.create", "owner");
    assert!(made["object"].is_string(), "{made}");
}

#[test]
fn messages_of_the_bus_are_on_record_when_they_come_and_when_they_are_given_up() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let url = format!("http://{}", server.address);
    let mut http = server.connect();
    assert_eq!(publish(&mut http, &lost(1)).unwrap(), 202);
    letters(&place, &["--server", url.as_str()], 1);
    assert!(server.terminate().success());
    // They belong to the tenant of the envelope, whom no one here speaks for.
    let file = Connection::open(place.data_file()).unwrap();
    for (action, result) in [("broker.publish", "success"), ("broker.give_up", "failure")] {
        let sql = "SELECT body FROM chain WHERE name = 'actions' AND json_extract(body, '$.action') = ?1";
        let body: String = file.query_row(sql, [action], |row| row.get(0)).unwrap();
        let body: Value = serde_json::from_str(&body).unwrap();
        assert!(body["object"].is_string() && body["result"] == result, "{action}: {body}");
    }
}

#[test]
fn a_start_that_a_schedule_skips_is_on_record() {
    let place = Place::new();
    let server = serve(&place, &tokens());
    expect(&server, "owner", ("PUT", "/v1/workflows"), Some(json!({"workflow": echo("w")})), 201);
    let schedule = json!({"workflowId": "w", "cron": "0 3 * * *"});
    expect(&server, "owner", ("PUT", "/v1/schedules/s"), Some(schedule), 200);
    assert!(server.terminate().success());
    let file = Connection::open(place.data_file()).unwrap();
    file.execute_batch("UPDATE wf_schedules SET next_ms = 1; DELETE FROM wf_workflows").unwrap();
    drop(file);
    let server = Server::start(&place, &[]);
    let found = (0..20_000).find_map(|_| audit(&server, "owner", "action=schedules.skip").into_iter().next());
    let found = found.unwrap();
    assert_eq!(
        (&found["object"], &found["principal"], &found["errorCode"]),
        (&json!("s"), &json!("server"), &json!("UNAVAILABLE")),
        "{found}"
    );
}

#[test]
fn another_key_for_the_secrets_is_on_record() {
    let place = Place::new();
    let said =
        place.run_with(&["secrets", "set", "S", "--to", "exec:sh:S", "--workflow", "w"], "0123456789abcdef");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(place.run(&["secrets", "rekey", "--yes"]).code, Some(0));
    let said = place.run(&["audit", "list", "--json", "--action", "secrets.rekey"]);
    let listed: Value = serde_json::from_str(&said.out).unwrap();
    let found = &listed["entries"][0];
    assert!(found["object"].is_string() && found["end"] == "success", "{listed}");
}
