//! One client's load never shuts others out: connections, sessions, streams, wrong tokens.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::program::Place;
use crate::server::Server;

/// printf %s s3cret | sha256sum, and the same of 0ther.
const ACME: &str = "1ec1c26b50d5d3c58d9583181af8076655fe00756bf7285940ba3670f99fcba0";

fn tokens(place: &Place) -> String {
    let rival = place.run(&["tokens", "create", "--name", "eve", "--tenant", "rival", "--quiet"]);
    rival.out.trim().to_owned()
}

#[test]
fn trickling_and_silent_connections_of_one_address_do_not_keep_honest_requests_out() {
    let place = Place::new().with("ORCHESTR8_HTTP_MAX_CONNECTIONS", "32");
    let server = Server::start(&place, &["--ephemeral"]);
    let mut hostile = Vec::new();
    for round in 0..120 {
        let mut stream = TcpStream::connect(server.address).unwrap();
        let begin: &[u8] = match round % 3 {
            0 => b"",
            1 => b"GET /v1/exec",
            _ => b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
        };
        stream.write_all(begin).unwrap();
        hostile.push(stream);
        if round % 10 == 0 {
            assert_eq!(server.connect().get("/v1/executions").status, 200, "round {round}");
        }
    }
    assert_eq!(server.connect().get("/healthz").status, 200);
    assert_eq!(server.connect().get("/v1/executions").status, 200);
}

#[test]
fn sockets_of_one_principal_leave_room_for_requests_and_probes() {
    let place = Place::new()
        .with("ORCHESTR8_HTTP_MAX_CONNECTIONS", "16")
        .with("ORCHESTR8_HTTP_MAX_STREAMS_PER_PRINCIPAL", "4");
    let server = Server::start(&place, &["--ephemeral"]);
    let mut open = Vec::new();
    let mut statuses = Vec::new();
    for _ in 0..6 {
        let mut stream = TcpStream::connect(server.address).unwrap();
        let head = format!(
            "GET /v1/events HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n\r\n",
            server.address
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut begin = [0; 12];
        stream.read_exact(&mut begin).unwrap();
        statuses.push(String::from_utf8_lossy(&begin[9..]).into_owned());
        open.push(stream);
    }
    assert_eq!(statuses, ["200", "200", "200", "200", "429", "429"]);
    assert_eq!(server.connect().get("/v1/executions").status, 200);
    assert_eq!(server.connect().get("/readyz").status, 200);
}

#[test]
fn many_sessions_of_one_tenant_do_not_end_those_of_another() {
    let place = Place::new();
    place.write(
        "orchestr8.toml",
        &format!("[[auth.tokens]]\nname = 'ann'\nsha256 = '{ACME}'\ntenant = 'acme'\n"),
    );
    let rival = tokens(&place);
    let server = Server::start(&place, &[]);
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "it", "version": "1"}}})
    .to_string();
    let ann = "Authorization: Bearer s3cret\r\n";
    let begun = server.connect().post(ann, &hello).unwrap();
    let session = begun.head.lines().find(|line| line.to_lowercase().starts_with("mcp-session-id")).unwrap();
    let mine = format!("{ann}{session}\r\nMCP-Protocol-Version: 2025-11-25\r\n");
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(server.connect().post(&mine, ready).unwrap().status, 202);
    let mut http = server.connect();
    let eve = format!("Authorization: Bearer {rival}\r\n");
    for round in 0..1100 {
        let answer = http.post(&eve, &hello).unwrap();
        assert_eq!(answer.status, 200, "round {round}: {}", answer.body);
    }
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    assert_eq!(
        server.connect().post(&mine, list).unwrap().status,
        200,
        "the session of another tenant goes on"
    );
}

