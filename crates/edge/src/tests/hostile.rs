//! Input that is not what it should be: always an answer, never harm to others.

use tokio::io::AsyncWriteExt;

use super::{Server, settings, within};

const HELLO: &str = "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[tokio::test]
async fn garbage_is_answered_in_our_envelope_and_closed() {
    let server = Server::start(settings()).await;
    let inputs: [&[u8]; 9] = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"\x00\x00\x00\x00\r\n\r\n",
        b"hello there\r\n\r\n",
        b"GET /hello HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"GET /hello\r\n\r\n",
        b"GET /hello HTTP/1.1\r\nHost localhost\r\n\r\n",
        b"GET /hello HTTP/1.1\r\nHost: local\x00host\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ];
    for input in inputs {
        let mut client = server.connect().await;
        client.send(input).await;
        let reply = client.reply().await;
        assert_eq!(reply.header("connection"), Some("close"), "{}", input.escape_ascii());
        reply.refused(400, "INVALID_ARGUMENT");
        client.closed().await;
    }
    assert_eq!(server.ask(HELLO).await.status, 200);
}

#[tokio::test]
async fn a_head_cut_short_is_answered() {
    let server = Server::start(settings()).await;
    let mut client = server.connect().await;
    client.send("GET /hello HTTP/1.1\r\nHost: loc").await;
    within(client.stream.shutdown()).await.unwrap();
    client.reply().await.refused(400, "INVALID_ARGUMENT");
    client.closed().await;
}

#[tokio::test]
async fn a_client_that_connects_and_leaves_is_no_event() {
    let server = Server::start(settings()).await;
    for first in ["", "\r\n"] {
        let mut client = server.connect().await;
        client.send(first).await;
        within(client.stream.shutdown()).await.unwrap();
        client.closed().await;
    }
    assert_eq!(server.ask(HELLO).await.status, 200);
}

#[tokio::test]
async fn oversized_heads_are_refused() {
    let server = Server::start(settings()).await;
    let long = |length: usize| format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a".repeat(length - 1));
    assert_eq!(server.ask(&long(8_000)).await.status, 404);
    server.ask(&long(8_001)).await.refused(414, "PAYLOAD_TOO_LARGE");
    let wide = |length: usize| {
        format!("GET /hello HTTP/1.1\r\nHost: localhost\r\nX-Wide: {}\r\n\r\n", "a".repeat(length))
    };
    assert_eq!(server.ask(&wide(30_000)).await.status, 200);
    let many = |count: usize| {
        let headers: String = (1..count).map(|n| format!("X-Many-{n}: 1\r\n")).collect();
        format!("GET /hello HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n")
    };
    assert_eq!(server.ask(&many(100)).await.status, 200);
    for request in [wide(33_000), wide(1_000_000), long(100_000), many(101), many(2_000)] {
        let mut client = server.connect().await;
        // The server may stop reading before the end, so sending may fail; the answer must still come.
        let _ = within(client.stream.write_all(request.as_bytes())).await;
        let reply = client.reply().await;
        assert!([414, 431].contains(&reply.status), "{reply:?}");
        reply.refused(reply.status, "PAYLOAD_TOO_LARGE");
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = Server::start(settings()).await;
    let mut client = server.connect().await;
    let posts: String = (0..20)
        .map(|n| format!("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{n:02}"))
        .collect();
    client.send(format!("{HELLO}{posts}GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n{HELLO}")).await;
    assert_eq!(client.reply().await.body, "hello");
    for n in 0..20 {
        assert_eq!(client.reply().await.body, format!("{n:02}"));
    }
    client.reply().await.refused(404, "NOT_FOUND");
    assert_eq!(client.reply().await.body, "hello");
}

#[tokio::test]
async fn garbage_after_a_good_request_spoils_only_itself() {
    let server = Server::start(settings()).await;
    let mut client = server.connect().await;
    client.send(format!("{HELLO}\x01\x02\x03\r\n\r\n")).await;
    assert_eq!(client.reply().await.body, "hello");
    client.reply().await.refused(400, "INVALID_ARGUMENT");
    client.closed().await;
}

#[tokio::test]
async fn an_older_client_is_served_once() {
    let server = Server::start(settings()).await;
    let mut client = server.connect().await;
    client.send("GET /hello HTTP/1.0\r\nHost: localhost\r\n\r\n").await;
    let reply = client.reply().await;
    assert_eq!((reply.status, reply.body.as_str()), (200, "hello"));
    client.closed().await;
    // Without a Host nobody knows whom it meant, however old the protocol.
    server.ask("GET /hello HTTP/1.0\r\n\r\n").await.refused(403, "UNAUTHORIZED");
    let mut client = server.connect().await;
    for _ in 0..2 {
        client.send("GET /hello HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n").await;
        assert_eq!(client.reply().await.body, "hello");
    }
}

#[tokio::test]
async fn odd_methods_and_targets_are_refused() {
    let server = Server::start(settings()).await;
    for (line, status) in [
        ("CONNECT localhost:80", 404),
        ("CONNECT evil.example.com:443", 403),
        ("OPTIONS *", 404),
        ("TRACE /hello", 405),
        ("BREW /hello", 405),
        ("HEAD /nowhere", 404),
    ] {
        let mut client = server.connect().await;
        client.send(format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")).await;
        let reply = client.rest().await;
        assert!(
            reply.starts_with(format!("HTTP/1.1 {status}").as_bytes()),
            "{line}: {}",
            reply.escape_ascii()
        );
    }
    assert_eq!(server.ask(HELLO).await.status, 200);
}

#[tokio::test]
async fn a_broken_body_is_told_to_the_face() {
    let server = Server::start(settings()).await;
    let post = "POST /echo HTTP/1.1\r\nHost: localhost\r\n";
    let broken = format!("{post}Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n");
    server.ask(&broken).await.refused(400, "INVALID_ARGUMENT");
    // Two framings at once are a smuggler's tool: the chunks win, and the connection does not go on.
    let mut client = server.connect().await;
    let both =
        format!("{post}Content-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n{HELLO}");
    client.send(both).await;
    let reply = client.reply().await;
    assert!(
        reply.status == 400 || reply.body == "ok" && reply.header("connection") == Some("close"),
        "{reply:?}"
    );
    client.closed().await;
}

#[tokio::test]
async fn a_refusal_is_read_even_by_a_client_that_keeps_sending() {
    let server = Server::start(settings()).await;
    let mut client = server.connect().await;
    client.send("POST /echo HTTP/1.1\r\nHost: evil.example.com\r\nContent-Length: 4000000\r\n\r\n").await;
    within(client.stream.peek(&mut [0])).await.unwrap();
    // The answer is there. A closed socket would now reset the connection, and sending would fail.
    client.send("x").await;
    client.send(vec![b'x'; 100_000]).await;
    client.reply().await.refused(403, "UNAUTHORIZED");
}

#[tokio::test]
async fn a_waiting_client_is_told_to_go_on_with_its_body() {
    let server = Server::start(settings()).await;
    let mut client = server.connect().await;
    client
        .send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        .await;
    assert_eq!(client.reply().await.status, 100);
    client.send("ok").await;
    assert_eq!(client.reply().await.body, "ok");
}
