//! The messages of a conversation, in the shapes that clients read and that are stored.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase")]
pub enum Message {
    User(User),
    Assistant(Assistant),
    ToolResult(ToolResult),
    BashExecution(BashExecution),
}

/// What a person said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct User {
    /// A plain text is read as one text block.
    #[serde(deserialize_with = "blocks")]
    pub content: Vec<Block>,
    /// Milliseconds since 1970.
    pub timestamp: i64,
}

/// What a model said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Assistant {
    #[serde(deserialize_with = "blocks")]
    pub content: Vec<Block>,
    pub provider: String,
    pub model: String,
    #[serde(default)]
    pub usage: Usage,
    pub stop_reason: StopReason,
    pub timestamp: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
}

/// What a tool answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    pub tool_call_id: String,
    pub tool_name: String,
    #[serde(deserialize_with = "blocks")]
    pub content: Vec<Block>,
    #[serde(default)]
    pub is_error: bool,
    pub timestamp: i64,
}

/// A command that a person ran beside the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BashExecution {
    pub command: String,
    pub output: String,
    /// None when it was stopped before it ended.
    #[serde(default)]
    pub exit_code: Option<i32>,
    #[serde(default)]
    pub cancelled: bool,
    #[serde(default)]
    pub truncated: bool,
    pub timestamp: i64,
    /// The model is not told of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclude_from_context: bool,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Block {
    Text {
        text: String,
    },
    Thinking {
        thinking: String,
        /// What the provider wants to see again when the block is sent back to it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    ToolCall {
        id: String,
        name: String,
        #[serde(default)]
        arguments: Map<String, Value>,
    },
    Image {
        /// Base64.
        data: String,
        mime_type: String,
    },
}

/// What an answer took, in tokens, and what that cost in US dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Without what came from the cache or went into it.
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub cost: f64,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    /// The model was done.
    Stop,
    /// The output or the context was full.
    Length,
    /// It waits for the results of its tool calls.
    ToolUse,
    Error,
    Aborted,
}

impl Block {
    pub fn text(text: impl Into<String>) -> Self {
        Block::Text { text: text.into() }
    }
}

impl User {
    pub fn text(text: impl Into<String>, timestamp: i64) -> Self {
        Self { content: vec![Block::text(text)], timestamp }
    }
}

impl Assistant {
    /// The calls of tools in it, in order: id, name and arguments.
    pub fn tool_calls(&self) -> impl Iterator<Item = (&str, &str, &Map<String, Value>)> {
        self.content.iter().filter_map(|block| match block {
            Block::ToolCall { id, name, arguments } => Some((id.as_str(), name.as_str(), arguments)),
            Block::Text { .. } | Block::Thinking { .. } | Block::Image { .. } => None,
        })
    }
}

impl Message {
    pub fn timestamp(&self) -> i64 {
        match self {
            Message::User(user) => user.timestamp,
            Message::Assistant(assistant) => assistant.timestamp,
            Message::ToolResult(result) => result.timestamp,
            Message::BashExecution(bash) => bash.timestamp,
        }
    }

    /// What is written in it, without thinking, calls and images. For a command: its output.
    pub fn text(&self) -> String {
        match self {
            Message::User(user) => text_of(&user.content),
            Message::Assistant(assistant) => text_of(&assistant.content),
            Message::ToolResult(result) => text_of(&result.content),
            Message::BashExecution(bash) => bash.output.clone(),
        }
    }
}

impl Usage {
    pub fn add(&mut self, other: Usage) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.cost += other.cost;
    }

    /// All tokens, read from the cache or not.
    pub fn total(&self) -> u64 {
        [self.output, self.cache_read, self.cache_write]
            .iter()
            .fold(self.input, |sum, n| sum.saturating_add(*n))
    }
}

/// The texts of some blocks, one per line.
pub fn text_of(blocks: &[Block]) -> String {
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            Block::Thinking { .. } | Block::ToolCall { .. } | Block::Image { .. } => None,
        })
        .collect();
    texts.join("\n")
}

/// Clients write a content of one text as that text.
fn blocks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Block>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Content {
        Text(String),
        Blocks(Vec<Block>),
    }
    Ok(match Content::deserialize(deserializer)? {
        Content::Text(text) => vec![Block::Text { text }],
        Content::Blocks(blocks) => blocks,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn same_again(value: Value) {
        let message: Message = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(serde_json::to_value(&message).unwrap(), value);
    }

    #[test]
    fn messages_have_the_shapes_that_clients_read() {
        same_again(json!({"role": "user", "timestamp": 1, "content": [
            {"type": "text", "text": "hi"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}]}));
        same_again(
            json!({"role": "assistant", "provider": "p", "model": "m", "stopReason": "toolUse", "timestamp": 2,
            "content": [{"type": "thinking", "thinking": "hm"}, {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "toolCall", "id": "1", "name": "echo", "arguments": {"a": 1}}],
            "usage": {"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4, "cost": 0.5}}),
        );
        same_again(
            json!({"role": "toolResult", "toolCallId": "1", "toolName": "echo", "isError": false, "timestamp": 3,
            "content": [{"type": "text", "text": "1"}]}),
        );
        same_again(
            json!({"role": "bashExecution", "command": "ls", "output": "a", "exitCode": 0, "cancelled": false,
            "truncated": false, "timestamp": 4}),
        );
        same_again(
            json!({"role": "bashExecution", "command": "ls", "output": "a", "exitCode": null, "cancelled": true,
            "truncated": false, "timestamp": 4, "excludeFromContext": true}),
        );
    }

    #[test]
    fn a_plain_text_is_read_as_one_block() {
        let read: Message =
            serde_json::from_value(json!({"role": "user", "content": "hi", "timestamp": 1})).unwrap();
        assert_eq!(read, Message::User(User::text("hi", 1)));
        assert_eq!(read.text(), "hi");
    }

    #[test]
    fn reasons_are_the_words_of_the_contract() {
        let reasons = [
            (StopReason::Stop, "stop"),
            (StopReason::Length, "length"),
            (StopReason::ToolUse, "toolUse"),
            (StopReason::Error, "error"),
            (StopReason::Aborted, "aborted"),
        ];
        for (reason, word) in reasons {
            assert_eq!(serde_json::to_value(reason).unwrap(), word);
        }
    }

    #[test]
    fn usages_add_up_without_overflow() {
        let mut sum = Usage { input: u64::MAX, output: 1, cache_read: 2, cache_write: 3, cost: 0.25 };
        sum.add(Usage { input: 1, output: 1, cache_read: 1, cache_write: 1, cost: 0.25 });
        assert_eq!((sum.input, sum.output, sum.cache_read, sum.cache_write), (u64::MAX, 2, 3, 4));
        assert_eq!((sum.total(), sum.cost), (u64::MAX, 0.5));
    }
}
