//! The agent loop: what is said, what is done, what is told, what stays.

use std::sync::atomic::Ordering;

use orchestr8_contract::Code;
use orchestr8_kernel::End;
use orchestr8_testing::{settled, within};
use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn a_prompt_is_answered_streamed_and_kept() {
    let world = World::new().await;
    world.session().await;
    let mut heard = world.listen();
    let answer = world.prompt("hello there world").await;
    assert_eq!((&answer["stopReason"], &answer["text"]), (&json!("stop"), &json!("hello there world")));
    let types = heard.types_until("agent_end").await;
    assert_eq!(
        types,
        [
            "agent_start",
            "turn_start",
            "message_start",
            "message_end",
            "message_start",
            "message_end",
            "turn_end",
            "agent_end"
        ]
    );
    assert_eq!(world.texts().await, ["user: hello there world", "assistant: hello there world"]);
    let state = world.ask("get_state", json!({"sessionId": "s"})).await;
    assert_eq!((&state["messageCount"], &state["isStreaming"]), (&json!(2), &json!(false)));
}

#[tokio::test]
async fn deltas_add_up_to_the_message_and_numbers_grow_without_a_gap() {
    let world = World::new().await;
    world.session().await;
    let mut heard = world.listen();
    world.prompt("/think well\none two three").await;
    let (mut text, mut thought, mut last) = (String::new(), String::new(), None);
    loop {
        let event = heard.next().await;
        let seq = event.data["seq"].as_u64().unwrap();
        assert!(last.is_none_or(|last| seq == last + 1), "{last:?} then {seq}");
        last = Some(seq);
        let event = &event.data["event"];
        let piece = &event["assistantMessageEvent"];
        match piece["type"].as_str() {
            Some("text_delta") => text.push_str(piece["delta"].as_str().unwrap()),
            Some("thinking_delta") => thought.push_str(piece["delta"].as_str().unwrap()),
            _ => {}
        }
        if event["type"] == "agent_end" {
            break;
        }
    }
    assert_eq!((text.as_str(), thought.as_str()), ("one two three", "well"));
}

#[tokio::test]
async fn tools_are_called_and_their_results_go_back_to_the_model() {
    let world = World::new().await;
    world.session().await;
    let mut heard = world.listen();
    let answer = world.prompt("/tool math.add {\"a\": 2, \"b\": 3}").await;
    assert_eq!(world.added.load(Ordering::SeqCst), 1);
    assert!(answer["text"].as_str().unwrap().contains('5'), "{answer}");
    let start = heard.until("tool_execution_start").await;
    assert_eq!((&start["toolName"], &start["args"]["a"]), (&json!("math.add"), &json!(2)));
    let end = heard.until("tool_execution_end").await;
    assert_eq!((&end["isError"], &end["result"]["content"][0]["text"]), (&json!(false), &json!("5")));
    let turn = heard.until("turn_end").await;
    assert_eq!(turn["toolResults"][0]["toolName"], "math.add");
    let stats = world.ask("get_session_stats", json!({"sessionId": "s"})).await;
    assert_eq!(
        (&stats["toolCalls"], &stats["toolResults"], &stats["assistantMessages"]),
        (&json!(1), &json!(1), &json!(2))
    );
}

#[tokio::test]
async fn a_call_that_fails_is_told_to_the_model_and_the_turn_goes_on() {
    let world = World::new().await;
    world.session().await;
    let answer = world.prompt("/tool nobody {}").await;
    assert_eq!(answer["stopReason"], "stop");
    let messages = world.ask("get_messages", json!({"sessionId": "s"})).await;
    assert_eq!(
        (&messages["messages"][2]["role"], &messages["messages"][2]["isError"]),
        (&json!("toolResult"), &json!(true))
    );
}

#[tokio::test]
async fn abort_ends_a_turn_at_once_and_what_was_said_stays() {
    let world = World::new().await;
    world.session().await;
    let mut heard = world.listen();
    let prompt = world.spawn("prompt", json!({"sessionId": "s", "message": "/slow 60000\nnever"}));
    heard.until("message_end").await;
    let abort = within(world.settle("abort", json!({"sessionId": "s"}))).await;
    assert_eq!(abort.end, End::Success);
    let ended = within(prompt).await.unwrap();
    let mut versions = [abort.version, ended.version];
    versions.sort_unstable();
    assert_eq!(versions, [Some(1), Some(2)], "both count, in the order in which they ended");
    assert_eq!(settled::value(ended)["stopReason"], "aborted");
    let state = world.ask("get_state", json!({"sessionId": "s"})).await;
    assert_eq!(state["isStreaming"], false);
    assert_eq!(world.prompt("again").await["stopReason"], "stop");
}

