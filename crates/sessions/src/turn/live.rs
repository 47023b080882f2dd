//! An answer while it comes: what is there of it so far, told to those who follow the session.

use std::sync::Arc;

use orchestr8_contract::{Fault, Priority};
use orchestr8_models::{About, Assistant, Block, Delta, StopReason, Usage};
use serde_json::{Map, Value, json};

use crate::hub::Hub;
use crate::limits;
use crate::session::Session;

/// Deltas may be lost by a client that is slow; nothing else may.
const DELTA: Priority = Priority::Normal;

pub struct Live {
    hub: Hub,
    session: Arc<Session>,
    /// What there is so far.
    pub message: Assistant,
    /// The number under which its beginning was told.
    pub started: Option<u64>,
    /// Text of the current block that has not been told, and how much of the message has.
    pending: String,
    told: usize,
    told_us: u64,
}

impl Live {
    pub fn begin(hub: &Hub, session: &Arc<Session>, about: &About) -> Self {
        let message = Assistant {
            content: Vec::new(),
            provider: about.provider.clone(),
            model: about.id.clone(),
            usage: Usage::default(),
            stop_reason: StopReason::Stop,
            timestamp: hub.now_ms(),
            error_message: None,
        };
        Self {
            hub: hub.clone(),
            session: session.clone(),
            message,
            started: None,
            pending: String::new(),
            told: 0,
            told_us: hub.kernel().ports().clock.elapsed_us(),
        }
    }

    pub fn take(&mut self, delta: Delta) {
        self.start();
        match delta {
            Delta::TextStart { index } => {
                self.set(index, Block::text(""));
                self.tell("text_start", index, json!({}));
            }
            Delta::ThinkingStart { index } => {
                self.set(index, Block::Thinking { thinking: String::new(), signature: None });
                self.tell("thinking_start", index, json!({}));
            }
            Delta::ToolCallStart { index, id, name } => {
                self.set(index, Block::ToolCall { id, name, arguments: Map::new() });
                self.tell("toolcall_start", index, json!({}));
            }
            Delta::Text { index, delta } => {
                if let Some(Block::Text { text }) = self.message.content.get_mut(index) {
                    text.push_str(&delta);
                }
                self.piece("text_delta", index, &delta);
            }
            Delta::Thinking { index, delta } => {
                if let Some(Block::Thinking { thinking, .. }) = self.message.content.get_mut(index) {
                    thinking.push_str(&delta);
                }
                self.piece("thinking_delta", index, &delta);
            }
            Delta::ToolCall { index, delta } => {
                self.piece("toolcall_delta", index, &delta);
            }
            Delta::TextEnd { index } => {
                self.flush("text_delta", index);
                let content = self.text_at(index);
                self.tell("text_end", index, json!({"content": content}));
            }
            Delta::ThinkingEnd { index } => {
                self.flush("thinking_delta", index);
                let content = self.text_at(index);
                self.tell("thinking_end", index, json!({"content": content}));
            }
            Delta::ToolCallEnd { index, arguments: whole } => {
                self.flush("toolcall_delta", index);
                if let Some(Block::ToolCall { arguments, .. }) = self.message.content.get_mut(index) {
                    *arguments = whole;
                }
                let call = self.message.content.get(index).map(block);
                self.tell("toolcall_end", index, json!({"toolCall": call}));
            }
            // The stream's driver takes it.
            Delta::Done(_) => {}
        }
    }

    /// The whole answer, which stands over the sum of its pieces.
    pub fn done(&mut self, message: Assistant) {
        self.start();
        self.message = Assistant { timestamp: self.message.timestamp, ..message };
    }

    /// The last word on it: done, or why not.
    pub fn close(&mut self, fault: Option<&Fault>) {
        self.start();
        if let Some(fault) = fault {
            self.message.stop_reason = StopReason::Error;
            self.message.error_message = Some(fault.message.clone().into_owned());
        }
        // What was cut off in the middle is no call.
        if matches!(self.message.stop_reason, StopReason::Error | StopReason::Aborted) {
            self.message.content.retain(|block| match block {
                Block::ToolCall { .. } => false,
                Block::Text { text } => !text.is_empty(),
                Block::Thinking { thinking, .. } => !thinking.is_empty(),
                Block::Image { .. } => true,
            });
        }
        let word = match self.message.stop_reason {
            StopReason::Error | StopReason::Aborted => "error",
            StopReason::Stop | StopReason::Length | StopReason::ToolUse => "done",
        };
        let message = self.value();
        let event = json!({"type": "message_update", "message": message,
            "assistantMessageEvent": {"type": word, "reason": self.message.stop_reason, "partial": message}});
        self.session.whisper(self.hub.kernel(), event, Priority::Critical);
    }

    /// Tells that there is an answer, once.
    fn start(&mut self) {
        if self.started.is_none() {
            let event = json!({"type": "message_start", "message": self.value()});
            self.started = self.session.whisper(self.hub.kernel(), event, Priority::Critical);
            self.tell("start", 0, json!({}));
        }
    }

    fn set(&mut self, index: usize, block: Block) {
        match self.message.content.get_mut(index) {
            Some(place) => *place = block,
            None => self.message.content.push(block),
        }
    }

    /// A piece of a block: told at once while the message is small, gathered when telling it would be dear.
    fn piece(&mut self, word: &str, index: usize, delta: &str) {
        self.pending.push_str(delta);
        let now_us = self.hub.kernel().ports().clock.elapsed_us();
        let late = now_us.saturating_sub(self.told_us) >= limits::DELTA_MS * 1000;
        if late || self.pending.len() * limits::DELTA_SHARE >= self.told {
            self.flush(word, index);
        }
    }

    fn flush(&mut self, word: &str, index: usize) {
        if !self.pending.is_empty() {
            let delta = std::mem::take(&mut self.pending);
            self.told += delta.len();
            self.tell(word, index, json!({"delta": delta}));
        }
    }

    fn tell(&mut self, word: &str, index: usize, more: Value) {
        self.told_us = self.hub.kernel().ports().clock.elapsed_us();
        let message = self.value();
        let mut event = json!({"type": word, "contentIndex": index, "partial": message});
        if let (Value::Object(event), Value::Object(more)) = (&mut event, more) {
            event.extend(more);
        }
        let update = json!({"type": "message_update", "message": message, "assistantMessageEvent": event});
        self.session.whisper(self.hub.kernel(), update, DELTA);
    }

    fn text_at(&self, index: usize) -> String {
        match self.message.content.get(index) {
            Some(Block::Text { text }) => text.clone(),
            Some(Block::Thinking { thinking, .. }) => thinking.clone(),
            Some(Block::ToolCall { .. } | Block::Image { .. }) | None => String::new(),
        }
    }

    fn value(&self) -> Value {
        crate::record::json(&orchestr8_models::Message::Assistant(self.message.clone()))
    }
}

fn block(block: &Block) -> Value {
    serde_json::to_value(block).unwrap_or(Value::Null)
}
