//! Work that leaves no trace: whatever changes something, or is refused, is in the audit trail with principal, object, source and
//! outcome.

use serde_json::{Value, json};

use super::actors::{audit, expect, serve, token, tokens};
use crate::bus::{letters, lost, publish};
use crate::program::Place;
use crate::server::Server;

/// The entries of the person at this machine, by the command line.
fn listed(place: &Place, args: &[&str]) -> Vec<Value> {
    let said = place.run(&[&["audit", "list", "--json"], args].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    serde_json::from_str::<Value>(&said.out).unwrap()["entries"].as_array().cloned().unwrap()
}

fn who_did_what(entries: &[Value]) -> Vec<(&str, &str, &str)> {
    let text =
        |entry: &'_ Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned().leak() as &str;
    entries
        .iter()
        .map(|entry| (text(entry, "action"), text(entry, "principal"), text(entry, "end")))
        .collect()
}

/// A sends and B acknowledges; the audit trail names both.
#[test]
fn messages_are_on_record() {
    let place = Place::new();
    let server = serve(&place, &tokens());
    expect(&server, "agent", ("PUT", "/aacp/agents/asker"), Some(json!({})), 200);
    expect(&server, "operator", ("PUT", "/aacp/agents/helper"), Some(json!({})), 200);
    let message = |id: &str| json!({"messageId": id, "sourceAgentId": "asker", "targetAgentId": "helper", "messageType": "EVENT", "payload": {"n": 1}});
    for id in ["00000000-0000-4000-8000-0000006d2d31", "00000000-0000-4000-8000-0000006d2d32"] {
        let answer = super::actors::ask(&server, "agent", "POST", "/aacp/messages", Some(message(id)));
        assert!((200..300).contains(&answer.status), "{answer:?}");
    }
    // On record before anyone asks: a crash loses nothing of it.
    server.kill();
    let server = Server::start(&place, &[]);
    expect(&server, "operator", ("POST", "/aacp/agents/helper/acks"), Some(json!({"inboxSeq": 2})), 200);
    for id in ["00000000-0000-4000-8000-0000006d2d31", "00000000-0000-4000-8000-0000006d2d32"] {
        let entries = audit(&server, "owner", &format!("object={id}"));
        assert_eq!(
            who_did_what(&entries),
            [("aacp.ack", "operator", "success"), ("aacp.send", "agent", "success")],
            "{id}: {entries:?}"
        );
        for entry in &entries {
            assert_eq!(
                (&entry["source"], &entry["face"], &entry["transport"], &entry["tenant"]),
                (&json!("127.0.0.1"), &json!("messaging"), &json!("http"), &json!("acme"))
            );
        }
    }
    assert_eq!(
        audit(&server, "eve", "object=00000000-0000-4000-8000-0000006d2d31"),
        Vec::<Value>::new(),
        "another tenant"
    );
    assert_eq!(audit(&server, "owner", "principal=agent&action=aacp.send").len(), 2);
    let first = expect(&server, "owner", ("GET", "/v1/audit?limit=1&action=aacp.send"), None, 200);
    let cursor = first["nextCursor"].as_str().unwrap();
    let second = expect(
        &server,
        "owner",
        ("GET", &format!("/v1/audit?limit=1&action=aacp.send&cursor={cursor}")),
        None,
        200,
    );
    assert_eq!(
        (&first["entries"][0]["object"], &second["entries"][0]["object"]),
        (&json!("00000000-0000-4000-8000-0000006d2d32"), &json!("00000000-0000-4000-8000-0000006d2d31"))
    );
    assert_eq!(expect(&server, "owner", ("GET", "/v1/audit/verify"), None, 200)["whole"], true);
    assert_eq!(server.terminate().code(), Some(0));
    assert_eq!(place.run(&["audit", "verify"]).code, Some(0));
}

/// An answer, and what the server does by itself: a request without an answer.
#[test]
fn answers_and_silence_are_on_record() {
    let place = Place::new();
    let server = serve(&place, &tokens());
    expect(&server, "agent", ("PUT", "/aacp/agents/asker"), Some(json!({})), 200);
    expect(&server, "operator", ("PUT", "/aacp/agents/helper"), Some(json!({})), 200);
    let post = |token: &str, body: Value| {
        let answer = super::actors::ask(&server, token, "POST", "/aacp/messages", Some(body));
        assert!((200..300).contains(&answer.status), "{answer:?}");
        answer.json()
    };
    post(
        "agent",
        json!({"messageId": "00000000-0000-4000-8000-000000712d31", "requestId": "00000000-0000-4000-8000-000000722d31", "sourceAgentId": "asker", "targetAgentId": "helper", "messageType": "REQUEST", "payload": 1}),
    );
    post(
        "operator",
        json!({"messageId": "00000000-0000-4000-8000-000000612d31", "requestId": "00000000-0000-4000-8000-000000722d31", "sourceAgentId": "helper", "targetAgentId": "asker", "messageType": "RESPONSE", "payload": 2, "outcome": "COMPLETED"}),
    );
    let entries = audit(&server, "owner", "object=00000000-0000-4000-8000-000000712d31");
    assert_eq!(
        who_did_what(&entries),
        [("aacp.send", "operator", "success"), ("aacp.send", "agent", "success")],
        "{entries:?}"
    );
    assert_eq!(
        (&entries[0]["object"], &entries[0]["outcome"]),
        (&json!("00000000-0000-4000-8000-000000612d31"), &json!("COMPLETED"))
    );
    assert_eq!(
        audit(&server, "owner", "object=00000000-0000-4000-8000-000000722d31").len(),
        2,
        "by the id of the request too"
    );
    post(
        "agent",
        json!({"messageId": "00000000-0000-4000-8000-000000712d32", "requestId": "00000000-0000-4000-8000-000000722d32", "sourceAgentId": "asker", "targetAgentId": "helper", "messageType": "REQUEST", "payload": 1, "timeoutMs": 1}),
    );
    let mut tries = 0;
    let silence = loop {
        let entries =
            audit(&server, "owner", "object=00000000-0000-4000-8000-000000722d32&action=aacp.unanswered");
        if !entries.is_empty() {
            break entries;
        }
        tries += 1;
        assert!(tries < 500);
    };
    assert_eq!((&silence[0]["principal"], &silence[0]["outcome"]), (&json!("server"), &json!("UNKNOWN")));
    server.terminate();
}

/// A flood of foreign hosts is counted, and does not fill the disk.
#[test]
fn rejected_requests_are_counted_on_record() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let mut http = server.connect();
    for _ in 0..300 {
        let answer = http.send("GET /v1/executions HTTP/1.1\r\nHost: evil.example\r\n\r\n", "").unwrap();
        assert_eq!(answer.status, 403);
    }
    let own = server.address;
    let foreign =
        format!("GET /v1/executions HTTP/1.1\r\nHost: {own}\r\nOrigin: https://evil.example\r\n\r\n");
    assert_eq!(http.send(&foreign, "").unwrap().status, 403);
    assert_eq!(server.terminate().code(), Some(0));
    let hosts = listed(&place, &["--action", "http.reject_host"]);
    // The first one and the number of the others; one more of each if a minute ends in between.
    assert!((2..=4).contains(&hosts.len()), "{hosts:?}");
    let count: u64 = hosts.iter().map(|entry| entry["detail"]["count"].as_u64().unwrap()).sum();
    assert_eq!(count, 300);
    for entry in &hosts {
        assert_eq!(
            (&entry["source"], &entry["errorCode"], &entry["end"]),
            (&json!("127.0.0.1"), &json!("UNAUTHORIZED"), &json!("refused"))
        );
        assert_eq!(entry["detail"]["value"], "evil.example");
    }
    let origins = listed(&place, &["--action", "http.reject_origin"]);
    assert_eq!(origins[0]["detail"]["value"], "https://evil.example");
}

