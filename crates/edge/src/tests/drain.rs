//! Beginning and end: binding, connection limits, failing accepts, and draining.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::{Client, SOON_MS, Server, settings, within};
use crate::serve::{Source, serve_from};
use crate::{Drained, Error, Settings, bind, serve};

const HELLO: &str = "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n";
const GATE: &str = "GET /gate HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[tokio::test]
async fn draining_finishes_what_is_in_flight_and_closes_what_is_idle() {
    let mut server = Server::start(settings()).await;
    let mut silent = server.connect().await;
    let mut idle = server.connect().await;
    idle.send(HELLO).await;
    assert_eq!(idle.reply().await.status, 200);
    let mut half = server.connect().await;
    half.send(HELLO).await;
    assert_eq!(half.reply().await.status, 200);
    half.send("GET /readyz HTTP/1.1\r\n").await;
    let mut busy = server.connect().await;
    busy.send(GATE).await;
    server.entered().await;

    server.shutdown.cancel();
    idle.closed().await;
    silent.closed().await;
    assert!(TcpStream::connect(server.addr).await.is_err(), "nobody new is let in");
    // A head begun before is heard out, and learns that we are leaving.
    half.send("Host: localhost\r\n\r\n").await;
    let reply = half.reply().await;
    assert_eq!((reply.status, reply.body.as_str()), (503, r#"{"reasons":["draining"],"status":"unready"}"#));
    assert_eq!(reply.header("connection"), Some("close"));
    half.closed().await;
    server.open.notify_one();
    let reply = busy.reply().await;
    assert_eq!((reply.body.as_str(), reply.header("connection")), ("through", Some("close")));
    busy.closed().await;
    drop((half, busy));
    assert_eq!(server.drained().await.cut, 0);
}

#[tokio::test]
async fn what_does_not_finish_in_time_is_cut_and_counted() {
    let mut server = Server::start(Settings { drain_timeout_ms: SOON_MS, ..settings() }).await;
    let mut stuck = Vec::new();
    for _ in 0..3 {
        let mut client = server.connect().await;
        client.send(GATE).await;
        server.entered().await;
        stuck.push(client);
    }
    let mut slow = server.connect().await;
    slow.send(HELLO).await;
    assert_eq!(slow.reply().await.status, 200);
    server.shutdown.cancel();
    assert_eq!(server.drained().await, Drained { finished: 1, cut: 3 });
    for mut client in stuck {
        client.closed().await;
    }
}

#[tokio::test]
async fn beyond_the_connection_limit_clients_are_told_and_a_freed_seat_is_used() {
    let mut server =
        Server::start(Settings { max_connections: 2, max_connections_per_ip: Some(3), ..settings() }).await;
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    for client in [&mut first, &mut second] {
        client.send(GATE).await;
        server.entered().await;
    }
    for _ in 0..3 {
        let mut third = server.connect().await;
        let reply = third.reply().await;
        reply.refused(503, "RESOURCE_EXHAUSTED");
        assert_eq!(reply.header("retry-after"), Some("1"));
        third.closed().await;
    }
    server.open.notify_one();
    // Whoever was at the gate first leaves and makes room.
    assert_eq!(first.reply().await.body, "through");
    drop(first);
    loop {
        let mut next = server.connect().await;
        next.send(HELLO).await;
        match next.reply().await.status {
            200 => break,
            status => assert_eq!(status, 503),
        }
    }
}

#[tokio::test]
async fn an_upgraded_connection_is_its_faces_and_keeps_its_seat() {
    let server =
        Server::start(Settings { max_connections: 1, max_connections_per_ip: Some(2), ..settings() }).await;
    let mut client = server.connect().await;
    client
        .send("GET /upgrade HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n")
        .await;
    assert_eq!(client.reply().await.status, 101);
    for word in ["one", "two"] {
        client.send(word).await;
        let mut echo = [0; 3];
        within(client.stream.read_exact(&mut echo)).await.unwrap();
        assert_eq!(echo, word.as_bytes());
    }
    server.connect().await.reply().await.refused(503, "RESOURCE_EXHAUSTED");
    within(client.stream.shutdown()).await.unwrap();
    client.closed().await;
}

#[tokio::test]
async fn one_address_cannot_take_every_seat() {
    let mut server = Server::start(Settings { max_connections_per_ip: Some(1), ..settings() }).await;
    let mut first = server.connect().await;
    first.send(GATE).await;
    server.entered().await;
    server.connect().await.reply().await.refused(429, "RESOURCE_EXHAUSTED");
    server.open.notify_one();
    assert_eq!(first.reply().await.status, 200);
    // Idle, it makes room for the next.
    assert_eq!(server.ask(HELLO).await.status, 200);
    first.closed().await;
}

/// Fails as a system without free descriptors does, then recovers; keeps a second handle on what it accepts.
struct Failing {
    listener: TcpListener,
    errors: Mutex<Vec<i32>>,
    accepted: Arc<Mutex<Option<std::net::TcpStream>>>,
}

impl Source for Failing {
    async fn next(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let error = self.errors.lock().unwrap().pop();
        if let Some(code) = error {
            return Err(io::Error::from_raw_os_error(code));
        }
        let (stream, peer) = self.listener.accept().await?;
        let stream = stream.into_std()?;
        *self.accepted.lock().unwrap() = Some(stream.try_clone()?);
        Ok((TcpStream::from_std(stream)?, peer))
    }
}

#[tokio::test]
async fn failing_accepts_are_survived_and_small_answers_leave_at_once() {
    const EMFILE: i32 = 24;
    const ECONNABORTED: i32 = 103;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let errors = Mutex::new(vec![EMFILE, ECONNABORTED, EMFILE, EMFILE]);
    let accepted = Arc::default();
    let source = Failing { listener, errors, accepted: Arc::clone(&accepted) };
    let shutdown = CancellationToken::new();
    let router = Router::new().route("/hello", get(async || "hello"));
    let task = tokio::spawn(serve_from(source, addr, router, settings(), shutdown.clone()));
    let mut client = Client { stream: TcpStream::connect(addr).await.unwrap(), buffer: Vec::new() };
    client.send(HELLO).await;
    assert_eq!(client.reply().await.body, "hello");
    assert!(accepted.lock().unwrap().take().unwrap().nodelay().unwrap());
    shutdown.cancel();
    within(task).await.unwrap().unwrap();
}

#[tokio::test]
async fn an_endless_accept_failure_does_not_hinder_the_end() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let source = Failing { listener, errors: Mutex::new(vec![24; 1_000]), accepted: Arc::default() };
    let shutdown = CancellationToken::new();
    let task = tokio::spawn(serve_from(source, addr, Router::new(), settings(), shutdown.clone()));
    shutdown.cancel();
    assert_eq!(within(task).await.unwrap().unwrap(), Drained { finished: 0, cut: 0 });
}

#[tokio::test]
async fn an_open_address_without_credentials_is_never_served() {
    let open = Settings { listen: "0.0.0.0:0".parse().unwrap(), ..settings() };
    assert!(matches!(bind(&open).await, Err(Error::OpenBind { addr }) if addr == open.listen));
    // Nor can a listener bound elsewhere slip by.
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let outcome = serve(listener, Router::new(), settings(), CancellationToken::new()).await;
    assert!(matches!(outcome, Err(Error::OpenBind { .. })));
}

#[tokio::test]
async fn a_taken_port_is_named_with_a_hint() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listen = taken.local_addr().unwrap();
    let error = bind(&Settings { listen, ..settings() }).await.unwrap_err();
    assert!(error.to_string().contains(&listen.to_string()));
    assert!(error.hint().contains("another process"));
}
