//! Conversations that providers would refuse, put right.

use super::*;
use crate::message::{Usage, User};
use crate::model::Price;
use serde_json::Map;

fn about() -> About {
    About {
        provider: "p".into(),
        id: "m".into(),
        name: "M".into(),
        context_window: 1000,
        max_output: 100,
        thinking: true,
        images: false,
        price: Price::default(),
    }
}

fn user(text: &str) -> Message {
    Message::User(User::text(text, 0))
}

fn assistant(content: Vec<Block>, stop_reason: StopReason) -> Message {
    Message::Assistant(Assistant {
        content,
        provider: "p".into(),
        model: "m".into(),
        usage: Usage::default(),
        stop_reason,
        timestamp: 0,
        error_message: None,
    })
}

fn call(id: &str) -> Block {
    Block::ToolCall { id: id.into(), name: "t".into(), arguments: Map::new() }
}

fn result(id: &str, text: &str) -> ToolResult {
    ToolResult {
        tool_call_id: id.into(),
        tool_name: "t".into(),
        content: vec![Block::text(text)],
        is_error: false,
        timestamp: 0,
    }
}

fn thought(signature: Option<&str>) -> Block {
    Block::Thinking { thinking: "hm".into(), signature: signature.map(str::to_owned) }
}

#[test]
fn users_who_speak_twice_speak_once() {
    let turns = turns(&[user("a"), user(" "), user("b")], &about(), false);
    assert_eq!(turns, [Turn::User(vec![Block::text("a"), Block::text("b")])]);
}

#[test]
fn every_call_has_its_result_right_after_it() {
    let messages = [
        user("go"),
        assistant(vec![call("1"), call("2"), call("3")], StopReason::ToolUse),
        user("hurry"),
        Message::ToolResult(result("2", "two")),
        Message::ToolResult(result("1", "one")),
        Message::ToolResult(result("9", "whose?")),
        assistant(vec![Block::text("done")], StopReason::Stop),
        Message::ToolResult(result("3", "too late")),
    ];
    let turns = turns(&messages, &about(), false);
    let Turn::Results(results) = &turns[2] else { panic!("{turns:?}") };
    let texts: Vec<_> = results.iter().map(|r| (r.tool_call_id.as_str(), r.is_error)).collect();
    assert_eq!(texts, [("1", false), ("2", false), ("3", true)]);
    assert_eq!(results[0], result("1", "one"));
    assert_eq!(turns[3], Turn::User(vec![Block::text("hurry")]));
    assert_eq!(turns[4..], [Turn::Assistant(vec![Block::text("done")])]);
}

#[test]
fn failed_answers_are_left_out_and_of_stopped_ones_the_text_stays() {
    let messages = [
        user("go"),
        assistant(vec![Block::text("broken")], StopReason::Error),
        assistant(vec![thought(Some("s")), Block::text("half"), call("1")], StopReason::Aborted),
        assistant(vec![call("2")], StopReason::Aborted),
        assistant(vec![Block::text("")], StopReason::Stop),
        user("again"),
    ];
    let expected = [
        Turn::User(vec![Block::text("go")]),
        Turn::Assistant(vec![Block::text("half")]),
        Turn::User(vec![Block::text("again")]),
    ];
    assert_eq!(turns(&messages, &about(), true), expected);
}

#[test]
fn thinking_goes_back_only_to_the_model_that_thought_it() {
    let messages =
        [user("go"), assistant(vec![thought(Some("s")), thought(None), Block::text("so")], StopReason::Stop)];
    let kept = turns(&messages, &about(), true);
    assert_eq!(kept[1], Turn::Assistant(vec![thought(Some("s")), Block::text("so")]));
    for (about, keep) in [(About { id: "other".into(), ..about() }, true), (about(), false)] {
        assert_eq!(turns(&messages, &about, keep)[1], Turn::Assistant(vec![Block::text("so")]));
    }
}

#[test]
fn what_was_thought_before_this_round_is_left_out() {
    let calling = |id: &str| assistant(vec![thought(Some("s")), call(id)], StopReason::ToolUse);
    let answered = |id: &str| Message::ToolResult(result(id, "x"));
    let mut messages = vec![
        user("one"),
        calling("1"),
        answered("1"),
        assistant(vec![thought(Some("s")), Block::text("so")], StopReason::Stop),
        user("two"),
        calling("2"),
        answered("2"),
        user("hurry"),
        calling("3"),
        answered("3"),
    ];
    let thoughts = |messages: &[Message]| -> Vec<bool> {
        let thinks = |block: &Block| matches!(block, Block::Thinking { .. });
        let turns = turns(messages, &about(), true);
        turns
            .iter()
            .filter_map(|turn| match turn {
                Turn::Assistant(blocks) => Some(blocks.iter().any(thinks)),
                Turn::User(_) | Turn::Results(_) => None,
            })
            .collect()
    };
    assert_eq!(thoughts(&messages), [false, false, true, true]);
    messages.push(assistant(vec![Block::text("done")], StopReason::Stop));
    messages.push(user("three"));
    assert_eq!(thoughts(&messages), [false; 5]);
}

#[test]
fn the_user_speaks_first_and_commands_are_told_unless_excluded() {
    let bash = |exclude_from_context| {
        Message::BashExecution(BashExecution {
            command: "ls".into(),
            output: "a".into(),
            exit_code: Some(2),
            cancelled: false,
            truncated: true,
            timestamp: 0,
            exclude_from_context,
        })
    };
    let messages = [assistant(vec![Block::text("hello")], StopReason::Stop), bash(true), bash(false)];
    let told = "I ran `ls`. It printed:\n```\na\n```\nIt ended with the code 2. The output is cut.";
    let expected = [
        Turn::User(vec![Block::text(GOES_ON)]),
        Turn::Assistant(vec![Block::text("hello")]),
        Turn::User(vec![Block::text(told)]),
    ];
    assert_eq!(turns(&messages, &about(), false), expected);
}

#[test]
fn a_blind_model_is_told_that_there_was_an_image() {
    let image = Block::Image { data: "aGk=".into(), mime_type: "image/png".into() };
    let message = [Message::User(User { content: vec![image.clone()], timestamp: 0 })];
    assert_eq!(turns(&message, &about(), false), [Turn::User(vec![Block::text(NO_IMAGE)])]);
    let seeing = About { images: true, ..about() };
    assert_eq!(turns(&message, &seeing, false), [Turn::User(vec![image])]);
}
