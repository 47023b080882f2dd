//! Frames nobody should send: each gets one answer, and connection and server live on.

use futures::SinkExt;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::CancellationToken;

use crate::world::{BOTH, Client, Over, World};

const CASES: u32 = 1500;

fn refused() -> Value {
    json!({"type": "response", "command": "unknown", "success": false, "error": "Invalid JSON",
           "errorCode": "INVALID_ARGUMENT"})
}

#[tokio::test(start_paused = true)]
async fn malformed_frames_get_one_stable_refusal_on_both_transports() {
    let deep = format!("{{\"type\":\"get_state\",\"x\":{}{}}}", "[".repeat(100), "]".repeat(100));
    let very_deep = "{\"a\":".repeat(200_000);
    let frames = [
        "",
        " ",
        "{",
        "}",
        "[]",
        "[{}]",
        "null",
        "true",
        "0",
        "\"x\"",
        "{}{}",
        "{\"a\":1,}",
        "{\"a\":\"\\ud800\"}",
        "{\"a\":\"\\udc00\\ud800\"}",
        "{\"type\":\"abort\",\"type\":\"prompt\"}",
        "{\"a\":{\"b\":1,\"b\":2}}",
        "{\"a\":1e999}",
        "\u{feff}{}",
        "{\"a\":\u{0}}",
        "{'type':'abort'}",
        "// {}",
        &deep,
        &very_deep,
    ];
    for over in BOTH {
        let world = World::new();
        let mut client = world.client(over).await;
        for frame in frames {
            client.tell_text(frame).await;
            assert_eq!(client.hear().await, refused(), "{over:?}: {}", &frame[..frame.len().min(40)]);
        }
        assert_eq!(client.ask(json!({"type": "list_sessions"})).await["success"], true, "{over:?}");
        let figures = world.face.figures();
        assert_eq!(figures["commandsRejected"]["malformed"], frames.len());
        assert_eq!(figures["totalCommandsExecuted"], 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_binary_frame_is_no_json() {
    let world = World::new();
    let mut client = world.client(Over::WebSocket).await;
    let Client::Socket(socket) = &mut client else { panic!("no socket") };
    socket.send(Message::binary(&b"{\"type\":\"list_sessions\"}"[..])).await.unwrap();
    assert_eq!(client.hear().await, refused());
    assert_eq!(client.ask(json!({"type": "list_sessions"})).await["success"], true);
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_no_text_are_refused_on_pipes() {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    let world = World::new();
    let (near, far) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(far);
    let face = world.face.clone();
    let served = tokio::spawn(async move { face.serve_stdio(input, output, CancellationToken::new()).await });
    let (reader, mut writer) = tokio::io::split(near);
    let mut lines = BufReader::new(reader).lines();
    lines.next_line().await.unwrap();
    writer.write_all(b"{\"type\":\"\xff\xfe\"}\n\0\0\n").await.unwrap();
    for _ in 0..2 {
        let line = lines.next_line().await.unwrap().unwrap();
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), refused());
    }
    writer.shutdown().await.unwrap();
    assert_eq!(served.await.unwrap(), orchestr8_sessions_face::Ended::Input);
    assert_eq!(lines.next_line().await.unwrap(), None);
}

/// Commands with the right names and anything in them.
fn strange_command() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        prop_oneof![Just("s1"), Just("a"), Just("steer"), Just("cancelled")].prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-z]{1,8}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    let kinds = [
        "prompt",
        "create_session",
        "delete_session",
        "switch_session",
        "get_state",
        "set_session_name",
        "nothing",
    ];
    let members = [
        "id",
        "sessionId",
        "dependsOn",
        "ifSessionVersion",
        "idempotencyKey",
        "message",
        "name",
        "afterSeq",
        "images",
        "cwd",
    ];
    let some = vec((proptest::sample::select(members.to_vec()), value), 0..6);
    (proptest::sample::select(kinds.to_vec()), some).prop_map(|(kind, members)| {
        let mut command = json!({"type": kind});
        members.into_iter().for_each(|(name, value)| command[name] = value);
        command.to_string().into_bytes()
    })
}

/// Whatever is sent, exactly one response comes of it.
#[test]
fn every_frame_is_answered_once() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let (world, client) = runtime.block_on(async {
        let world = World::new();
        let client = world.client(Over::WebSocket).await;
        (world, std::cell::RefCell::new(client))
    });
    let frame = prop_oneof![
        3 => strange_command(),
        1 => vec(any::<char>(), 0..30).prop_map(|text| text.into_iter().collect::<String>().into_bytes()),
        1 => (strange_command(), any::<prop::sample::Index>()).prop_map(|(mut text, at)| {
            let at = at.index(text.len());
            text.truncate(at);
            text
        }),
    ];
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&frame, |frame| {
            let text = String::from_utf8_lossy(&frame);
            let mut client = client.borrow_mut();
            let heard = runtime.block_on(async {
                client.tell_text(&text).await;
                client.rest().await
            });
            let responses = heard.iter().filter(|text| text.contains("\"type\":\"response\"")).count();
            prop_assert_eq!(responses, 1, "{} gave {:?}", text, heard);
            Ok(())
        })
        .unwrap();
    assert_eq!(world.face.connections(), 1);
}
