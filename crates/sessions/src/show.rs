//! A session as clients of MCP see it: how it stands, and its conversation as Markdown.

use orchestr8_kernel::ports::clock::iso;
use orchestr8_models::{Assistant, Message};
use serde_json::{Value, json};

use crate::hub::Hub;
use crate::limits;
use crate::record::Header;
use crate::session::{Session, Slot};
use crate::speak::{spent, spent_schema};
use crate::tree::Tree;

/// The schema of what `state` gives.
pub fn schema() -> Value {
    let (plain, count) = (json!({"type": "string"}), json!({"type": "integer", "minimum": 0}));
    let message = json!({"type": "object", "required": ["role", "text", "at"], "properties": {
        "role": {"enum": ["user", "assistant", "toolResult", "bashExecution"]}, "text": plain, "at": plain,
        "tool": plain, "calls": {"type": "array", "items": plain}, "isError": {"type": "boolean"},
        "truncated": {"const": true, "description": "The text is longer than what is shown."}}});
    json!({"type": "object",
        "required": ["sessionId", "status", "model", "cwd", "createdAt", "messageCount", "usage", "messages", "uri"],
        "properties": {"sessionId": plain, "name": plain, "status": {"enum": ["idle", "working"]}, "model": plain, "cwd": plain,
            "createdAt": plain, "messageCount": count, "uri": plain, "usage": spent_schema(),
            "lastText": {"type": "string", "description": "What the agent said last."},
            "messages": {"type": "array", "description": "The newest messages, oldest first.", "items": message}}})
}

/// How a session stands, by a header that is not ahead of its tree.
pub fn state(hub: &Hub, session: &Session, header: Header, tree: &Tree) -> Value {
    let messages = tree.messages(header.leaf);
    let newest = &messages[messages.len().saturating_sub(limits::SHOWN_MESSAGES)..];
    let info = hub.info(session);
    let status = if session.doing.is(Slot::Turn) { "working" } else { "idle" };
    let mut state = json!({
        "sessionId": &*session.id, "status": status, "model": model_name(&info), "cwd": header.cwd,
        "createdAt": info["createdAt"], "messageCount": messages.len(), "usage": spent(&header.stats.usage),
        "uri": crate::tools::address(&session.id), "messages": newest.iter().map(|message| brief(message)).collect::<Vec<_>>(),
    });
    if let Some(name) = header.name {
        state["name"] = name.into();
    }
    let last = messages.into_iter().rev().find(|message| matches!(message, Message::Assistant(_)));
    if let Some(last) = last {
        state["lastText"] = short(last.text()).0.into();
    }
    state
}

/// `provider/id` of what clients are told of a session; its own words if the model is gone.
pub fn model_name(info: &Value) -> String {
    match (info["model"]["provider"].as_str(), info["model"]["id"].as_str()) {
        (Some(provider), Some(id)) => format!("{provider}/{id}"),
        (Some(_) | None, _) => String::from("(not there any more)"),
    }
}

fn brief(message: &Message) -> Value {
    let (text, truncated) = short(message.text());
    let mut brief = json!({"role": role(message), "text": text, "at": iso(message.timestamp())});
    match message {
        Message::User(_) | Message::BashExecution(_) => {}
        Message::Assistant(answer) => {
            let calls: Vec<&str> = answer.tool_calls().map(|(_, name, _)| name).collect();
            if !calls.is_empty() {
                brief["calls"] = json!(calls);
            }
        }
        Message::ToolResult(result) => {
            brief["tool"] = result.tool_name.as_str().into();
            brief["isError"] = result.is_error.into();
        }
    }
    if truncated {
        brief["truncated"] = true.into();
    }
    brief
}

fn role(message: &Message) -> &'static str {
    match message {
        Message::User(_) => "user",
        Message::Assistant(_) => "assistant",
        Message::ToolResult(_) => "toolResult",
        Message::BashExecution(_) => "bashExecution",
    }
}

fn short(text: String) -> (String, bool) {
    match text.char_indices().nth(limits::SHOWN_CHARS) {
        Some((at, _)) => (format!("{}…", &text[..at]), true),
        None => (text, false),
    }
}

/// The way from the root to here, to be read.
pub fn markdown(hub: &Hub, session: &Session, header: &Header, tree: &Tree) -> String {
    let info = hub.info(session);
    let title = header.name.clone().unwrap_or_else(|| format!("Session {}", session.id));
    let mut text = format!(
        "# {}\n\n- session: `{}`\n- model: `{}`\n- folder: `{}`\n- created: {}\n",
        title.replace(['\n', '\r'], " "),
        session.id,
        model_name(&info),
        header.cwd,
        info["createdAt"].as_str().unwrap_or_default(),
    );
    let messages = tree.messages(header.leaf);
    let mut shown: Vec<String> = Vec::new();
    let mut room = limits::SHOWN_BYTES;
    for message in messages.iter().rev() {
        let part = part(message);
        let Some(left) = room.checked_sub(part.len()) else { break };
        room = left;
        shown.push(part);
    }
    if shown.len() < messages.len() {
        text.push_str(&format!("\n*{} earlier messages are not shown.*\n", messages.len() - shown.len()));
    }
    text.extend(shown.into_iter().rev());
    text
}

fn part(message: &Message) -> String {
    match message {
        Message::User(_) => format!("\n## User\n\n{}\n", message.text()),
        Message::Assistant(answer) => format!("\n## Assistant\n\n{}\n{}", message.text(), calls(answer)),
        Message::ToolResult(result) => {
            let what = if result.is_error { "Failure" } else { "Result" };
            format!("\n### {what} of `{}`\n\n{}", result.tool_name, fenced("", &message.text()))
        }
        Message::BashExecution(bash) => {
            format!("\n## Shell\n\n{}{}", fenced("sh", &bash.command), fenced("", &bash.output))
        }
    }
}

fn calls(answer: &Assistant) -> String {
    let call = |(_, name, arguments): (&str, &str, &serde_json::Map<String, Value>)| {
        let arguments = serde_json::to_string_pretty(arguments).unwrap_or_default();
        format!("\nCalls `{name}`:\n\n{}", fenced("json", &arguments))
    };
    let mut text: String = answer.tool_calls().map(call).collect();
    if let Some(error) = &answer.error_message {
        text.push_str(&format!("\n*Failed: {error}*\n"));
    }
    text
}

/// A text in a fence that nothing in it can close.
fn fenced(language: &str, text: &str) -> String {
    let (mut longest, mut run) = (2, 0);
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    format!("{fence}{language}\n{text}\n{fence}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_what_it_holds() {
        assert_eq!(fenced("sh", "ls"), "```sh\nls\n```\n");
        assert_eq!(fenced("", "a ```` b"), "`````\na ```` b\n`````\n");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert!(!short("ä".repeat(limits::SHOWN_CHARS)).1);
        let (cut, truncated) = short("ä".repeat(limits::SHOWN_CHARS + 1));
        assert!(truncated && cut.chars().count() == limits::SHOWN_CHARS + 1 && cut.ends_with('…'));
    }
}