/// Without a token, and with one outside its scope: refused at the door, and on record.
#[test]
fn missing_credentials_and_scopes_are_on_record() {
    let place = Place::new();
    let server = serve(&place, &token("admin", "local", &["owner"]));
    assert_eq!(server.connect().get("/v1/executions").status, 401);
    let body = json!({"name": "narrow", "roles": ["viewer"], "scope": ["face:mcp"]});
    let made = expect(&server, "admin", ("POST", "/v1/tokens"), Some(body), 201);
    expect(&server, made["token"].as_str().unwrap(), ("GET", "/v1/executions"), None, 403);
    let wait = |action: &str| {
        let mut tries = 0;
        loop {
            let entries = audit(&server, "admin", &format!("action={action}"));
            tries += 1;
            assert!(tries < 500, "{action}");
            if let Some(entry) = entries.into_iter().next() {
                break entry;
            }
        }
    };
    assert_eq!(wait("http.reject_anonymous")["source"], "127.0.0.1");
    assert_eq!(wait("auth.scope")["principal"], "narrow");
    server.terminate();
}

#[test]
fn dead_letters_and_their_redrive_are_on_record() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let url = format!("http://{}", server.address);
    let at = ["--server", url.as_str()];
    let mut http = server.connect();
    assert_eq!(publish(&mut http, &lost(1)).unwrap(), 202);
    let letter = letters(&place, &at, 1)[0]["seq"].to_string();
    let again = place.run(&[&["dlq", "redrive", &letter][..], &at].concat());
    assert_eq!(again.code, Some(0), "{again:?}");
    let letter_again = letters(&place, &at, 1)[0]["seq"].to_string();
    let dropped = place.run(&[&["dlq", "drop", &letter_again, "--yes"][..], &at].concat());
    assert_eq!(dropped.code, Some(0), "{dropped:?}");
    for (action, object) in [("broker.redrive", &letter), ("broker.discard", &letter_again)] {
        let entries = listed(&place, &[&["--action", action][..], &at].concat());
        assert_eq!(entries.len(), 1, "{action}");
        assert_eq!((&entries[0]["object"], &entries[0]["source"]), (&json!(object), &json!("127.0.0.1")));
        assert_eq!(entries[0]["principal"], "local");
    }
    server.terminate();
}

