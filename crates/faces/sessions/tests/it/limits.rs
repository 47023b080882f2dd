//! Limits that a transcript cannot show: clients that do not read, do not answer, or are too many.

use std::time::Duration;

use futures::StreamExt;
use orchestr8_kernel::Limits;
use orchestr8_sessions_face::{Ended, Settings};
use serde_json::json;

use crate::world::{Client, Over, World, settings};

/// What a socket that is not read takes in before it takes no more.
const SMALL_PIPE: usize = 4096;

async fn talk(world: &World, talker: &mut Client, times: usize) {
    for n in 0..times {
        talker.ask(json!({"type": "set_session_name", "sessionId": "s1", "name": n.to_string()})).await;
    }
    assert_eq!(world.face.connections(), 2);
}

#[tokio::test(start_paused = true)]
async fn broadcasts_pass_a_slow_reader_by() {
    for over in [Over::WebSocket, Over::Stdio] {
        let world = World::new();
        let mut talker = world.client(Over::WebSocket).await;
        talker.create("s1").await;
        let mut slow = world.stranger(over, SMALL_PIPE).await;
        slow.hear().await;
        talk(&world, &mut talker, 500).await;
        let dropped = world.face.figures()["droppedBroadcasts"].as_u64().unwrap();
        assert!(dropped > 100, "{over:?}: {dropped}");
        // It is still there, and gets the answer to what it asks.
        slow.tell(json!({"type": "list_sessions", "id": "mine"})).await;
        assert_eq!(slow.response().await["id"], "mine", "{over:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_leaves_too_much_unread_is_cut_off() {
    let world = World::with(Settings { hard_bytes: 200_000, ..settings() }, Limits::default());
    let mut talker = world.client(Over::WebSocket).await;
    talker.create("s1").await;
    let mut slow = world.stranger(Over::WebSocket, SMALL_PIPE).await;
    slow.hear().await;
    assert_eq!(slow.ask(json!({"type": "switch_session", "sessionId": "s1"})).await["success"], true);
    // Events that matter are never passed by; there are more of them than it may leave unread.
    for _ in 0..30 {
        talker.ask(json!({"type": "prompt", "sessionId": "s1", "message": "say 100"})).await;
    }
    let (mut last, mut heard) = (String::new(), 0_usize);
    while let Some(text) = slow.next_text().await {
        heard += text.len();
        last = text;
    }
    assert_eq!(last, "closed 1011 Server overloaded - backpressure critical");
    assert!(heard < 100_000, "what it left unread is given up: {heard}");
    assert_eq!(world.face.figures()["slowReadersClosed"], 1);
    assert_eq!(world.face.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pipe_that_is_not_read_ends() {
    let world = World::with(Settings { hard_bytes: 200_000, ..settings() }, Limits::default());
    let mut talker = world.client(Over::WebSocket).await;
    talker.create("s1").await;
    let mut slow = world.stranger(Over::Stdio, SMALL_PIPE).await;
    slow.hear().await;
    assert_eq!(slow.ask(json!({"type": "switch_session", "sessionId": "s1"})).await["success"], true);
    for _ in 0..30 {
        talker.ask(json!({"type": "prompt", "sessionId": "s1", "message": "say 100"})).await;
    }
    let Client::Pipes(pipes) = slow else { panic!("no pipes") };
    assert_eq!(pipes.served.await.unwrap(), Ended::Slow);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_answers_no_ping_is_closed() {
    let world = World::with(Settings { ping_ms: 30_000, ..settings() }, Limits::default());
    let mut honest = world.client(Over::WebSocket).await;
    let mut silent = world.client(Over::WebSocket).await;
    // Reading is what answers pings; only one of them reads.
    let reading = tokio::spawn(async move {
        let answer = honest.ask(json!({"type": "list_sessions"})).await;
        assert_eq!(answer["success"], true);
        tokio::time::timeout(Duration::from_secs(300), honest.next_text()).await.unwrap_err();
        honest
    });
    tokio::time::sleep(Duration::from_secs(39)).await;
    assert_eq!(world.face.connections(), 2);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut last = String::new();
    while let Some(text) = silent.next_text().await {
        last = text;
    }
    assert_eq!(last, "closed 1001 Heartbeat timeout");
    let _honest = reading.await.unwrap();
    assert_eq!(world.face.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_client_too_many_is_told_so() {
    let world = World::with(Settings { connections: 1, ..settings() }, Limits::default());
    let mut first = world.client(Over::WebSocket).await;
    let mut second = world.stranger(Over::WebSocket, SMALL_PIPE).await;
    assert_eq!(second.hear_text().await, "closed 1013 Connection limit reached (1 connections)");
    let Client::Pipes(third) = world.stranger(Over::Stdio, SMALL_PIPE).await else { panic!("no pipes") };
    assert_eq!(third.served.await.unwrap(), Ended::TurnedAway);
    let health = first.ask(json!({"type": "health_check"})).await;
    assert_eq!(health["data"]["issues"], json!(["Connection count at 1/1 (90%+)"]));
    assert_eq!(world.face.figures()["commandsRejected"]["connectionLimit"], 2);
    drop(first);
    drop(second);
    orchestr8_testing::until("the first to be gone", || world.face.connections() == 0).await;
    world.client(Over::WebSocket).await;
}

#[tokio::test(start_paused = true)]
async fn a_message_beyond_all_bounds_ends_the_connection_and_nothing_else() {
    let world = World::with(Settings { message_bytes: 1000, ..settings() }, Limits::default());
    let mut client = world.client(Over::WebSocket).await;
    client.tell_text(&"x".repeat(100_000)).await;
    assert_eq!(client.response().await["error"], "Message size 100000 exceeds limit 1000");
    let Client::Socket(socket) = client else { panic!("no socket") };
    let (mut sink, mut stream) = socket.split();
    let sending = tokio::spawn(async move {
        let text = tokio_tungstenite::tungstenite::Message::text("x".repeat(3 << 20));
        // It may be cut off in the middle of it.
        let _ = futures::SinkExt::send(&mut sink, text).await;
    });
    while let Some(Ok(_)) = stream.next().await {}
    sending.await.unwrap();
    assert_eq!(
        world.client(Over::WebSocket).await.ask(json!({"type": "list_sessions"})).await["success"],
        true
    );
}

#[tokio::test(start_paused = true)]
async fn answers_to_questions_have_a_rate_of_their_own() {
    let world = World::with(Settings { ui_responses: 1, ..settings() }, Limits::default());
    let mut client = world.client(Over::Stdio).await;
    client.create("s1").await;
    let answer = json!({"type": "extension_ui_response", "sessionId": "s1", "requestId": "q",
                        "response": {"method": "cancelled"}});
    assert_eq!(client.ask(answer.clone()).await["success"], true);
    let refused = client.ask(answer).await;
    assert_eq!(refused["error"], "Extension UI response rate limit exceeded (1 responses/minute)");
}
