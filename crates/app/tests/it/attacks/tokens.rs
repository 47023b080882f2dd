//! API tokens: no access to another tenant, no granting of missing rights, no use after a revocation.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::program::{PATIENCE, Place};
use crate::server::{Answer, Server};

/// Creates a token as the person at this machine; gives its text and its id.
pub fn create(place: &Place, args: &[&str]) -> (String, String) {
    let said = place.run(&[&["tokens", "create", "--json"], args].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    let made: Value = serde_json::from_str(&said.out).unwrap();
    (made["token"].as_str().unwrap().to_owned(), made["id"].as_str().unwrap().to_owned())
}

pub fn with(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

pub fn ask(server: &Server, token: &str, method: &str, target: &str, body: Option<Value>) -> Answer {
    let body = body.map(|body| body.to_string());
    server.connect().request(method, target, &with(token), body.as_deref()).unwrap()
}

/// A place with a server on this data, and commands that reach it.
pub fn served(args: &[&str]) -> (Place, Server) {
    let place = Place::new();
    let server = Server::start(&place, args);
    let url = format!("http://{}", server.address);
    (place.with("ORCHESTR8_SERVER", &url), server)
}

#[test]
fn the_first_token_is_made_on_this_machine_and_opens_other_addresses() {
    let place = Place::new();
    let refused = place.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    let (token, id) = create(&place, &["--name", "ops", "--role", "owner"]);
    let mut command = place.command(&["serve", "--listen", "0.0.0.0:0"]);
    command.env("ORCHESTR8_HTTP_ALLOWED_HOSTS", "0.0.0.0");
    let mut server = Server::of(command);
    server.address.set_ip([127, 0, 0, 1].into());
    assert_eq!(
        server.connect().get("/v1/executions").status,
        401,
        "a token is asked for on every address but loopback"
    );
    assert_eq!(ask(&server, &token, "GET", "/v1/executions", None).status, 200);
    assert_eq!(server.connect().get("/healthz").status, 200);
    let listed = ask(&server, &token, "GET", "/v1/tokens", None).json();
    assert_eq!(listed["tokens"][0]["id"], id.as_str());
    assert!(listed["tokens"][0]["lastUsedAt"].is_string(), "{listed}");
    server.terminate();
    let bytes = std::fs::read(place.data_file()).unwrap();
    let secret = token.as_bytes();
    assert!(!bytes.windows(secret.len()).any(|window| window == secret), "the token is in the data file");
}

#[test]
fn tokens_have_a_form_that_scanners_know_and_unknown_roles_are_named() {
    let place = Place::new();
    let said = place.run(&["tokens", "create", "--name", "ci"]);
    let token = said.out.trim();
    assert!(token.starts_with("o8_") && token.len() == 65 && token.matches('_').count() == 2, "{token}");
    assert!(said.err.contains("acts as viewer in tenant local"), "{}", said.err);
    let wrong = place.run(&["tokens", "create", "--name", "x", "--role", "onwer"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.err.contains("did you mean 'owner'?"), "{}", wrong.err);
    place.write(
        "orchestr8.toml",
        &format!("[[auth.tokens]]\nname = 'ci'\nsha256 = '{}'\nroles = ['amdin']\n", "a".repeat(64)),
    );
    let wrong = place.run(&["config", "check"]);
    assert!(wrong.err.contains("did you mean 'admin'?"), "{wrong:?}");
}

#[test]
fn an_admin_of_one_tenant_has_no_rights_in_another_and_grants_no_more_than_its_own_roles() {
    let (place, server) = served(&[]);
    let (admin, admin_id) = create(&place, &["--name", "a", "--tenant", "acme", "--role", "admin"]);
    let (_, owner_id) = create(&place, &["--name", "o", "--tenant", "acme", "--role", "owner"]);
    let (rival, rival_id) = create(&place, &["--name", "r", "--tenant", "rival", "--role", "owner"]);
    let (viewer, _) = create(&place, &["--name", "v", "--tenant", "acme"]);
    let post = |token: &str, target: &str, body: Value| ask(&server, token, "POST", target, Some(body));
    for (body, why) in [
        (json!({"name": "x", "tenant": "rival"}), "another tenant"),
        (json!({"name": "x", "tenant": "local", "roles": ["admin"]}), "the machine"),
        (json!({"name": "x", "roles": ["owner"]}), "a role it does not have"),
        (json!({"name": "x", "roles": ["editor"]}), "a role it does not have"),
        (json!({"name": "x"}), "a viewer, which it is not"),
    ] {
        assert_eq!(post(&admin, "/v1/tokens", body).status, 403, "{why}");
    }
    assert_eq!(post(&admin, "/v1/tokens", json!({"name": "x", "roles": ["admin"]})).status, 201);
    assert_eq!(
        post(&admin, &format!("/v1/tokens/{owner_id}/rotate"), json!({})).status,
        403,
        "an owner's secret"
    );
    for target in [format!("/v1/tokens/{rival_id}/rotate"), format!("/v1/tokens/{rival_id}/revoke")] {
        assert_eq!(post(&admin, &target, json!({})).status, 404, "{target}");
    }
    assert_eq!(ask(&server, &rival, "GET", "/v1/tokens?tenant=acme", None).status, 403);
    let seen = ask(&server, &rival, "GET", "/v1/tokens", None).json();
    assert_eq!(seen["tokens"].as_array().unwrap().len(), 1, "{seen}");
    for (method, target) in [("GET", "/v1/tokens"), ("POST", "/v1/tokens")] {
        let body = (method == "POST").then(|| json!({"name": "y"}));
        assert_eq!(ask(&server, &viewer, method, target, body).status, 403, "{method} {target}");
    }
    // Keys that agents sign with: the same boundary.
    let key = |tenant: &str, role: &str| {
        json!({"kid": format!("k-{tenant}-{role}"), "public": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
            "tenant_id": tenant, "principal": "svc:a", "roles": [role]})
    };
    assert_eq!(post(&admin, "/admin/keys", key("rival", "viewer")).status, 403);
    assert_eq!(post(&admin, "/admin/keys", key("acme", "owner")).status, 403);
    assert_eq!(post(&admin, "/admin/keys", key("acme", "viewer")).status, 201);
    assert_eq!(post(&rival, "/admin/keys", key("rival", "owner")).status, 201);
    let keys = ask(&server, &admin, "GET", "/admin/keys", None).json();
    assert!(!keys.to_string().contains("rival"), "{keys}");
    assert_eq!(post(&admin, &format!("/v1/tokens/{admin_id}/revoke"), json!({})).status, 200);
    assert_eq!(ask(&server, &admin, "GET", "/v1/tokens", None).status, 401);
}

#[test]
fn a_revoked_token_ends_on_every_face_with_its_open_connections() {
    let (place, server) = served(&[]);
    let (token, id) = create(&place, &["--name", "bot", "--tenant", "acme", "--role", "operator"]);
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "it", "version": "1"}}});
    let begun = server.connect().post(&with(&token), &hello.to_string()).unwrap();
    let session = begun.head.lines().find(|line| line.to_lowercase().starts_with("mcp-session-id")).unwrap();
    let events = "Accept: text/event-stream\r\n";
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let mut open: Vec<(&str, TcpStream)> = Vec::new();
    for (what, target, more, status) in [
        ("event stream", "/v1/events", events.to_owned(), "200"),
        ("dashboard socket", "/ws", upgrade.to_owned(), "101"),
        ("session socket", "/ws/session", upgrade.to_owned(), "101"),
        ("mcp stream", "/mcp", format!("{events}{session}\r\nMCP-Protocol-Version: 2025-11-25\r\n"), "200"),
    ] {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head = format!("GET {target} HTTP/1.1\r\nHost: {}\r\n{}{more}\r\n", server.address, with(&token));
        stream.write_all(head.as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).unwrap();
        assert!(line.contains(status), "{what}: {line}");
        open.push((what, stream));
    }
    let said = place.run(&["tokens", "revoke", &id, "--yes"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    for (what, mut stream) in open {
        // The end of the stream, or a reset: either way it is over.
        let ended = stream.read_to_end(&mut Vec::new());
        let is_over = ended.as_ref().is_ok()
            || ended.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset);
        assert!(is_over, "{what}: {ended:?}");
    }
    for target in ["/v1/executions", "/aacp/agents", "/documents", "/metrics"] {
        assert_eq!(ask(&server, &token, "GET", target, None).status, 401, "{target}");
    }
    let more = format!("{}{session}\r\nMCP-Protocol-Version: 2025-11-25\r\n", with(&token));
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    assert_eq!(server.connect().post(&more, list).unwrap().status, 401);
    let named = place.run(&["tokens", "list"]);
    assert!(!named.out.contains("bot"), "revoked ones are listed with --all only: {}", named.out);
}

