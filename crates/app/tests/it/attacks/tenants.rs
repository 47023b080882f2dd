//! Attacks across tenants: worker queues, ids, keys and subscriptions of another tenant.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use serde_json::json;

use super::actors::{ask, echo, expect, serve, tokens, workflow};
use crate::program::Place;

#[test]
fn a_worker_of_another_tenant_gets_no_task() {
    let place = Place::new();
    let server = serve(&place, &tokens());
    let pay = workflow(
        "pay",
        json!([{"id": "p", "agentId": "@worker/pay", "input": {"amount": 100, "card": "4711"}}]),
    );
    let started =
        expect(&server, "owner", ("POST", "/v1/workflows/execute"), Some(json!({"workflow": pay})), 202);
    let poll = |token: &str, wait: u64| {
        let body = json!({"workerId": "w", "waitMs": wait});
        expect(&server, token, ("POST", "/v1/workers/pay/poll"), Some(body), 200)
    };
    assert_eq!(poll("eve", 300), json!({"tasks": []}));
    let mine = poll("worker", 10_000);
    let task = &mine["tasks"][0];
    assert_eq!(task["input"]["amount"], 100, "{mine}");
    let path = format!("/v1/tasks/{}/complete", task["taskId"].as_str().unwrap());
    let body = json!({"leaseToken": task["leaseToken"], "output": {"by": "eve"}});
    assert_eq!(ask(&server, "eve", "POST", &path, Some(body)).status, 404);
    let body = json!({"leaseToken": task["leaseToken"], "output": {"by": "worker"}});
    expect(&server, "worker", ("POST", &path), Some(body), 200);
    let id = started["executionId"].as_str().unwrap();
    let ended = expect(&server, "owner", ("GET", &format!("/v1/executions/{id}?wait=10s")), None, 200);
    assert_eq!(ended["outputs"]["p"]["by"], "worker", "{ended}");
}

#[test]
fn what_belongs_to_another_tenant_is_not_found() {
    let place = Place::new();
    let server = serve(&place, &tokens());
    let waiting = workflow("w", json!([{"id": "w", "approval": {"message": "ok?"}}]));
    let started =
        expect(&server, "owner", ("POST", "/v1/workflows/execute"), Some(json!({"workflow": waiting})), 202);
    let id = started["executionId"].as_str().unwrap().to_owned();
    expect(&server, "owner", ("PUT", "/v1/workflows"), Some(json!({"workflow": echo("w")})), 201);
    let schedule = json!({"workflowId": "w", "cron": "0 3 * * *"});
    expect(&server, "owner", ("PUT", "/v1/schedules/s"), Some(schedule), 200);
    let open = expect(&server, "owner", ("GET", "/v1/approvals"), None, 200);
    let token = open["approvals"][0]["token"].as_str().unwrap().to_owned();
    for (method, path, body) in [
        ("GET", format!("/v1/executions/{id}"), None),
        ("GET", format!("/v1/executions/{id}/journal"), None),
        ("GET", format!("/v1/executions/{id}/workflow"), None),
        ("POST", format!("/v1/executions/{id}/cancel"), None),
        ("POST", format!("/v1/executions/{id}/pause"), None),
        ("POST", format!("/v1/executions/{id}/retry"), None),
        ("GET", "/v1/workflows/w".to_owned(), None),
        ("DELETE", "/v1/workflows/w".to_owned(), None),
        ("GET", "/v1/schedules/s".to_owned(), None),
        ("DELETE", "/v1/schedules/s".to_owned(), None),
        ("POST", "/v1/schedules/s/trigger".to_owned(), None),
        ("GET", format!("/v1/approvals/{token}"), None),
        ("POST", format!("/v1/approvals/{token}"), Some(json!({"decision": "approve"}))),
        ("POST", "/v1/workflows/execute".to_owned(), Some(json!({"workflowId": "w"}))),
    ] {
        let answer = ask(&server, "eve", method, &path, body);
        assert_eq!(answer.status, 404, "{method} {path}: {answer:?}");
    }
    for path in ["/v1/executions", "/v1/workflows", "/v1/schedules", "/v1/approvals"] {
        let listed = expect(&server, "eve", ("GET", path), None, 200).to_string();
        assert!(!listed.contains(&id) && !listed.contains("\"w\""), "{path}: {listed}");
    }
}

#[test]
fn a_key_of_another_principal_is_another_key() {
    let place = Place::new();
    let server = serve(&place, &tokens());
    let run = |token: &str, message: &str| {
        let more = format!("Authorization: Bearer {token}\r\nIdempotency-Key: order-2\r\n");
        let steps = json!([{"id": "a", "agentId": "@orchestr8/echo", "input": {"message": message}}]);
        let body = json!({"workflow": workflow("w", steps)}).to_string();
        server.connect().request("POST", "/v1/workflows/execute?mode=sync", &more, Some(&body)).unwrap()
    };
    let first = run("operator", "for the operator");
    let other = run("owner", "for the owner");
    assert_eq!((first.status, other.status), (200, 200), "{other:?}");
    assert!(!other.body.contains("for the operator"), "{other:?}");
    assert!(run("operator", "for the operator").head.to_lowercase().contains("idempotency-replayed: true"));
}

#[test]
fn addresses_of_other_servers_are_shown_without_credentials() {
    let place = Place::new();
    let server = serve(
        &place,
        &format!("{}[mcpServers.up]\nurl = 'http://ada:hunter2@127.0.0.1:9/mcp?key=canary-key'\n", tokens()),
    );
    let shown = (0..20_000).find_map(|_| {
        let shown = expect(&server, "viewer", ("GET", "/v1/dashboard/servers"), None, 200);
        shown["servers"][0]["problem"].is_string().then_some(shown)
    });
    let shown = shown.unwrap().to_string();
    assert!(!shown.contains("hunter2") && !shown.contains("canary-key"), "{shown}");
    assert!(shown.contains("127.0.0.1:9"), "{shown}");
}

#[test]
fn credentials_for_other_servers_are_not_shown_when_those_repeat_them() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // Refuses every request with the credentials that it was sent.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut key = String::new();
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) <= 2 {
                    break;
                }
                if line.to_ascii_lowercase().starts_with("authorization:") {
                    key = line.trim().to_owned();
                }
            }
            let body = format!("{{\"error\":\"bad key {key}\"}}");
            let head = "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\nconnection: close\r\n";
            let _ = write!(&stream, "{head}content-length: {}\r\n\r\n{body}", body.len());
        }
    });
    let place = Place::new();
    let upstream = format!(
        "[mcpServers.up]\nurl = 'http://{address}/mcp'\nheaders = {{ Authorization = 'Bearer canary-header' }}\n"
    );
    let server = serve(&place, &format!("{}{upstream}", tokens()));
    let shown = (0..20_000).find_map(|_| {
        let shown = expect(&server, "eve", ("GET", "/v1/dashboard/servers"), None, 200);
        shown["servers"][0]["problem"].is_string().then_some(shown)
    });
    let shown = shown.unwrap().to_string();
    assert!(shown.contains("bad key") && !shown.contains("canary-header"), "{shown}");
}
