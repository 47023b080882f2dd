//! One client's load costs others nothing: eviction, the reserve for probes, shares of streams, limits of wrong tokens.

use std::sync::{Arc, Mutex};

use orchestr8_contract::api_token::ApiToken;
use orchestr8_contract::id::Tenant;
use orchestr8_kernel::grant::{TokenGrant, TokenScope, TokenTable};
use orchestr8_kernel::ports::clock::Simulated;
use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt;

use super::{Client, Server, settings, within};
use crate::{Auth, LoginFailure, Settings, Token};

const HELLO: &str = "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n";
const GATE: &str = "GET /gate HTTP/1.1\r\nHost: localhost\r\n\r\n";
const UPGRADE: &str =
    "GET /upgrade HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";

#[tokio::test]
async fn silent_and_trickling_connections_give_way_to_honest_ones() {
    let server = Server::start(Settings { max_connections: 4, ..settings() }).await;
    let mut hostile: Vec<Client> = Vec::new();
    for begin in ["", "GET /hello HT", "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx"]
    {
        for _ in 0..4 {
            let mut client = server.connect().await;
            client.send(begin).await;
            hostile.push(client);
            assert_eq!(server.ask(HELLO).await.status, 200, "{begin:?}");
        }
    }
}

#[tokio::test]
async fn health_probes_are_answered_when_every_place_is_taken() {
    let limits = Settings { max_connections: 2, max_connections_per_ip: Some(3), ..settings() };
    let mut server = Server::start(limits).await;
    let mut busy = Vec::new();
    for _ in 0..2 {
        let mut client = server.connect().await;
        client.send(GATE).await;
        server.entered().await;
        busy.push(client);
    }
    for path in ["/healthz", "/readyz"] {
        let reply = server.ask(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")).await;
        assert_eq!((reply.status, reply.header("connection")), (200, Some("close")), "{path}");
    }
    server.ask(HELLO).await.refused(503, "RESOURCE_EXHAUSTED");
    drop(busy);
}

#[tokio::test]
async fn a_principal_has_a_share_of_the_streams_and_requests_go_on() {
    let limits = Settings { max_streams_per_principal: 2, ..settings() };
    let server = Server::start(limits).await;
    let mut sockets = Vec::new();
    for _ in 0..2 {
        let mut client = server.connect().await;
        client.send(UPGRADE).await;
        assert_eq!(client.reply().await.status, 101);
        sockets.push(client);
    }
    server.ask(UPGRADE).await.refused(429, "RESOURCE_EXHAUSTED");
    assert_eq!(server.ask(HELLO).await.status, 200);
}

fn bearer() -> Token {
    let sha256_hex = Sha256::digest("s3cret").iter().map(|byte| format!("{byte:02x}")).collect();
    Token {
        name: "ci".into(),
        sha256_hex,
        roles: vec!["admin".into()],
        tenant: "acme".into(),
        reuse_name: false,
    }
}

fn with_token(path: &str, token: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n")
}

#[tokio::test]
async fn wrong_tokens_are_limited_and_reported_and_known_clients_pass() {
    let heard: Arc<Mutex<Vec<LoginFailure>>> = Arc::default();
    let hearing = heard.clone();
    let server = Server::start(Settings {
        auth: Auth { tokens: vec![bearer()], stored: None },
        max_failed_logins: 3,
        on_login_failure: Some(Arc::new(move |failure| hearing.lock().unwrap().push(failure))),
        ..settings()
    })
    .await;
    assert_eq!(server.ask(&with_token("/hello", "s3cret")).await.status, 200);
    for attempt in 0..6 {
        let reply = server.ask(&with_token("/hello", &format!("guess-{attempt}"))).await;
        match attempt < 3 {
            true => reply.refused(401, "UNAUTHENTICATED"),
            false => {
                reply.refused(429, "RESOURCE_EXHAUSTED");
                assert_eq!(reply.header("retry-after"), Some("60"));
            }
        }
    }
    assert_eq!(server.ask(&with_token("/hello", "s3cret")).await.status, 200, "it was known before");
    let heard = heard.lock().unwrap();
    assert_eq!(heard.iter().map(|failure| failure.limited).collect::<Vec<_>>(), [false, false, false, true]);
    assert!(heard.iter().all(|failure| !failure.token.contains("guess") && failure.path == "/hello"));
}

#[tokio::test]
async fn a_revoked_token_loses_its_open_socket_and_an_admitted_request_gets_its_answer() {
    let table = TokenTable::new(Arc::new(Simulated::new()));
    let token = ApiToken::new("abcdefghijkl", &[1; 32]);
    let mut grant = TokenGrant::new("abcdefghijkl", "bot", Tenant::parse("acme").unwrap());
    grant.scope = TokenScope::parse(&["face:mcp"]).unwrap();
    table.insert(Sha256::digest(token.as_str()).into(), grant);
    let auth = Auth { tokens: vec![bearer()], stored: Some(table.clone()) };
    let faces = vec![("/hello", "workflows"), ("/upgrade", "mcp"), ("/gate", "mcp")];
    let mut server = Server::start(Settings { auth, faces, ..settings() }).await;
    server.ask(&with_token("/hello", token.as_str())).await.refused(403, "UNAUTHORIZED");
    let mut socket = server.connect().await;
    let shown = format!("Authorization: Bearer {}\r\n\r\n", token.as_str());
    socket.send(UPGRADE.trim_end().to_owned() + "\r\n" + &shown).await;
    assert_eq!(socket.reply().await.status, 101);
    let mut waiting = server.connect().await;
    waiting.send(with_token("/gate", token.as_str())).await;
    server.entered().await;
    table.revoke("abcdefghijkl");
    let mut rest = Vec::new();
    // Closed, with or without a reset.
    let _ = within(socket.stream.read_to_end(&mut rest)).await;
    assert!(rest.is_empty());
    server.open.notify_one();
    assert_eq!(waiting.reply().await.body, "through");
    server.ask(&with_token("/gate", token.as_str())).await.refused(401, "UNAUTHENTICATED");
}