#[test]
fn a_rotated_token_works_with_both_secrets_until_the_grace_ends() {
    let (place, server) = served(&[]);
    let (old, id) = create(&place, &["--name", "bot", "--role", "viewer"]);
    let rotated = place.run(&["tokens", "rotate", &id, "--grace", "1h", "--quiet"]);
    let fresh = rotated.out.trim();
    assert!(fresh.starts_with(&format!("o8_{id}_")) && fresh != old, "{rotated:?}");
    for token in [&old, fresh] {
        assert_eq!(ask(&server, token, "GET", "/v1/executions", None).status, 200);
    }
    let last = place.run(&["tokens", "rotate", &id, "--grace", "0", "--quiet"]);
    assert_eq!(ask(&server, fresh, "GET", "/v1/executions", None).status, 401);
    assert_eq!(ask(&server, last.out.trim(), "GET", "/v1/executions", None).status, 200);
    assert_eq!(
        ask(&server, "o8_abcdefghijkl_x", "GET", "/v1/executions", None).status,
        401,
        "no token of ours is no one"
    );
}

#[test]
fn a_scope_narrows_and_never_widens() {
    let (place, server) = served(&[]);
    let (lists, _) = create(
        &place,
        &["--name", "lists", "--role", "owner", "--scope", "face:workflows,executions.list,tokens.*"],
    );
    assert_eq!(ask(&server, &lists, "GET", "/v1/executions", None).status, 200);
    assert_eq!(ask(&server, &lists, "GET", "/v1/workflows", None).status, 403, "another action");
    assert_eq!(ask(&server, &lists, "GET", "/aacp/agents", None).status, 403, "another face");
    assert_eq!(ask(&server, &lists, "GET", "/admin/keys", None).status, 403, "another face");
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(server.connect().post(&with(&lists), &call.to_string()).unwrap().status, 403);
    let wider = ask(&server, &lists, "POST", "/v1/tokens", Some(json!({"name": "w"})));
    assert_eq!(wider.status, 403, "{}", wider.body);
    let narrower = json!({"name": "n", "scope": ["face:workflows", "executions.list"]});
    assert_eq!(ask(&server, &lists, "POST", "/v1/tokens", Some(narrower)).status, 201);
}

