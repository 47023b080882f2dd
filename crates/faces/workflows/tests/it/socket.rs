//! WS /ws: the same events over a WebSocket (contract: Live).

use futures::{SinkExt, StreamExt};
use http::{HeaderValue, StatusCode};
use orchestr8_workflows_face::Settings;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::server::{PATIENCE, Server};

struct Client(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Client {
    async fn connect(server: &Server, path: &str) -> Self {
        let (socket, response) = connect_async(format!("ws://{}{path}", server.address)).await.unwrap();
        assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
        Self(socket)
    }

    async fn say(&mut self, message: Value) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    async fn next(&mut self) -> Option<Message> {
        timeout(PATIENCE, self.0.next()).await.unwrap().and_then(Result::ok)
    }

    /// The next text; pings are answered by the library.
    async fn hear(&mut self) -> Value {
        loop {
            match self.next().await {
                Some(Message::Text(text)) => return serde_json::from_str(&text).unwrap(),
                Some(Message::Ping(_) | Message::Pong(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// The code and the reason of the close, whatever comes before it.
    async fn closed(&mut self) -> (u16, String) {
        loop {
            match self.next().await {
                Some(Message::Close(Some(frame))) => return (frame.code.into(), frame.reason.to_string()),
                Some(_) => {}
                None => panic!("gone without a word"),
            }
        }
    }
}

#[tokio::test]
async fn a_socket_begins_with_its_connection_and_tells_what_happens() {
    let server = Server::start(Settings::new("1")).await;
    for path in ["/ws", "/v1/ws", "/api/v1/ws"] {
        let mut client = Client::connect(&server, path).await;
        let first = client.hear().await;
        assert_eq!(first["type"], "connection.established", "{first}");
        assert!(first["data"]["connectionId"].is_string() && first["data"]["heartbeatMs"] == 30_000);
        server.feed.push("workflow.started", "e1");
        let event = client.hear().await;
        assert_eq!((&event["type"], &event["executionId"]), (&json!("workflow.started"), &json!("e1")));
        client.say(json!({"type": "ping"})).await;
        assert_eq!(client.hear().await["type"], "pong");
    }
}

#[tokio::test]
async fn subscriptions_choose_and_resume() {
    let server = Server::start(Settings::new("1")).await;
    let mut client = Client::connect(&server, "/ws").await;
    client.hear().await;
    client.say(json!({"type": "subscribe", "executionId": "e2"})).await;
    client.say(json!({"type": "ping"})).await;
    assert_eq!(client.hear().await["type"], "pong");
    server.feed.push("workflow.started", "e1");
    server.feed.push("workflow.started", "e2");
    assert_eq!(client.hear().await["executionId"], "e2");
    // From an id on, the past is told again.
    client.say(json!({"type": "subscribe", "lastEventId": 0})).await;
    assert_eq!(client.hear().await["id"], 1);
    assert_eq!(client.hear().await["id"], 2);
    client.say(json!({"type": "unsubscribe"})).await;
    client.say(json!({"type": "ping"})).await;
    assert_eq!(client.hear().await["type"], "pong");
    server.feed.push("workflow.completed", "e1");
    client.say(json!({"type": "ping"})).await;
    assert_eq!(client.hear().await["type"], "pong", "nothing is told to whom nothing interests");
}

#[tokio::test]
async fn a_strange_message_is_answered_and_the_session_goes_on() {
    let server = Server::start(Settings::new("1")).await;
    let mut client = Client::connect(&server, "/ws?lastEventId=0").await;
    client.hear().await;
    for strange in [json!({"type": "dance"}), json!([]), json!({"type": "ping", "extra": 1})] {
        client.say(strange).await;
        let answer = client.hear().await;
        assert_eq!((&answer["type"], &answer["error"]["code"]), (&json!("error"), &json!("VALIDATION")));
    }
    client.say(json!({"type": "ping"})).await;
    assert_eq!(client.hear().await["type"], "pong");
}

#[tokio::test]
async fn figures_come_at_intervals_while_subscribed() {
    let server = Server::start(Settings { metrics_ms: 10, ..Settings::new("1") }).await;
    let mut client = Client::connect(&server, "/ws").await;
    client.hear().await;
    for _ in 0..2 {
        let told = client.hear().await;
        assert_eq!((&told["type"], &told["data"]), (&json!("metrics.update"), &json!({"running": 1})));
    }
}

#[tokio::test]
async fn messages_have_a_size_and_a_form() {
    let server = Server::start(Settings::new("1")).await;
    for wrong in [Message::text("x".repeat(65_537)), Message::binary(vec![1, 2, 3])] {
        let mut client = Client::connect(&server, "/ws").await;
        client.hear().await;
        client.0.send(wrong).await.unwrap();
        let (code, reason) = client.closed().await;
        assert_eq!((code, reason.as_str()), (1008, "messages are JSON text of at most 64 KiB"));
    }
}

#[tokio::test]
async fn a_silent_client_is_closed_and_one_that_answers_pings_is_not() {
    let server = Server::start(Settings { heartbeat_ms: 20, idle_ms: 200, ..Settings::new("1") }).await;
    let mut client = Client::connect(&server, "/ws").await;
    // A client that reads answers the server's pings by itself, and so stays for many times the limit.
    let pings = async {
        let mut pings = 0;
        while pings < 30 {
            pings += u32::from(matches!(client.next().await, Some(Message::Ping(_))));
        }
    };
    pings.await;
    // The pings that came in while it did not read are answered only when it reads again, which is too late.
    let mut silent = server
        .open(
            "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        )
        .await;
    silent.until("nothing was heard for a minute").await;
}

#[tokio::test]
async fn sockets_end_with_a_word_when_the_server_stops() {
    let server = Server::start(Settings::new("1")).await;
    let mut client = Client::connect(&server, "/ws").await;
    client.hear().await;
    server.stop.cancel();
    assert_eq!(client.closed().await, (1012, "the server is stopping".to_owned()));
}

#[tokio::test]
async fn a_slow_reader_is_closed_and_holds_up_nobody() {
    let server = Server::start(Settings { send_timeout_ms: 50, ..Settings::new("1") }).await;
    let slow = server
        .open(
            "GET /ws?lastEventId=0 HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        )
        .await;
    let filler = "x".repeat(64 * 1024);
    for _ in 0..400 {
        server.feed.push(&filler, "e1");
    }
    let mut quick = Client::connect(&server, "/ws?lastEventId=399").await;
    quick.hear().await;
    assert_eq!(quick.hear().await["id"], 400, "others are told meanwhile");
    timeout(PATIENCE, server.world.logged.until("too slow")).await.unwrap();
    // It took what the socket's buffers held, then it was cut: the end comes before the last event.
    let told = slow.rest_lossy().await;
    assert!(!told.contains("\"id\":400"), "{} bytes", told.len());
}

#[tokio::test]
async fn pages_of_other_origins_are_kept_out() {
    let server = Server::start(Settings::new("1")).await;
    let mut request = format!("ws://{}/ws", server.address).into_client_request().unwrap();
    request.headers_mut().insert("origin", HeaderValue::from_static("http://evil.example.com"));
    match connect_async(request).await {
        Err(tungstenite::Error::Http(response)) => assert_eq!(response.status(), 403),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn whoever_does_not_upgrade_is_told_how() {
    let server = Server::start(Settings::new("1")).await;
    let answer = server.world.get("/v1/ws").await;
    assert_eq!(answer.error(426), "VALIDATION");
    assert_eq!(answer.header("upgrade"), "websocket");
}
