//! Clients that take their time: each wait has its limit, and work has none here.

use tokio::io::AsyncWriteExt;

use super::{Client, SOON_MS, Server, settings, within};
use crate::Settings;

const HELLO: &str = "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[tokio::test]
async fn a_silent_connection_is_closed() {
    let server = Server::start(Settings { first_byte_timeout_ms: SOON_MS, ..settings() }).await;
    server.connect().await.closed().await;
}

#[tokio::test]
async fn a_head_that_does_not_end_is_answered_408() {
    let server = Server::start(Settings { header_timeout_ms: SOON_MS, ..settings() }).await;
    let mut client = server.connect().await;
    client.send("GET /hello HTTP/1.1\r\nHost: loc").await;
    let reply = client.reply().await;
    reply.refused(408, "TIMEOUT");
    assert_eq!(reply.header("connection"), Some("close"));
    client.closed().await;
}

/// Sends one byte at a time until the server has had enough.
async fn drip(client: &mut Client, bytes: impl Iterator<Item = u8>) {
    let mut pace = tokio::time::interval(std::time::Duration::from_millis(SOON_MS / 8));
    for byte in bytes {
        pace.tick().await;
        let mut seen = [0];
        let answered = matches!(client.stream.try_read(&mut seen), Ok(1));
        if answered {
            client.buffer.push(seen[0]);
            return;
        }
        if client.stream.write_all(&[byte]).await.is_err() {
            return;
        }
    }
    panic!("the server took the whole drip");
}

#[tokio::test]
async fn a_dripped_head_gains_no_time() {
    let server = Server::start(Settings { header_timeout_ms: SOON_MS, ..settings() }).await;
    let mut client = server.connect().await;
    client.send("GET /hello HTTP/1.1\r\nHost: localhost\r\nX-Drip: ").await;
    within(drip(&mut client, std::iter::repeat_n(b'x', 2_000))).await;
    client.reply().await.refused(408, "TIMEOUT");
}

#[tokio::test]
async fn a_second_slow_head_is_answered_408_too() {
    let server = Server::start(Settings { header_timeout_ms: SOON_MS, ..settings() }).await;
    let mut client = server.connect().await;
    client.send(HELLO).await;
    assert_eq!(client.reply().await.status, 200);
    client.send("GET /hello HTTP").await;
    client.reply().await.refused(408, "TIMEOUT");
    client.closed().await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_without_a_word() {
    let server = Server::start(Settings { idle_timeout_ms: SOON_MS, ..settings() }).await;
    let mut client = server.connect().await;
    for _ in 0..3 {
        client.send(HELLO).await;
        assert_eq!(client.reply().await.status, 200);
    }
    // A body that comes after its head is not taken for the beginning of another head.
    client
        .send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        .await;
    assert_eq!(client.reply().await.status, 100);
    client.send("ok").await;
    assert_eq!(client.reply().await.body, "ok");
    client.closed().await;
}

#[tokio::test]
async fn a_body_that_stalls_or_drips_is_answered_408() {
    let server = Server::start(Settings { body_timeout_ms: SOON_MS, ..settings() }).await;
    let head = "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3000\r\n\r\nsome";
    let mut client = server.connect().await;
    client.send(head).await;
    client.reply().await.refused(408, "TIMEOUT");
    client.closed().await;
    let mut client = server.connect().await;
    client.send(head).await;
    within(drip(&mut client, std::iter::repeat_n(b'x', 2_000))).await;
    client.reply().await.refused(408, "TIMEOUT");
}

#[tokio::test]
async fn a_client_that_takes_nothing_of_its_answer_is_cut() {
    let mut server = Server::start(Settings { write_timeout_ms: SOON_MS, ..settings() }).await;
    let mut client = server.connect().await;
    client.send("GET /flood HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    // The endless answer is dropped although its client is still there.
    server.entered().await;
    assert_eq!(server.ask(HELLO).await.status, 200);
}

#[tokio::test]
async fn work_may_take_longer_than_every_wait() {
    let (first_byte_timeout_ms, header_timeout_ms) = (SOON_MS, SOON_MS);
    let (idle_timeout_ms, write_timeout_ms) = (SOON_MS, SOON_MS);
    let brisk = Settings {
        first_byte_timeout_ms,
        header_timeout_ms,
        idle_timeout_ms,
        write_timeout_ms,
        ..settings()
    };
    let mut server = Server::start(brisk).await;
    let mut worker = server.connect().await;
    worker.send("GET /gate HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    server.entered().await;
    // Meanwhile three others run into the limits one after the other.
    for _ in 0..3 {
        let mut idle = server.connect().await;
        idle.send(HELLO).await;
        assert_eq!(idle.reply().await.status, 200);
        idle.closed().await;
    }
    server.open.notify_one();
    assert_eq!(worker.reply().await.body, "through");
}

#[tokio::test]
async fn slow_clients_do_not_delay_honest_ones() {
    let server = Server::start(settings()).await;
    let mut slow = Vec::new();
    for n in 0..200 {
        let mut client = server.connect().await;
        client
            .send(
                [
                    "",
                    "GET /hello HTTP/1.1\r\nHost: l",
                    "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx",
                ][n % 3],
            )
            .await;
        slow.push(client);
    }
    assert_eq!(server.ask(HELLO).await.status, 200);
    for client in &mut slow {
        let nothing = client.stream.try_read(&mut [0]);
        assert!(matches!(nothing, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock));
    }
}
