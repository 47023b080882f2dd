//! Hostile senders of deliveries to webhook triggers, and triggers of principals that are gone.

use orchestr8_outbound::{signature, timed_signature};
use rusqlite::Connection;
use serde_json::{Value, json};

use super::actors::{ask, expect, serve, token, workflow};
use crate::program::Place;
use crate::server::{Answer, Server};

const SECRET: &str = "a secret of the sender";

/// alice is an owner of acme, olga operates there; eve is an owner of another tenant.
fn people() -> String {
    [
        token("alice", "acme", &["owner"]),
        token("olga", "acme", &["operator"]),
        token("eve", "rival", &["owner"]),
    ]
    .concat()
}

/// A trigger `orders` of acme, with the secret of its sender.
fn prepare(server: &Server) {
    let steps = json!([{"id": "t", "agentId": "@orchestr8/send", "input": {"to": "echo", "payload": {"id": "${variables.id}"}}}]);
    let mut order = workflow("order", steps);
    order["variables"] = json!({"id": null});
    expect(server, "alice", ("PUT", "/v1/workflows"), Some(json!({"workflow": order})), 201);
    let trigger = json!({"workflowId": "order", "webhook": {}, "secret": {"value": SECRET}});
    let shown = expect(server, "alice", ("PUT", "/v1/triggers/orders"), Some(trigger), 200);
    assert_eq!(shown["url"], "/v1/hooks/orders.acme", "{shown}");
    assert!(!shown.to_string().contains(SECRET));
}

/// Sends without a token.
fn send(server: &Server, path: &str, headers: &str, body: &str) -> Answer {
    server.connect().request("POST", path, headers, Some(body)).unwrap()
}

fn signed(body: &str) -> String {
    format!("X-Hub-Signature-256: {}\r\n", signature(SECRET, body).unwrap())
}

/// What does not say which request it answers.
fn said(answer: &Answer) -> (u16, Value) {
    let mut body = answer.json();
    body["correlationId"] = Value::Null;
    body["timestamp"] = Value::Null;
    (answer.status, body)
}

fn entries(server: &Server, action: &str) -> Vec<Value> {
    let page = expect(server, "alice", ("GET", &format!("/v1/audit?action={action}")), None, 200);
    page["entries"].as_array().unwrap().clone()
}

#[test]
fn only_the_signature_opens_a_trigger_and_nothing_tells_whether_it_exists() {
    let place = Place::new();
    let server = serve(&place, &people());
    prepare(&server);
    let body = r#"{"id":1}"#;
    let unknown = said(&send(&server, "/v1/hooks/none.acme", &signed(body), body));
    assert_eq!(unknown.0, 401, "{unknown:?}");
    #[allow(clippy::disallowed_methods, reason = "a sender signs the time of its own clock")]
    let now_ms = i64::try_from(
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis(),
    )
    .unwrap();
    let timed =
        |at_ms| format!("X-Orchestr8-Signature-V1: {}\r\n", timed_signature(SECRET, body, at_ms).unwrap());
    let bearer = "Authorization: Bearer alice\r\n";
    for (what, path, headers) in [
        ("no signature", "/v1/hooks/orders.acme", String::new()),
        ("a token instead", "/v1/hooks/orders.acme", bearer.to_owned()),
        ("another body", "/v1/hooks/orders.acme", signed("{}")),
        ("an old signature", "/v1/hooks/orders.acme", timed(now_ms - 400_000)),
        ("no tenant", "/v1/hooks/orders", signed(body)),
        ("another tenant", "/v1/hooks/orders.rival", signed(body)),
        ("no name", "/v1/hooks/.acme", signed(body)),
        ("no tenant's name", "/v1/hooks/orders.a%20b", signed(body)),
        ("the other prefix", "/api/v1/hooks/orders.acme", signed("{}")),
    ] {
        assert_eq!(said(&send(&server, path, &headers, body)), unknown, "{what}");
    }
    let first = send(&server, "/v1/hooks/orders.acme", &timed(now_ms), body);
    assert_eq!(first.status, 202, "{first:?}");
    let recorded = format!("{}X-GitHub-Delivery: new\r\n", timed(now_ms));
    let replayed = send(&server, "/v1/hooks/orders.acme", &recorded, body);
    assert_eq!((replayed.status, &replayed.json()["duplicate"]), (200, &json!(true)), "{replayed:?}");
    let huge = format!("\"{}\"", "x".repeat(300_000));
    assert_eq!(send(&server, "/v1/hooks/orders.acme", &signed(&huge), &huge).status, 413);
    assert_eq!(send(&server, "/v1/hooks/none.acme", &signed(&huge), &huge).status, 413);
    let id = first.json()["executionId"].as_str().unwrap().to_owned();
    let ended = expect(&server, "alice", ("GET", &format!("/v1/executions/{id}?wait=10s")), None, 200);
    let names = (&ended["status"], &ended["startedBy"], &ended["triggeredBy"]);
    assert_eq!(names, (&json!("completed"), &json!("alice"), &json!("alice")), "{ended}");
    let fired = entries(&server, "triggers.fire");
    assert_eq!((fired.len(), &fired[0]["principal"], &fired[0]["object"]), (1, &json!("alice"), &json!(id)));
    assert!(!ask(&server, "eve", "GET", "/v1/triggers", None).body.contains("orders"));
    assert_eq!(ask(&server, "eve", "GET", "/v1/triggers/orders", None).status, 404);
    assert_eq!(
        ask(&server, "olga", "PUT", "/v1/triggers/x", Some(json!({"workflowId": "order", "webhook": {}})))
            .status,
        403
    );
}

