//! A conversation as providers take it: speakers take turns, and every call of a tool has its result right after it.

use crate::message::{Assistant, BashExecution, Block, Message, StopReason, ToolResult};
use crate::model::About;

/// What one side says before the other speaks.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn {
    User(Vec<Block>),
    Assistant(Vec<Block>),
    /// What the tools answered, in the order of the calls in the turn before.
    Results(Vec<ToolResult>),
}

const NO_RESULT: &str = "There is no result: the call was stopped.";
const NO_IMAGE: &str = "[An image was here; this model cannot see images.]";
const GOES_ON: &str = "[The conversation goes on.]";

/// The turns of a conversation. Answers that failed are left out; of those that were stopped, what was said stays.
///
/// Thinking is kept only where the same model thought it, the provider can check that, and the round it belongs to is still
/// going on: what was thought before is not needed, and is refused once the conversation was forked or shortened.
/// `keep_thinking` says whether the provider wants it back at all.
pub fn turns(messages: &[Message], about: &About, keep_thinking: bool) -> Vec<Turn> {
    let kept: Vec<Message> =
        messages.iter().filter_map(|message| keep(message, about, keep_thinking)).collect();
    let mut turns = Vec::new();
    for (place, message) in kept.iter().enumerate() {
        match message {
            Message::User(user) => say(&mut turns, shown(&user.content, about)),
            Message::BashExecution(bash) => say(&mut turns, vec![Block::text(told(bash))]),
            Message::Assistant(assistant) => {
                if turns.is_empty() {
                    say(&mut turns, vec![Block::text(GOES_ON)]);
                }
                turns.push(Turn::Assistant(assistant.content.clone()));
                let results = results(assistant, &kept[place + 1..], about);
                if !results.is_empty() {
                    turns.push(Turn::Results(results));
                }
            }
            // Taken with their calls; those without a call are of no use to anybody.
            Message::ToolResult(_) => {}
        }
    }
    let round = round(&turns);
    for turn in &mut turns[..round] {
        if let Turn::Assistant(blocks) = turn {
            blocks.retain(|block| !matches!(block, Block::Thinking { .. }));
        }
    }
    turns
}

/// Where the last round begins: at what the user said last, unless it was said into a round of tool calls.
fn round(turns: &[Turn]) -> usize {
    let begins = |place: &usize| {
        matches!(turns[*place], Turn::User(_)) && !matches!(turns[..*place].last(), Some(Turn::Results(_)))
    };
    (0..turns.len()).rev().find(begins).unwrap_or(0)
}

/// Adds to what the user said last, if nobody spoke since.
fn say(turns: &mut Vec<Turn>, blocks: Vec<Block>) {
    if blocks.is_empty() {
        return;
    }
    if let Some(Turn::User(said)) = turns.last_mut() {
        said.extend(blocks);
    } else {
        turns.push(Turn::User(blocks));
    }
}

/// The message, or nothing where the model shall not see it.
fn keep(message: &Message, about: &About, keep_thinking: bool) -> Option<Message> {
    let assistant = match message {
        Message::BashExecution(bash) if bash.exclude_from_context => return None,
        Message::User(_) | Message::ToolResult(_) | Message::BashExecution(_) => {
            return Some(message.clone());
        }
        Message::Assistant(assistant) => assistant,
    };
    let whole = match assistant.stop_reason {
        StopReason::Error => return None,
        StopReason::Aborted => false,
        StopReason::Stop | StopReason::Length | StopReason::ToolUse => true,
    };
    let thought_here = keep_thinking && assistant.provider == about.provider && assistant.model == about.id;
    let stays = |block: &&Block| match block {
        Block::Text { text } => !text.trim().is_empty(),
        Block::Thinking { signature, .. } => whole && thought_here && signature.is_some(),
        Block::ToolCall { .. } => whole,
        Block::Image { .. } => false,
    };
    let content: Vec<Block> = assistant.content.iter().filter(stays).cloned().collect();
    let says = content.iter().any(|block| !matches!(block, Block::Thinking { .. }));
    says.then(|| Message::Assistant(Assistant { content, ..assistant.clone() }))
}

/// The result of each call, from what follows up to the next answer.
fn results(assistant: &Assistant, after: &[Message], about: &About) -> Vec<ToolResult> {
    let until = after.iter().position(|message| matches!(message, Message::Assistant(_)));
    let after = &after[..until.unwrap_or(after.len())];
    let find = |call: &str| {
        after.iter().find_map(|message| match message {
            Message::ToolResult(result) if result.tool_call_id == call => Some(result),
            Message::ToolResult(_) | Message::User(_) | Message::Assistant(_) | Message::BashExecution(_) => {
                None
            }
        })
    };
    assistant
        .tool_calls()
        .map(|(id, name, _)| match find(id) {
            Some(result) => ToolResult { content: shown(&result.content, about), ..result.clone() },
            None => ToolResult {
                tool_call_id: id.to_owned(),
                tool_name: name.to_owned(),
                content: vec![Block::text(NO_RESULT)],
                is_error: true,
                timestamp: assistant.timestamp,
            },
        })
        .collect()
}

/// Texts and images; empty texts are left out, and images where the model is blind.
fn shown(blocks: &[Block], about: &About) -> Vec<Block> {
    blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text { text } if text.trim().is_empty() => None,
            Block::Text { .. } => Some(block.clone()),
            Block::Image { .. } if !about.images => Some(Block::text(NO_IMAGE)),
            Block::Image { .. } => Some(block.clone()),
            Block::Thinking { .. } | Block::ToolCall { .. } => None,
        })
        .collect()
}

/// How the model is told of a command.
fn told(bash: &BashExecution) -> String {
    let end = match (bash.cancelled, bash.exit_code) {
        (true, _) => "It was stopped.".to_owned(),
        (false, Some(0)) => String::new(),
        (false, Some(code)) => format!("It ended with the code {code}."),
        (false, None) => "It did not end.".to_owned(),
    };
    let cut = if bash.truncated { "The output is cut." } else { "" };
    let output = if bash.output.is_empty() { "(nothing)" } else { &bash.output };
    let text = format!("I ran `{}`. It printed:\n```\n{output}\n```\n{end} {cut}", bash.command);
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests;
