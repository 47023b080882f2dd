//! What the guard lets through, what it refuses, and what every answer carries.

use sha2::{Digest, Sha256};

use super::{Server, settings};
use crate::{Auth, Settings, Token};

fn get(path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n")
}

fn bearer() -> Settings {
    let sha256_hex = Sha256::digest("s3cret").iter().map(|byte| format!("{byte:02x}")).collect();
    let token = Token {
        name: "ci".into(),
        sha256_hex,
        roles: vec!["admin".into()],
        tenant: "acme".into(),
        reuse_name: false,
    };
    Settings { auth: Auth { tokens: vec![token], stored: None }, ..settings() }
}

#[tokio::test]
async fn an_honest_request_is_served_with_security_headers() {
    let server = Server::start(settings()).await;
    for host in ["localhost", "LOCALHOST:1", "127.0.0.1:8088", "[::1]", &server.addr.to_string()] {
        let reply = server.ask(&format!("GET /hello HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
        assert_eq!((reply.status, reply.body.as_str()), (200, "hello"), "{host}");
        reply.secured();
        assert_eq!(reply.header("x-correlation-id"), None);
    }
}

#[tokio::test]
async fn an_evil_or_missing_host_is_forbidden() {
    let server = Server::start(settings()).await;
    let hosts = [
        "Host: evil.example.com\r\n",
        "Host: evil.example.com:8088\r\n",
        "Host: localhost.evil.example.com\r\n",
        "Host: 127.0.0.1.nip.io\r\n",
        "Host: localhost@evil.example.com\r\n",
        "Host: \r\n",
        "Host: localhost\r\nHost: evil.example.com\r\n",
        "Host: evil.example.com\r\nHost: localhost\r\n",
        "",
    ];
    for host in hosts {
        let reply = server.ask(&format!("GET /hello HTTP/1.1\r\n{host}\r\n")).await;
        reply.refused(403, "UNAUTHORIZED");
    }
    // A target that names a host of its own is held to it as well.
    let target = "GET http://evil.example.com/hello HTTP/1.1\r\nHost: localhost\r\n\r\n";
    server.ask(target).await.refused(403, "UNAUTHORIZED");
    let target = "GET http://localhost:1/hello HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert_eq!(server.ask(target).await.status, 200);
}

#[tokio::test]
async fn an_evil_origin_is_forbidden() {
    let server = Server::start(settings()).await;
    for evil in
        ["http://evil.example.com", "null", "https://localhost.evil.com", "http://localhost:1.evil.com", "x"]
    {
        server.ask(&get("/hello", &format!("Origin: {evil}\r\n"))).await.refused(403, "UNAUTHORIZED");
    }
    for own in ["http://localhost:3000", "http://127.0.0.1:8088", "http://[::1]"] {
        let reply = server.ask(&get("/hello", &format!("Origin: {own}\r\n"))).await;
        assert_eq!((reply.status, reply.header("access-control-allow-origin")), (200, None), "{own}");
    }
    let two = "Origin: http://localhost\r\nOrigin: http://evil.example.com\r\n";
    server.ask(&get("/hello", two)).await.refused(403, "UNAUTHORIZED");
}

#[tokio::test]
async fn a_page_of_another_server_of_this_machine_opens_no_socket() {
    let server = Server::start(settings()).await;
    let handshake = |origin: &str| {
        get("/hello", &format!("Connection: Upgrade\r\nUpgrade: websocket\r\nOrigin: {origin}\r\n"))
    };
    for stranger in ["http://localhost:3000", "http://127.0.0.1", "http://evil.example.com", "null"] {
        server.ask(&handshake(stranger)).await.refused(403, "UNAUTHORIZED");
    }
    // The route knows nothing of sockets; that it answers shows who may ask.
    assert_eq!(server.ask(&handshake("http://localhost")).await.status, 200);
    assert_eq!(server.ask(&get("/hello", "Upgrade: websocket\r\n")).await.status, 200, "no browser");
}

#[tokio::test]
async fn a_socket_may_bring_its_token_among_its_protocols() {
    let server = Server::start(bearer()).await;
    let offering = |token: &str, more: &str| {
        get("/who", &format!("{more}Sec-WebSocket-Protocol: orchestr8, orchestr8.bearer.{token}\r\n"))
    };
    // "s3cret" and "guess" in base64url.
    let known = server.ask(&offering("czNjcmV0", "Upgrade: websocket\r\n")).await;
    assert_eq!(known.body, r#"{"name":"ci","roles":["admin"],"tenant":"acme","verified":true}"#);
    server.ask(&offering("Z3Vlc3M", "Upgrade: websocket\r\n")).await.refused(401, "UNAUTHENTICATED");
    server.ask(&offering("czNjcmV0", "")).await.refused(401, "UNAUTHENTICATED");
}

#[tokio::test]
async fn a_configured_page_hears_that_it_may_read() {
    let allowed_origins = vec!["https://app.example.org".to_owned()];
    let server = Server::start(Settings { allowed_origins, ..bearer() }).await;
    let page = "Origin: https://app.example.org\r\n";
    let asked = "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization\r\n";
    let preflight = format!("OPTIONS /echo HTTP/1.1\r\nHost: localhost\r\n{page}{asked}\r\n");
    let reply = server.ask(&preflight).await;
    assert_eq!(reply.status, 204);
    assert_eq!(reply.header("access-control-allow-origin"), Some("https://app.example.org"));
    assert_eq!(reply.header("access-control-allow-headers"), Some("authorization"));
    assert!(reply.header("access-control-allow-methods").is_some_and(|methods| methods.contains("post")));
    // The preflight alone needs no token.
    let reply = server.ask(&get("/hello", page)).await;
    reply.refused(401, "UNAUTHENTICATED");
    assert_eq!(reply.header("access-control-allow-origin"), Some("https://app.example.org"));
    let reply = server.ask(&get("/hello", &format!("{page}Authorization: Bearer s3cret\r\n"))).await;
    assert_eq!((reply.status, reply.header("vary")), (200, Some("origin")));
    assert_eq!(reply.header("access-control-allow-origin"), Some("https://app.example.org"));
    // From any other page it is a plain request, and refused.
    let other = preflight.replace("app.example.org", "evil.example.com");
    server.ask(&other).await.refused(403, "UNAUTHORIZED");
}

#[tokio::test]
async fn with_a_bearer_profile_every_face_asks_for_a_token() {
    let server = Server::start(bearer()).await;
    let none = server.ask(&get("/who", "")).await;
    none.refused(401, "UNAUTHENTICATED");
    assert_eq!(none.header("www-authenticate"), Some("bearer realm=\"orchestr8\""));
    let wrong = server.ask(&get("/who", "Authorization: Bearer guess\r\n")).await;
    wrong.refused(401, "UNAUTHENTICATED");
    assert!(wrong.header("www-authenticate").unwrap().contains("invalid_token"));
    for path in ["/hello", "/version", "/nowhere", "/healthz/", "//healthz"] {
        server.ask(&get(path, "")).await.refused(401, "UNAUTHENTICATED");
    }
    let known = server.ask(&get("/who", "Authorization: Bearer s3cret\r\n")).await;
    assert_eq!(known.body, r#"{"name":"ci","roles":["admin"],"tenant":"acme","verified":true}"#);
    // Probes cannot show one.
    for path in ["/healthz", "/readyz"] {
        assert_eq!(server.ask(&get(path, "")).await.status, 200);
    }
}

#[tokio::test]
async fn over_loopback_the_caller_is_local_and_unverified() {
    let server = Server::start(settings()).await;
    let reply = server.ask(&get("/who", "")).await;
    assert_eq!(reply.body, r#"{"name":"local","roles":[],"tenant":"default","verified":false}"#);
}

#[tokio::test]
async fn health_and_version_are_json_and_never_cached() {
    let server = Server::start(settings()).await;
    for (path, body) in [
        ("/healthz", r#"{"status":"ok"}"#),
        ("/readyz", r#"{"status":"ready"}"#),
        ("/version", r#"{"name":"orchestr8","version":"1.2.3"}"#),
    ] {
        let reply = server.ask(&get(path, "")).await;
        assert_eq!((reply.status, reply.body.as_str()), (200, body));
        assert_eq!(reply.header("content-type"), Some("application/json"));
        assert_eq!(reply.header("cache-control"), Some("no-store"));
    }
}

#[tokio::test]
async fn an_unknown_path_or_method_is_refused_in_our_envelope() {
    let server = Server::start(settings()).await;
    for path in ["/", "/nowhere", "/hello/", "/../hello", "/%2e%2e/hello"] {
        server.ask(&get(path, "")).await.refused(404, "NOT_FOUND");
    }
    let reply = server.ask("DELETE /hello HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    reply.refused(405, "INVALID_ARGUMENT");
    assert_eq!(reply.header("allow"), Some("get,head"));
    server.ask("POST /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.refused(405, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn a_refusal_carries_the_clients_correlation_id_or_a_fresh_one() {
    let server = Server::start(settings()).await;
    let ask = async |header: &str| server.ask(&get("/nowhere", header)).await;
    let own = ask("X-Correlation-ID: req-7\r\n").await;
    assert_eq!(own.header("x-correlation-id"), Some("req-7"));
    let unfit = format!("X-Correlation-ID: {}\r\n", "x".repeat(129));
    for header in ["", "X-Correlation-ID: two words\r\n", &unfit] {
        let id = ask(header).await.header("x-correlation-id").unwrap().to_owned();
        assert!(id.starts_with("00000001-0000-4000-8000-"), "{id}");
    }
}

#[tokio::test]
async fn a_face_may_set_these_headers_itself() {
    let server = Server::start(settings()).await;
    let reply = server.ask(&get("/own", "X-Correlation-ID: mine\r\n")).await;
    assert_eq!(reply.header("content-security-policy"), Some("default-src 'none'"));
    assert_eq!(reply.header("x-correlation-id"), Some("own"));
    assert_eq!(reply.head.matches("content-security-policy").count(), 1);
}

/// Many clients send all of a body before they read a word of the answer; some send it in pieces and none of its length.
#[tokio::test]
async fn a_client_that_sends_everything_before_it_reads_gets_the_refusal() {
    let server = Server::start(Settings { body_limit_bytes: 1024 * 1024, ..settings() }).await;
    let body = "x".repeat(8 * 1024 * 1024);
    let announced =
        format!("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let chunked = format!(
        "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    for request in [announced, chunked] {
        let mut client = server.connect().await;
        client.send(&request).await;
        client.reply().await.refused(413, "PAYLOAD_TOO_LARGE");
    }
}

#[tokio::test]
async fn encoded_and_oversized_bodies_are_refused_before_they_are_read() {
    let server = Server::start(Settings { body_limit_bytes: 10, ..settings() }).await;
    let post =
        |headers: &str, body: &str| format!("POST /echo HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n{body}");
    let fits = server.ask(&post("Content-Length: 10\r\n", "0123456789")).await;
    assert_eq!((fits.status, fits.body.as_str()), (200, "0123456789"));
    let plain = server.ask(&post("Content-Length: 1\r\nContent-Encoding: identity\r\n", "x")).await;
    assert_eq!(plain.status, 200);
    // Announced only: the answer does not wait for the body.
    for length in ["11", "4294967296"] {
        let reply = server.ask(&post(&format!("Content-Length: {length}\r\n"), "")).await;
        reply.refused(413, "PAYLOAD_TOO_LARGE");
    }
    let expecting = server.ask(&post("Content-Length: 11\r\nExpect: 100-continue\r\n", "")).await;
    expecting.refused(413, "PAYLOAD_TOO_LARGE");
    let chunked =
        server.ask(&post("Transfer-Encoding: chunked\r\n", "6\r\n012345\r\n5\r\n01234\r\n0\r\n\r\n")).await;
    chunked.refused(413, "PAYLOAD_TOO_LARGE");
    let unread = server
        .ask(
            &post("Transfer-Encoding: chunked\r\n", "b\r\n0123456789a\r\n0\r\n\r\n")
                .replace("/echo", "/take"),
        )
        .await;
    unread.refused(413, "PAYLOAD_TOO_LARGE");
    assert!(unread.body.contains("larger than 10 bytes"));
    for coding in ["gzip", "br", "deflate", "identity, gzip"] {
        let reply =
            server.ask(&post(&format!("Content-Length: 1\r\nContent-Encoding: {coding}\r\n"), "x")).await;
        reply.refused(415, "INVALID_ARGUMENT");
        assert_eq!(reply.header("accept-encoding"), Some("identity"));
    }
}

#[tokio::test]
async fn a_panic_in_a_route_is_answered_and_the_connection_lives() {
    let server = Server::start(settings()).await;
    let mut client = server.connect().await;
    for _ in 0..2 {
        client.send(get("/panic", "X-Correlation-ID: boom-1\r\n")).await;
        let reply = client.reply().await;
        reply.refused(500, "INTERNAL");
        assert_eq!(reply.header("x-correlation-id"), Some("boom-1"));
        assert!(!reply.body.contains("panics in this test"));
    }
    client.send(get("/hello", "")).await;
    assert_eq!(client.reply().await.status, 200);
}

#[tokio::test]
async fn a_face_refuses_below_its_paths_in_its_own_words() {
    let mut settings = bearer();
    settings.voices = vec![std::sync::Arc::new(|path, refusal, id| {
        let text = format!("{} {} {}", refusal.status.as_u16(), refusal.code, id.to_str().ok()?);
        path.starts_with("/mine/").then(|| axum::response::Response::new(text.into()))
    })];
    let server = Server::start(settings).await;
    let own = server.ask(&get("/mine/x", "X-Correlation-ID: c1\r\n")).await;
    assert_eq!(own.body, "401 UNAUTHENTICATED c1");
    assert_eq!(own.header("x-correlation-id"), Some("c1"));
    assert!(own.header("www-authenticate").is_some());
    own.secured();
    server.ask(&get("/hello", "")).await.refused(401, "UNAUTHENTICATED");
}

#[tokio::test]
async fn a_face_with_credentials_of_its_own_asks_itself() {
    let server = Server::start(Settings { own_credentials: vec!["/who"], ..bearer() }).await;
    let nobody = server.ask(&get("/who", "")).await;
    assert_eq!(nobody.status, 200);
    assert!(!nobody.body.contains("ci"), "{}", nobody.body);
    let known = server.ask(&get("/who", "Authorization: Bearer s3cret\r\n")).await;
    assert!(known.body.contains("ci"), "{}", known.body);
    server.ask(&get("/hello", "")).await.refused(401, "UNAUTHENTICATED");
    server.ask(&get("/whoever", "")).await.refused(401, "UNAUTHENTICATED");
}