#[test]
fn wrong_signatures_are_limited_and_recorded_and_right_ones_pass_all_the_same() {
    let place = Place::new();
    let server = serve(&place, &people());
    prepare(&server);
    let statuses: Vec<u16> = (0..200)
        .map(|number| {
            send(&server, "/v1/hooks/orders.acme", &signed("{}"), &format!("{{\"id\":{number}}}")).status
        })
        .collect();
    assert!(statuses.contains(&429), "{statuses:?}");
    assert!(statuses.iter().all(|status| matches!(status, 401 | 429)), "{statuses:?}");
    let body = r#"{"id":1}"#;
    assert_eq!(send(&server, "/v1/hooks/orders.acme", &signed(body), body).status, 202);
}

#[test]
fn a_trigger_ends_with_the_credentials_of_its_author_and_with_a_change_of_its_row() {
    let place = Place::new();
    let server = serve(&place, &people());
    prepare(&server);
    assert!(server.terminate().success());
    let without_alice = format!(
        "{}{}",
        people().replace(&token("alice", "acme", &["owner"]), ""),
        token("otto", "acme", &["owner"])
    );
    let server = serve(&place, &without_alice);
    let body = r#"{"id":1}"#;
    let refused = send(&server, "/v1/hooks/orders.acme", &signed(body), body);
    assert_eq!(refused.status, 409, "{refused:?}");
    let shown = expect(&server, "otto", ("GET", "/v1/triggers/orders"), None, 200);
    assert_eq!(
        (&shown["pauseReason"], &shown["started"]),
        (&json!("principal_revoked"), &json!(0)),
        "{shown}"
    );
    let page = expect(&server, "otto", ("GET", "/v1/audit?action=triggers.pause"), None, 200);
    assert_eq!(page["entries"][0]["detail"]["reason"], "principal_revoked", "{page}");
    // Another author takes it over; the sender keeps its secret.
    let trigger = json!({"workflowId": "order", "webhook": {}});
    let taken = expect(&server, "otto", ("PUT", "/v1/triggers/orders"), Some(trigger), 200);
    assert!(taken["secret"].is_null() && taken["author"] == "otto", "{taken}");
    assert!(server.terminate().success());
    let file = Connection::open(place.data_file()).unwrap();
    file.execute_batch("UPDATE wf_triggers SET spec = replace(spec, '\"otto\"', '\"alice\"')").unwrap();
    drop(file);
    let server = serve(&place, &without_alice);
    assert_eq!(send(&server, "/v1/hooks/orders.acme", &signed(body), body).status, 409);
    let page = expect(&server, "otto", ("GET", "/v1/audit?action=triggers.pause"), None, 200);
    assert_eq!(page["entries"][0]["detail"]["reason"], "row_seal", "{page}");
}

