//! One question and its answer: stdout is the answer and nothing else.

use serde_json::{Value, json};

use super::super::telling::{Style, Telling, said};
use super::super::words::text;
use super::asking::Asking;
use super::conversation::{Conversation, Ended};
use super::lines::Lines;
use crate::failure::{Failure, exit};

pub async fn answer(conversation: &mut Conversation<'_>, prompt: &str, kept: bool) -> Result<u8, Failure> {
    let terminal = conversation.terminal;
    // On a terminal the words are shown as they come; elsewhere stdout is the answer as it stands in the end.
    let watched = terminal.is_watched();
    let style = Style { words: watched, thinking: watched, people: false, together: false };
    let mut telling = Telling::new(if terminal.json { terminal.quietly() } else { terminal }, style);
    let mut lines = terminal.can_ask().then(Lines::of_stdin);
    let mut asking = Asking { terminal, lines: lines.as_mut() };
    let mut calls = Vec::new();
    let ended = conversation.prompt(prompt, &mut telling, &mut asking, |event| note(&mut calls, event)).await;
    if !kept {
        // It was only for this answer; that it stays if it cannot be deleted harms nobody.
        let _ = conversation.ask("delete_session", json!({})).await;
    }
    let answer = match ended? {
        Ended::Answered(answer) => answer,
        Ended::Stopped | Ended::Left => return Ok(exit::INTERRUPTED),
    };
    if text(&answer, "stopReason") == "length" {
        terminal.warn("the answer is not complete: it is as long as the model may make it");
    }
    if terminal.json {
        terminal.value(&json!({
            "sessionId": conversation.session, "kept": kept, "model": conversation.model(), "text": answer["text"],
            "stopReason": answer["stopReason"], "usage": answer["usage"], "toolCalls": calls,
        }));
    } else if !watched {
        terminal.content(text(&answer, "text"));
    }
    Ok(exit::OK)
}

/// Keeps the tool calls and what came of them.
fn note(calls: &mut Vec<Value>, event: &Value) {
    match text(event, "type") {
        "tool_execution_start" => calls.push(json!({"id": event["toolCallId"], "name": event["toolName"],
            "arguments": event["args"], "result": null, "isError": null})),
        "tool_execution_end" => {
            let own = |call: &&mut Value| call["id"] == event["toolCallId"] && call["isError"].is_null();
            if let Some(call) = calls.iter_mut().rev().find(own) {
                (call["result"], call["isError"]) = (json!(said(&event["result"])), event["isError"].clone());
            }
        }
        _ => {}
    }
}