/// What a step of a workflow says to a session: the session's own commands are the record.
#[test]
fn a_session_run_by_a_workflow_is_on_record() {
    let place = crate::workflows::alone();
    let steps =
        json!([{"id": "a", "agentId": "@orchestr8/session", "input": {"sessionId": "s-1", "message": "hi"}}]);
    let file = crate::workflows::write(&place, "talk", &steps);
    let said = place.run(&["run", &file, "--quiet"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let entries = listed(&place, &["--object", "s-1"]);
    let actions: Vec<&str> = entries.iter().filter_map(|entry| entry["action"].as_str()).collect();
    assert!(
        actions.contains(&"session.create_session") && actions.contains(&"session.prompt"),
        "{entries:?}"
    );
    assert!(entries.iter().all(|entry| entry["principal"] == "local"), "{entries:?}");
}

/// What the server starts by itself, on behalf of the author of a schedule.
#[test]
fn a_schedule_that_fires_is_on_record() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let ask = |method: &str, path: &str, body: Value| {
        let answer = server.connect().request(method, path, "", Some(&body.to_string())).unwrap();
        assert!((200..300).contains(&answer.status), "{answer:?}");
    };
    ask("PUT", "/v1/workflows", json!({"workflow": super::actors::echo("often")}));
    ask(
        "PUT",
        "/v1/schedules",
        json!({"id": "each-second", "workflowId": "often", "cron": "* * * * * *", "overlap": "allow"}),
    );
    let mut http = server.connect();
    let mut tries = 0;
    let fired = loop {
        let page = http.get("/v1/audit?action=schedules.fire").json();
        if let Some(entry) = page["entries"].as_array().and_then(|entries| entries.first()) {
            break entry.clone();
        }
        tries += 1;
        assert!(tries < 20_000, "it never fired");
    };
    assert_eq!(
        (&fired["principal"], &fired["source"], &fired["detail"]["scheduleId"]),
        (&json!("local"), &json!("server"), &json!("each-second"))
    );
    let execution = fired["object"].as_str().unwrap();
    assert_eq!(http.get(&format!("/v1/executions/{execution}")).status, 200);
    server.terminate();
}

/// A receiver that answers 410: the delivery is given up, and the audit trail has an entry of that.
#[test]
fn a_delivery_that_is_given_up_is_on_record() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut head = [0; 4096];
            let _ = std::io::Read::read(&mut stream, &mut head);
            let gone = "HTTP/1.1 410 Gone\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
            let _ = std::io::Write::write_all(&mut stream, gone.as_bytes());
        }
    });
    let place = Place::new();
    place.write("orchestr8.toml", "[knowledge.webhooks]\nallowPrivate = true\n");
    let server = Server::start(&place, &[]);
    let mut http = server.connect();
    let hook = http.request("POST", "/webhooks", "", Some(&json!({"url": url}).to_string())).unwrap();
    assert_eq!(hook.status, 201, "{hook:?}");
    let document = json!({"document_id": "00000000-0000-4000-8000-000000000001", "parent_id": "root", "metadata": {"title": "A"}, "content": {"mime_type": "text/plain", "body": "x"}});
    let made = http.request("POST", "/documents", "", Some(&document.to_string())).unwrap();
    assert_eq!(made.status, 201, "{made:?}");
    let mut tries = 0;
    let given_up = loop {
        let page = http.get("/v1/audit?action=webhooks.give_up").json();
        if let Some(entry) = page["entries"].as_array().and_then(|entries| entries.first()) {
            break entry.clone();
        }
        tries += 1;
        assert!(tries < 20_000, "it was never given up");
    };
    assert_eq!((&given_up["principal"], &given_up["end"]), (&json!("server"), &json!("tool_error")));
    assert!(given_up["object"].is_string(), "{given_up}");
    server.terminate();
}
