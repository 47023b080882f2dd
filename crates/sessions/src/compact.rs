//! Compaction: what came before is summed up by the model, so that the conversation fits its context again.

use std::sync::Arc;

use futures::StreamExt;
use orchestr8_contract::{Code, Fault};
use orchestr8_models::{Delta, Message, Request, User, tokens};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::hub::Hub;
use crate::limits;
use crate::record::{Body, Place, entry_id};
use crate::session::{Session, Slot};
use crate::tree::Tree;

/// Characters of a summary that are kept.
const SUMMARY_CHARS: usize = 16_000;

/// Characters of one message that the summary is made from.
const QUOTED_CHARS: usize = 4_000;

const TASK: &str = "Sum up the conversation below for somebody who has to go on with it: the goal, what was decided, what was \
                    done and what came of it, what is open. Keep names, paths and figures exactly.";

/// A summary and what it stands for.
pub struct Made {
    pub summary: String,
    pub first_kept: Place,
    pub tokens_before: u64,
}

impl Made {
    pub fn body(&self) -> Body {
        Body::Compaction {
            summary: self.summary.clone(),
            first_kept: self.first_kept,
            tokens_before: self.tokens_before,
        }
    }

    pub fn told(&self) -> Value {
        json!({"summary": self.summary, "firstKeptEntryId": entry_id(self.first_kept), "tokensBefore": self.tokens_before})
    }
}

/// Sums up everything but the newest messages.
pub async fn summarize(
    hub: &Hub,
    session: &Arc<Session>,
    tree: &Tree,
    instructions: Option<&str>,
    stop: &CancellationToken,
) -> Result<Made, Fault> {
    let header = session.header();
    let first_kept = cut(tree, header.leaf)?;
    let before: Vec<Message> = match tree.get(first_kept).and_then(|node| node.entry.parent) {
        Some(parent) => tree.context(Some(parent)),
        None => return Err(too_small()),
    };
    let tokens_before = used_tokens(&tree.context(header.leaf));
    let held = session.doing.begin(Slot::Compaction, stop);
    let summary = write(hub, session, &before, instructions, &held.token).await?;
    Ok(Made { summary, first_kept, tokens_before })
}

/// Lets the session's model sum up some messages.
pub async fn write(
    hub: &Hub,
    session: &Arc<Session>,
    messages: &[Message],
    instructions: Option<&str>,
    stop: &CancellationToken,
) -> Result<String, Fault> {
    let model = hub.model(&session.header())?;
    let mut text = format!("{TASK}\n\n");
    for message in messages {
        // Quoted, so that nothing in it is taken for a request.
        for line in quoted(message).lines() {
            text.push_str("> ");
            text.push_str(line);
            text.push('\n');
        }
    }
    if let Some(instructions) = instructions {
        text.push('\n');
        text.push_str(instructions);
    }
    let request = Request {
        messages: vec![Message::User(User::text(text, hub.now_ms()))],
        tenant: Some(session.tenant.clone()),
        ..Request::default()
    };
    let mut stream = model.stream(request, stop.clone());
    while let Some(item) = stream.next().await {
        if let Delta::Done(answer) = item? {
            let summary: String = Message::Assistant(answer).text().chars().take(SUMMARY_CHARS).collect();
            return Ok(summary);
        }
    }
    match stop.is_cancelled() {
        true => Err(Fault::new(Code::Cancelled, "Compaction cancelled")),
        false => Err(Fault::new(Code::Unavailable, "the summary broke off")),
    }
}

fn quoted(message: &Message) -> String {
    let who = match message {
        Message::User(_) => "user",
        Message::Assistant(_) => "assistant",
        Message::ToolResult(result) => result.tool_name.as_str(),
        Message::BashExecution(bash) => bash.command.as_str(),
    };
    let text: String = message.text().chars().take(QUOTED_CHARS).collect();
    format!("{who}: {text}")
}

/// The first message that is kept: one that a person wrote, so that no result is left without its call.
fn cut(tree: &Tree, leaf: Option<Place>) -> Result<Place, Fault> {
    let path = tree.path(leaf);
    let mut kept = 0;
    let mut cut = None;
    for place in path.iter().rev() {
        let Some(node) = tree.get(*place) else { continue };
        match &node.entry.body {
            Body::Compaction { .. } => break,
            Body::Message { message } => {
                kept += tokens::of_message(message);
                if matches!(message, Message::User(_)) && (cut.is_none() || kept <= limits::KEPT_TOKENS) {
                    cut = Some(*place);
                }
            }
            Body::ModelChange { .. } | Body::ThinkingLevelChange { .. } | Body::BranchSummary { .. } => {}
        }
    }
    let before = cut.and_then(|place| tree.get(place)).and_then(|node| node.entry.parent);
    match (cut, before) {
        (Some(place), Some(_)) => Ok(place),
        (Some(_) | None, _) => Err(too_small()),
    }
}

fn too_small() -> Fault {
    Fault::new(Code::StateConflict, "Nothing to compact (session too small)")
}

/// How much of the context these messages take: what the model counted last, and an estimate for what came after.
pub fn used_tokens(context: &[Message]) -> u64 {
    let mut after = 0;
    for message in context.iter().rev() {
        if let Message::Assistant(assistant) = message
            && assistant.usage.total() > 0
        {
            return assistant.usage.total() + after;
        }
        after += tokens::of_message(message);
    }
    after
}