#[test]
fn what_was_acknowledged_before_the_process_was_killed_starts_once() {
    let place = Place::new();
    let server = serve(&place, &people());
    prepare(&server);
    let bodies: Vec<String> = (0..20).map(|number| format!("{{\"id\":{number}}}")).collect();
    let path = "/v1/hooks/orders.acme";
    for body in &bodies {
        assert_eq!(send(&server, path, &signed(body), body).status, 202);
    }
    server.kill();
    let server = serve(&place, &people());
    for body in &bodies {
        let again = send(&server, path, &signed(body), body);
        assert_eq!((again.status, &again.json()["duplicate"]), (200, &json!(true)), "{again:?}");
        let id = again.json()["executionId"].as_str().unwrap().to_owned();
        let ended = expect(&server, "alice", ("GET", &format!("/v1/executions/{id}?wait=20s")), None, 200);
        assert_eq!(ended["status"], "completed", "{ended}");
    }
    let shown = expect(&server, "alice", ("GET", "/v1/triggers/orders"), None, 200);
    assert_eq!((&shown["started"], &shown["deliveries"]), (&json!(20), &json!(40)), "{shown}");
}

#[test]
fn an_event_for_a_key_does_not_reach_another_tenant() {
    let place = Place::new();
    let server = serve(&place, &people());
    let wait = workflow("wait", json!([{"id": "paid", "wait": {"event": "paid", "key": "order-1"}}]));
    let started =
        expect(&server, "alice", ("POST", "/v1/workflows/execute"), Some(json!({"workflow": wait})), 202);
    let path = format!("/v1/executions/{}", started["executionId"].as_str().unwrap());
    let waits = |shown: &Value| shown["steps"]["paid"]["status"] == "waiting";
    while !waits(&expect(&server, "alice", ("GET", &path), None, 200)) {}
    let event = json!({"name": "paid", "key": "order-1", "payload": "forged", "id": "p-1"});
    let sent = expect(&server, "eve", ("POST", "/v1/events"), Some(event.clone()), 202);
    assert_eq!((&sent["executions"], &sent["kept"]), (&json!([]), &json!(true)), "{sent}");
    assert!(waits(&expect(&server, "alice", ("GET", &path), None, 200)));
    // Neither is the id of another tenant's event taken.
    let mut own = event;
    own["payload"] = json!("real");
    let sent = expect(&server, "olga", ("POST", "/v1/events"), Some(own), 202);
    assert_eq!(
        (&sent["executions"], &sent["duplicate"]),
        (&json!([started["executionId"]]), &json!(false)),
        "{sent}"
    );
    let ended = expect(&server, "alice", ("GET", &format!("{path}?wait=10s")), None, 200);
    assert_eq!(ended["outputs"]["paid"]["payload"], "real", "{ended}");
}

#[test]
fn only_an_owner_sends_notifications_out_and_never_inside() {
    let place = Place::new();
    let server = serve(&place, &format!("{}{}", people(), token("ed", "acme", &["editor"])));
    let notify = |url: &str| Some(json!({"notify": {"url": url, "on": ["approval"]}}));
    let refused = ask(&server, "ed", "PUT", "/v1/triggers/pager", notify("https://example.com/"));
    assert_eq!(refused.status, 403, "a link to an approval would decide it: {refused:?}");
    for inside in ["http://127.0.0.1:1/", "http://169.254.169.254/", "http://[::1]/", "http://10.0.0.1/"] {
        let refused = ask(&server, "alice", "PUT", "/v1/triggers/pager", notify(inside));
        assert!((400..500).contains(&refused.status), "{inside}: {refused:?}");
    }
    let stored = expect(&server, "alice", ("PUT", "/v1/triggers/pager"), notify("https://example.com/"), 200);
    assert!(stored["secret"].as_str().is_some_and(|secret| secret.starts_with("o8hook_")), "{stored}");
    let shown = expect(&server, "alice", ("GET", "/v1/triggers/pager"), None, 200);
    assert!(shown["secret"].is_null(), "a secret is shown once: {shown}");
    assert_eq!(ask(&server, "eve", "POST", "/v1/triggers/pager/redrive", None).status, 404);
}
