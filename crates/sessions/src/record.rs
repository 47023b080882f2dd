//! What is stored of a session: its header, the entries of its tree, and the messages that wait.

use std::collections::BTreeMap;

use orchestr8_models::{Block, Message, Thinking, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::access::{MessageSender, SessionAccess};

/// What is true of a session now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// The name of the principal it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Other principals that may use it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shared: BTreeMap<String, SessionAccess>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub cwd: String,
    pub provider: String,
    pub model: String,
    pub thinking: Thinking,
    pub auto_compaction: bool,
    pub auto_retry: bool,
    /// What the model is told before everything else; none: the installation's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The tools it may use; none: all that the caller may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The session it was forked from, or that came before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The file it was loaded from or exported to last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Where the next message is attached.
    pub leaf: Option<Place>,
    /// The place the next entry gets.
    pub next: Place,
    /// Messages from the root to the leaf.
    pub messages: u64,
    pub stats: Stats,
}

/// Where an entry is in its session; its id is this number in hex.
pub type Place = u64;

/// What a session has seen, over all branches.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Stats {
    pub user_messages: u64,
    pub assistant_messages: u64,
    pub tool_calls: u64,
    pub tool_results: u64,
    pub total_messages: u64,
    pub usage: Usage,
}

/// One entry of the tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub parent: Option<Place>,
    pub at_ms: i64,
    #[serde(flatten)]
    pub body: Body,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Body {
    Message {
        message: Message,
    },
    ModelChange {
        provider: String,
        model_id: String,
    },
    ThinkingLevelChange {
        thinking_level: Thinking,
    },
    /// Everything before `first_kept` is told to the model by its summary.
    Compaction {
        summary: String,
        first_kept: Place,
        tokens_before: u64,
    },
    /// What happened on a branch that was left.
    BranchSummary {
        summary: String,
        from: Place,
    },
}

/// A message that waits for the turn under way, or for the next one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Queued {
    pub when: When,
    pub content: Vec<Block>,
    /// None in messages that an earlier version queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<MessageSender>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum When {
    /// After the tool calls under way.
    Steer,
    /// Once the agent would be done.
    FollowUp,
}

/// The id of an entry as clients see it.
pub fn entry_id(place: Place) -> String {
    format!("{place:08x}")
}

/// The place behind an id that a client gives.
pub fn place_of(id: &str) -> Option<Place> {
    let known = id.len() == 8 && id.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c));
    known.then(|| Place::from_str_radix(id, 16).ok()).flatten()
}

/// The text of a record.
pub fn text(record: &impl Serialize) -> String {
    // Records are plain data with text keys: writing them cannot fail.
    serde_json::to_string(record).unwrap_or_default()
}

impl Entry {
    /// The same in a tree where everything has moved by so many places.
    #[must_use]
    pub fn moved_by(&self, by: Place) -> Self {
        let mut entry = self.clone();
        entry.parent = entry.parent.map(|parent| parent + by);
        match &mut entry.body {
            Body::Compaction { first_kept, .. } => *first_kept += by,
            Body::BranchSummary { from, .. } => *from += by,
            Body::Message { .. } | Body::ModelChange { .. } | Body::ThinkingLevelChange { .. } => {}
        }
        entry
    }
}

impl Body {
    /// The word for its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Body::Message { .. } => "message",
            Body::ModelChange { .. } => "model_change",
            Body::ThinkingLevelChange { .. } => "thinking_level_change",
            Body::Compaction { .. } => "compaction",
            Body::BranchSummary { .. } => "branch_summary",
        }
    }

    pub fn message(&self) -> Option<&Message> {
        match self {
            Body::Message { message } => Some(message),
            Body::ModelChange { .. }
            | Body::ThinkingLevelChange { .. }
            | Body::Compaction { .. }
            | Body::BranchSummary { .. } => None,
        }
    }

    /// What a person reads in a list of entries.
    pub fn text(&self) -> String {
        match self {
            Body::Message { message } => message.text(),
            Body::ModelChange { provider, model_id } => format!("{provider}/{model_id}"),
            Body::ThinkingLevelChange { thinking_level } => thinking_level.as_str().to_owned(),
            Body::Compaction { summary, .. } | Body::BranchSummary { summary, .. } => summary.clone(),
        }
    }
}

impl Stats {
    pub fn count(&mut self, message: &Message) {
        self.total_messages += 1;
        match message {
            Message::User(_) => self.user_messages += 1,
            Message::Assistant(assistant) => {
                self.assistant_messages += 1;
                self.tool_calls += u64::try_from(assistant.tool_calls().count()).unwrap_or(0);
                self.usage.add(assistant.usage);
            }
            Message::ToolResult(_) => self.tool_results += 1,
            Message::BashExecution(_) => {}
        }
    }
}

/// A message as JSON.
pub fn json(message: &Message) -> Value {
    serde_json::to_value(message).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestr8_models::User;
    use serde_json::json;

    #[test]
    fn ids_are_places_in_hex_and_nothing_else_is_one() {
        assert_eq!(entry_id(26), "0000001a");
        assert_eq!(place_of("0000001a"), Some(26));
        for wrong in ["1a", "0000001A", "+000001a", "zzzzzzzz", ""] {
            assert_eq!(place_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn entries_are_stored_flat() {
        let entry = Entry {
            parent: Some(1),
            at_ms: 5,
            body: Body::Message { message: Message::User(User::text("hi", 5)) },
        };
        let stored = serde_json::to_value(&entry).unwrap();
        assert_eq!(
            stored,
            json!({"parent": 1, "atMs": 5, "type": "message", "message": {"role": "user", "timestamp": 5,
                "content": [{"type": "text", "text": "hi"}]}})
        );
        assert_eq!(serde_json::from_value::<Entry>(stored).unwrap(), entry);
    }
}
