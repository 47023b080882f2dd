//! `orchestr8 serve`: who may call, what the probes say, both eras on one endpoint.

use serde_json::json;

use crate::program::Place;
use crate::server::Server;

#[test]
fn the_probes_answer() {
    let place = Place::new();
    let server = Server::start(&place, &["--ephemeral"]);
    let mut http = server.connect();
    assert_eq!(http.get("/healthz").status, 200);
    assert_eq!(http.get("/readyz").status, 200);
    let version = http.get("/version").json();
    assert_eq!(
        (&version["name"], &version["version"]),
        (&json!("orchestr8"), &json!(env!("CARGO_PKG_VERSION")))
    );
    assert_eq!(http.get("/nothing").status, 404);
}

#[test]
fn both_eras_are_served() {
    let place = Place::new();
    let server = Server::start(&place, &["--ephemeral"]);
    let mut http = server.connect();
    let modern =
        http.modern(1, "tools/call", json!({"name": "echo", "arguments": {"message": "hi"}}), "").unwrap();
    assert_eq!((modern.status, &modern.json()["result"]["isError"]), (200, &json!(false)));
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "it", "version": "1"}}});
    let legacy = http.post("", &hello.to_string()).unwrap();
    assert_eq!((legacy.status, &legacy.json()["result"]["protocolVersion"]), (200, &json!("2025-06-18")));
    assert!(legacy.head.to_lowercase().contains("mcp-session-id:"), "{}", legacy.head);
}

#[test]
fn one_era_can_be_switched_off() {
    let place = Place::new().with("ORCHESTR8_PROTOCOL_ERAS", "legacy");
    let server = Server::start(&place, &["--ephemeral"]);
    let answer = server.connect().modern(1, "tools/list", json!({}), "").unwrap();
    assert!(answer.status >= 400, "{answer:?}");
}

#[test]
fn strangers_by_name_are_refused() {
    let place = Place::new();
    let server = Server::start(&place, &["--ephemeral"]);
    let evil = server.connect().send("GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n", "").unwrap();
    assert_eq!(evil.status, 403);
}

#[test]
fn an_open_address_without_tokens_is_refused_before_anything_begins() {
    let place = Place::new();
    let said = place.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(said.code, Some(4));
    assert_eq!(said.out, "");
    assert_eq!(
        said.err,
        "error: refusing to listen on 0.0.0.0:0: it is not a loopback address and no credentials are configured\n\
         hint: create a token with `orchestr8 tokens create --name NAME --role owner`, so that every caller must show one; or listen on 127.0.0.1 or [::1]\n\
         code: UNAUTHORIZED (trying the same again does not help; more: orchestr8 errors UNAUTHORIZED)\n"
    );
    assert!(!place.data_file().exists());
}

#[test]
fn with_tokens_every_caller_must_show_one() {
    let place = Place::new();
    // printf %s s3cret | sha256sum
    let hash = "1ec1c26b50d5d3c58d9583181af8076655fe00756bf7285940ba3670f99fcba0";
    place.write("orchestr8.toml", &format!("[[auth.tokens]]\nname = 'ci'\nsha256 = '{hash}'\n"));
    let server = Server::start(&place, &["--ephemeral"]);
    let mut http = server.connect();
    let params = || json!({"name": "echo", "arguments": {"message": "hi"}});
    let call = |http: &mut crate::server::Http, more: &str| {
        http.modern(1, "tools/call", params(), more).unwrap().status
    };
    assert_eq!(call(&mut http, ""), 401);
    assert_eq!(call(&mut server.connect(), "Authorization: Bearer wrong\r\n"), 401);
    assert_eq!(call(&mut server.connect(), "Authorization: Bearer s3cret\r\n"), 200);
    assert_eq!(server.connect().get("/readyz").status, 200, "probes show no token");
}

#[test]
fn a_port_in_use_is_said() {
    let place = Place::new();
    let server = Server::start(&place, &["--ephemeral"]);
    let said = place.run(&["serve", "--ephemeral", "--listen", &server.address.to_string()]);
    assert_eq!(said.code, Some(7));
    assert!(said.err.contains("hint: another process has that port"), "{}", said.err);
}

/// The outcome of a keyed call is remembered across a restart, and so is a session.
#[test]
fn keys_and_sessions_outlive_a_restart() {
    let place = Place::new();
    let server = Server::start(&place, &["--conformance"]);
    let append = |server: &Server| {
        let params = json!({"name": "test_append", "arguments": {"list": "l", "value": "v"}});
        server.connect().modern(1, "tools/call", params, "Idempotency-Key: one\r\n").unwrap().json()
    };
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "it", "version": "1"}}});
    let head = server.connect().post("", &hello.to_string()).unwrap().head;
    let session =
        head.lines().find(|line| line.to_lowercase().starts_with("mcp-session-id")).unwrap().to_owned();
    let more = format!("{session}\r\nMCP-Protocol-Version: 2025-11-25\r\n");
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(server.connect().post(&more, ready).unwrap().status, 202);
    let first = append(&server);
    server.kill();
    let server = Server::start(&place, &["--conformance"]);
    assert_eq!(append(&server)["result"]["content"], first["result"]["content"]);
    let params = json!({"name": "test_list", "arguments": {"list": "l"}});
    let listed = server.connect().modern(1, "tools/call", params, "").unwrap();
    assert!(listed.body.contains(r#"[\"v\"]"#), "once, not twice: {}", listed.body);
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    let answer = server.connect().post(&more, list).unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
}
