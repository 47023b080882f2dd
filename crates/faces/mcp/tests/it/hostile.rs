//! Messages nobody should send: there is always an answer, with the id when it can be read, and never a panic.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::world::{Client, face};

const CASES: u32 = 4000;

/// What must come back for a line, judged without any code of the face.
#[derive(Debug, PartialEq)]
enum Due {
    Nothing,
    Answer {
        id: Option<Value>,
    },
    /// The reader of this test and the face may differ about it; an answer is due all the same.
    Some,
}

fn due(line: &[u8]) -> Due {
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        // Numbers and strings that only the full reader refuses leave the id readable for the face.
        let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
        return if is_json { Due::Some } else { Due::Answer { id: None } };
    };
    let Value::Object(message) = &value else { return Due::Answer { id: None } };
    let text = String::from_utf8_lossy(line);
    let repeats = ["\"id\"", "\"method\"", "\"params\"", "\"jsonrpc\"", "\"result\"", "\"error\"", "\"x\":"]
        .iter()
        .any(|name| text.matches(name).count() > 1);
    if repeats || text.contains("\\u") {
        return Due::Some;
    }
    if !message.contains_key("method") && (message.contains_key("result") || message.contains_key("error")) {
        return Due::Nothing;
    }
    let is_sound =
        message.get("method").is_some_and(Value::is_string) && message.get("jsonrpc") == Some(&json!("2.0"));
    match message.get("id") {
        None if is_sound => Due::Nothing,
        None => Due::Answer { id: None },
        Some(id @ (Value::String(_) | Value::Number(_))) => Due::Answer { id: Some(id.clone()) },
        Some(_) => Due::Answer { id: None },
    }
}

async fn play(client: &Client, line: &[u8]) {
    client.tell_bytes(line);
    let shown = String::from_utf8_lossy(line);
    let mut heard = client.rest().await;
    match due(line) {
        Due::Nothing => assert!(heard.is_empty(), "{shown} was answered: {heard:?}"),
        Due::Some => {}
        Due::Answer { id } => {
            if heard.is_empty() {
                heard.push(client.hear().await.to_string());
            }
            let answer: Value = serde_json::from_str(&heard[0]).unwrap();
            assert!(answer.get("result").is_some() || answer["error"]["code"].is_i64(), "{shown}: {answer}");
            assert_eq!(answer["id"], id.unwrap_or_default(), "{shown}: {answer}");
        }
    }
}

/// Runs lines against connections in either phase of the gate.
fn check(lines: impl Strategy<Value = Vec<u8>>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let face = runtime.block_on(async { face() });
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let lines = lines.prop_filter("a line is one line", |line| !line.trim_ascii().is_empty());
    TestRunner::new(config)
        .run(&(lines, any::<bool>()), |(line, running)| {
            runtime.block_on(async {
                let client = match running {
                    true => Client::running(&face, "2025-11-25", &json!({"sampling": {}})),
                    false => Client::of(&face),
                };
                play(&client, &line).await;
                // Whatever it was, the connection lives.
                let answer = client.ask(json!("alive"), "ping", json!({})).await;
                assert!(
                    answer.get("result").is_some()
                        == (client.connection.phase() == orchestr8_mcp::Phase::Running)
                );
            });
            Ok(())
        })
        .unwrap();
}

#[test]
fn random_bytes_are_answered() {
    check(vec(any::<u8>(), 1..200));
}

#[test]
fn odd_envelopes_are_answered() {
    let values = prop::sample::select(vec![
        "1",
        "-0",
        "1.5",
        "1e999",
        "\"x\"",
        "\"\\ud800\"",
        "null",
        "true",
        "{}",
        "[]",
        "[[]]",
        "{\"a\":{}}",
        "\"2.0\"",
        "\"tools/call\"",
        "\"tools/list\"",
        "\"initialize\"",
        "\"ping\"",
        "{\"name\":\"echo\"}",
        "{\"name\":\"echo\",\"arguments\":{\"message\":\"x\"}}",
        "{\"_meta\":{}}",
        "{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}",
        "{\"cursor\":7}",
    ]);
    let names =
        prop::sample::select(vec!["id", "method", "params", "jsonrpc", "result", "error", "x", "i\\u0064"]);
    check(vec((names, values), 0..7).prop_map(|members| {
        let members: Vec<String> =
            members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", members.join(",")).into_bytes()
    }));
}

#[test]
fn damaged_messages_are_answered() {
    let whole = prop::sample::select(vec![
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"message":"héllo"},"_meta":{"correlationId":"c","progressToken":1}}}"#,
        r#"{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":{"type":"text","text":"x"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"}]"#,
    ]);
    let damage = vec((any::<prop::sample::Index>(), prop::option::of(any::<u8>())), 1..4);
    check((whole, damage).prop_map(|(whole, damage)| {
        let mut bytes = whole.as_bytes().to_vec();
        for (place, with) in damage {
            let at = place.index(bytes.len());
            match with {
                Some(b'\n') | None => drop(bytes.remove(at)),
                Some(byte) => bytes[at] = byte,
            }
        }
        bytes
    }));
}

#[tokio::test(start_paused = true)]
async fn what_is_huge_or_deep_or_crowded_is_answered() {
    let client = Client::running(&face(), "2025-11-25", &json!({}));
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let crowd: Vec<String> = (0..2000).map(|n| format!("\"k{n}\":{n}")).collect();
    let crowd = crowd.join(",");
    for (line, code) in [
        (
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{deep}}}}}"#
            ),
            -32700,
        ),
        (deep.clone(), -32700),
        (format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{{crowd}}}}}"#), -32602),
        (format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"_meta":{{{crowd}}}}}}}"#), -32602),
        (format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#, "x".repeat(5000)), -32600),
        (format!(r#"{{"jsonrpc":"2.0","method":"ping",{crowd}}}"#), -32600),
    ] {
        client.tell(&line);
        assert_eq!(client.hear().await["error"]["code"], code, "{}", &line[..60]);
    }
    let message = "x".repeat(2_000_000);
    let answer = client.call(2, "echo", json!({"message": message})).await;
    assert_eq!(crate::world::tool_error(&answer)["details"]["reason"], "payload_too_large");
}