#[test]
fn figures_of_other_tenants_are_for_those_who_run_the_machine() {
    let (place, server) = served(&[]);
    let (acme, _) = create(&place, &["--name", "a", "--tenant", "acme", "--role", "owner"]);
    let (rival, _) = create(&place, &["--name", "r", "--tenant", "rival", "--role", "owner"]);
    let (ops, _) = create(&place, &["--name", "ops", "--role", "admin"]);
    for (token, tenant, sub) in [(&acme, "acme", "a"), (&rival, "rival", "r")] {
        let envelope = json!({"envelope_version": "1.0", "request_id": uuid(tenant), "tenant_id": tenant,
            "principal": {"type": "service", "sub": sub, "roles": []}, "action": "knowledge.query_knowledge",
            "action_version": "1.0", "ts": "2026-11-17T00:00:00Z", "payload": {"query": "x"}});
        let answer = ask(&server, token, "POST", "/mcp/actions", Some(envelope));
        assert!(answer.status != 401 && answer.status != 404, "{answer:?}");
    }
    let seen = ask(&server, &rival, "GET", "/metrics", None);
    assert_eq!(seen.status, 200);
    assert!(!seen.body.contains("acme"), "{}", seen.body);
    let all = ask(&server, &ops, "GET", "/metrics", None).body;
    let counted = |tenant: &str| all.contains(&format!("tenant=\"{tenant}\""));
    assert_eq!(counted("acme"), counted("rival"), "{all}");
}

/// An id that differs by tenant.
fn uuid(tenant: &str) -> String {
    format!("018f0000-0000-7000-8000-{:012x}", tenant.len())
}