#[tokio::test]
async fn steering_comes_before_a_follow_up_and_both_within_the_turn() {
    let world = World::new().await;
    world.session().await;
    let mut heard = world.listen();
    let prompt =
        world.spawn("prompt", json!({"sessionId": "s", "message": "/slow 30\none two three four five"}));
    heard.until("message_end").await;
    world.ask("follow_up", json!({"sessionId": "s", "message": "later"})).await;
    world.ask("steer", json!({"sessionId": "s", "message": "now"})).await;
    let queued =
        world.ask("prompt", json!({"sessionId": "s", "message": "too", "streamingBehavior": "steer"})).await;
    assert_eq!(queued["queued"], true);
    within(prompt).await.unwrap();
    let said: Vec<_> = world.texts().await.into_iter().filter(|text| text.starts_with("user")).collect();
    assert_eq!(said[1..], ["user: now", "user: too", "user: later"]);
    let ends = heard.types_until("agent_end").await;
    assert_eq!(ends.iter().filter(|kind| *kind == "agent_end").count(), 1);
}

#[tokio::test]
async fn a_prompt_that_may_steer_and_finds_nothing_to_steer_takes_its_turn() {
    let world = World::new().await;
    world.session().await;
    let answer = world
        .ask("prompt", json!({"sessionId": "s", "message": "hi", "streamingBehavior": "followUp"}))
        .await;
    assert_eq!(answer["text"], "hi");
}

#[tokio::test]
async fn a_model_that_is_away_is_asked_again_and_that_is_told() {
    let world = World::new().await;
    world.session().await;
    let mut heard = world.listen();
    let answer = world.prompt("/fail UNAVAILABLE 2\nback").await;
    assert_eq!(answer["stopReason"], "stop");
    let start = heard.until("auto_retry_start").await;
    assert_eq!((&start["attempt"], &start["maxAttempts"]), (&json!(1), &json!(3)));
    let end = heard.until("auto_retry_end").await;
    assert_eq!((&end["success"], &end["attempt"]), (&json!(true), &json!(2)));
    assert_eq!(world.texts().await.len(), 2, "failed attempts leave nothing behind");
}

#[tokio::test]
async fn a_model_that_stays_away_ends_the_turn_with_an_error_message() {
    let world = World::new().await;
    world.session().await;
    let answer = world.prompt("/fail UNAVAILABLE").await;
    assert_eq!((&answer["stopReason"], &answer["errorCode"]), (&json!("error"), &json!("UNAVAILABLE")));
    world.ask("set_auto_retry", json!({"sessionId": "s", "enabled": false})).await;
    let mut heard = world.listen();
    world.prompt("/fail UNAVAILABLE").await;
    assert!(!heard.types_until("agent_end").await.contains(&"auto_retry_start".to_owned()));
}

#[tokio::test]
async fn a_question_of_a_tool_is_put_to_the_people_who_follow() {
    let world = World::new().await;
    world.session().await;
    let mut heard = world.listen();
    let prompt = world.spawn("prompt", json!({"sessionId": "s", "message": "/tool ask {}"}));
    let request = heard.until("extension_ui_request").await;
    assert_eq!(request["method"], "confirm");
    let respond =
        |response| json!({"sessionId": "s", "requestId": request["requestId"], "response": response});
    let wrong =
        world.settle("extension_ui_response", respond(json!({"method": "input", "value": "x"}))).await;
    assert_eq!(wrong.code(), Some(Code::InvalidArgument));
    let right = respond(json!({"method": "confirm", "confirmed": true}));
    let settled = world.settle("extension_ui_response", right.clone()).await;
    assert_eq!(
        (settled.end, settled.version),
        (End::Success, Some(0)),
        "an answer is no change of the session"
    );
    within(prompt).await.unwrap();
    assert_eq!(world.settle("extension_ui_response", right).await.code(), Some(Code::NotFound));
    let messages = world.ask("get_messages", json!({"sessionId": "s"})).await;
    assert!(messages["messages"][2]["content"][0]["text"].as_str().unwrap().contains("\"ok\":true"));
}

#[tokio::test]
async fn a_long_conversation_is_compacted_and_goes_on() {
    let world = World::new().await;
    world.session().await;
    world.prompt("/long 20000").await;
    world.prompt("/long 20000").await;
    let before = world.ask("get_context_usage", json!({"sessionId": "s"})).await["tokens"].as_u64().unwrap();
    let made =
        world.ask("compact", json!({"sessionId": "s", "customInstructions": "/json all in short"})).await;
    assert_eq!(made["summary"], "all in short");
    let tree = world.ask("get_tree", json!({"sessionId": "s"})).await;
    assert_eq!(tree["nodes"].as_array().unwrap().last().unwrap()["entryType"], "compaction");
    world.prompt("hi").await;
    let after = world.ask("get_context_usage", json!({"sessionId": "s"})).await["tokens"].as_u64().unwrap();
    assert!(after < before, "{after} is less than {before}");
    let small = World::new().await;
    small.session().await;
    assert_eq!(small.settle("compact", json!({"sessionId": "s"})).await.code(), Some(Code::StateConflict));
}