#[test]
fn wrong_tokens_are_limited_logged_and_audited_and_known_clients_pass() {
    let place = Place::new().with("ORCHESTR8_HTTP_MAX_FAILED_LOGINS_PER_MINUTE", "5");
    place.write(
        "orchestr8.toml",
        &format!("[[auth.tokens]]\nname = 'ann'\nsha256 = '{ACME}'\ntenant = 'acme'\nroles = ['owner']\n"),
    );
    let right =
        place.run(&["tokens", "create", "--name", "ops", "--role", "owner", "--quiet"]).out.trim().to_owned();
    let server = Server::start(&place, &[]);
    let ask = |token: &str| {
        let more = format!("Authorization: Bearer {token}\r\n");
        server.connect().request("GET", "/v1/executions", &more, None).unwrap()
    };
    assert_eq!(ask("s3cret").status, 200);
    let statuses: Vec<u16> = (0..12).map(|guess| ask(&format!("guess-{guess}")).status).collect();
    assert_eq!(statuses[..5], [401; 5]);
    assert_eq!(statuses[5..], [429; 7]);
    let limited = ask("guess");
    assert!(limited.head.to_lowercase().contains("retry-after: 60"), "{}", limited.head);
    assert_eq!(ask("s3cret").status, 200, "it was shown from here before");
    assert_eq!(ask(&right).status, 200, "a token that cannot be guessed");
    let more = format!("Authorization: Bearer {right}\r\n");
    let mut entries = Vec::new();
    // They are written beside the answers, soon after them.
    for _ in 0..1_000 {
        let audit =
            server.connect().request("GET", "/v1/audit?action=auth.login", &more, None).unwrap().json();
        entries = audit["entries"].as_array().cloned().unwrap_or_default();
        if entries.len() == 6 {
            break;
        }
    }
    assert_eq!(entries.len(), 6, "five failures and the limit: {entries:?}");
    assert!(!Value::Array(entries).to_string().contains("guess-"));
}

#[test]
fn executions_of_one_tenant_have_a_limit_of_their_own() {
    // An agent that takes a call and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = Place::new().with("ORCHESTR8_WORKFLOWS_MAX_EXECUTIONS_PER_TENANT", "2");
    let url = format!("http://{}", silent.local_addr().unwrap());
    place.write("orchestr8.toml", &format!("[workflows.agents.slow]\nurl = '{url}'\n"));
    let acme =
        place.run(&["tokens", "create", "--name", "a", "--tenant", "acme", "--role", "owner", "--quiet"]);
    let rival = tokens_with(&place, "rival");
    let server = Server::start(&place, &[]);
    let body = json!({"workflow": {"id": "slow", "name": "slow", "version": "1.0.0", "steps": [
        {"id": "a", "agentId": "slow", "input": {}}]}});
    let start = |token: &str| {
        let more = format!("Authorization: Bearer {}\r\n", token.trim());
        server.connect().request("POST", "/v1/workflows/execute", &more, Some(&body.to_string())).unwrap()
    };
    let first = start(&acme.out);
    assert_eq!(first.status, 202, "{}", first.body);
    assert_eq!(start(&acme.out).status, 202);
    let third = start(&acme.out);
    assert!([429, 503].contains(&third.status), "{third:?}");
    assert!(third.body.contains("tenant_quota"), "{}", third.body);
    assert_eq!(start(&rival).status, 202, "another tenant is not concerned");
}

fn tokens_with(place: &Place, tenant: &str) -> String {
    place.run(&["tokens", "create", "--name", "r", "--tenant", tenant, "--role", "owner", "--quiet"]).out
}

#[test]
fn wrong_admin_tokens_are_limited_and_audited_as_failed_logins() {
    let place = Place::new()
        .with("ORCHESTR8_HTTP_MAX_FAILED_LOGINS_PER_MINUTE", "5")
        .with("O8_ADMIN", "the-right-admin-token");
    place.write(
        "orchestr8.toml",
        "[tools]\nadminRegistrationEnabled = true\n[tools.adminPolicy]\nmode = 'token'\ntokenEnvVar = 'O8_ADMIN'\n\
         [security]\ndynamicRegistrationEnabled = true\n",
    );
    let server = Server::start(&place, &[]);
    let list = |token: &str| {
        let more = format!("X-Admin-Token: {token}\r\n");
        server.connect().modern(1, "tools/list", json!({}), &more).unwrap().status
    };
    assert_eq!(list("the-right-admin-token"), 200);
    let statuses: Vec<u16> = (0..8).map(|guess| list(&format!("guess-{guess}"))).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 429, 429, 429]);
    assert_eq!(list("the-right-admin-token"), 429, "guessing on tells nothing");
    let entries = (0..20_000).find_map(|_| {
        let page = server.connect().get("/v1/audit?action=auth.login").json();
        page["entries"].as_array().filter(|entries| entries.len() >= 6).cloned()
    });
    assert!(!format!("{entries:?}").contains("guess-"), "{entries:?}");
}
