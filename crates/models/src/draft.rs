//! An answer while it comes in: blocks grow, deltas go out, and in the end there is a whole message.

use orchestr8_contract::{Code, Fault};
use serde_json::{Map, Value};

use crate::limits::{BLOCKS, CONTENT_BYTES};
use crate::message::{Assistant, Block, StopReason, Usage};
use crate::model::{About, Delta};
use crate::refusal::broken;

/// What kind of block grows.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Call { id: String, name: String },
}

/// A block while it grows.
#[derive(Debug)]
struct Part {
    kind: Kind,
    text: String,
    signature: String,
    open: bool,
    /// Of a call that has ended. None where its arguments are no JSON object.
    arguments: Option<Map<String, Value>>,
}

/// The answer so far.
pub struct Draft {
    about: About,
    now_ms: i64,
    parts: Vec<Part>,
    bytes: usize,
    out: Vec<Delta>,
    pub usage: Usage,
    /// Set once the provider has said why it ended.
    pub stop: Option<StopReason>,
    pub error_message: Option<String>,
}

impl Draft {
    pub fn new(about: About, now_ms: i64) -> Self {
        Self {
            about,
            now_ms,
            parts: Vec::new(),
            bytes: 0,
            out: Vec::new(),
            usage: Usage::default(),
            stop: None,
            error_message: None,
        }
    }

    pub fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// The deltas since the last time.
    pub fn take(&mut self) -> Vec<Delta> {
        std::mem::take(&mut self.out)
    }

    pub fn begin_text(&mut self) -> Result<usize, Fault> {
        let index = self.begin(Kind::Text)?;
        self.out.push(Delta::TextStart { index });
        Ok(index)
    }

    pub fn begin_thinking(&mut self) -> Result<usize, Fault> {
        let index = self.begin(Kind::Thinking)?;
        self.out.push(Delta::ThinkingStart { index });
        Ok(index)
    }

    pub fn begin_call(&mut self, id: String, name: String) -> Result<usize, Fault> {
        let index = self.begin(Kind::Call { id: id.clone(), name: name.clone() })?;
        self.out.push(Delta::ToolCallStart { index, id, name });
        Ok(index)
    }

    pub fn text(&mut self, index: usize, delta: &str) -> Result<(), Fault> {
        let grown = self.grow(index, delta, |kind| *kind == Kind::Text)?;
        self.out.extend(grown.map(|delta| Delta::Text { index, delta }));
        Ok(())
    }

    pub fn thinking(&mut self, index: usize, delta: &str) -> Result<(), Fault> {
        let grown = self.grow(index, delta, |kind| *kind == Kind::Thinking)?;
        self.out.extend(grown.map(|delta| Delta::Thinking { index, delta }));
        Ok(())
    }

    pub fn arguments(&mut self, index: usize, delta: &str) -> Result<(), Fault> {
        let grown = self.grow(index, delta, |kind| matches!(kind, Kind::Call { .. }))?;
        self.out.extend(grown.map(|delta| Delta::ToolCall { index, delta }));
        Ok(())
    }

    /// Adds to the signature of a thinking block.
    pub fn sign(&mut self, index: usize, signature: &str) -> Result<(), Fault> {
        self.weigh(signature.len())?;
        let part = self.part(index, |kind| *kind == Kind::Thinking)?;
        part.signature.push_str(signature);
        Ok(())
    }

    /// Ends a block. Ending it again does nothing.
    pub fn end(&mut self, index: usize) -> Result<(), Fault> {
        let Some(part) = self.parts.get_mut(index) else {
            return Err(broken("it ends a block that never began"));
        };
        if !std::mem::take(&mut part.open) {
            return Ok(());
        }
        match part.kind {
            Kind::Text => self.out.push(Delta::TextEnd { index }),
            Kind::Thinking => self.out.push(Delta::ThinkingEnd { index }),
            Kind::Call { .. } => {
                // Some send nothing at all for a call without arguments.
                let text = if part.text.trim().is_empty() { "{}" } else { part.text.as_str() };
                part.arguments = serde_json::from_str(text).ok();
                if let Some(arguments) = part.arguments.clone() {
                    self.out.push(Delta::ToolCallEnd { index, arguments });
                }
            }
        }
        Ok(())
    }

    /// The whole message, once the provider has said why it ended.
    ///
    /// A call whose arguments are no JSON object cannot be made. Where the output was cut off, it is left out; otherwise
    /// the answer is of no use, and another try may give a better one.
    pub fn finish(&mut self) -> Result<(), Fault> {
        let Some(stop) = self.stop else { return Err(broken("it ended before the answer did")) };
        for index in 0..self.parts.len() {
            self.end(index)?;
        }
        let mut content = Vec::with_capacity(self.parts.len());
        for part in std::mem::take(&mut self.parts) {
            match part.kind {
                Kind::Text => content.push(Block::Text { text: part.text }),
                Kind::Thinking => {
                    let signature = Some(part.signature).filter(|signature| !signature.is_empty());
                    content.push(Block::Thinking { thinking: part.text, signature });
                }
                Kind::Call { id, name } => match part.arguments {
                    Some(arguments) => content.push(Block::ToolCall { id, name, arguments }),
                    None if stop == StopReason::Length => {}
                    None => return Err(senseless(&name)),
                },
            }
        }
        let calls = content.iter().any(|block| matches!(block, Block::ToolCall { .. }));
        let stop_reason = match stop {
            // Some say that they are done when they wait for a tool.
            StopReason::Stop if calls => StopReason::ToolUse,
            StopReason::ToolUse if !calls => StopReason::Stop,
            StopReason::Stop
            | StopReason::ToolUse
            | StopReason::Length
            | StopReason::Error
            | StopReason::Aborted => stop,
        };
        self.usage.cost = self.about.price.of(&self.usage);
        self.out.push(Delta::Done(Assistant {
            content,
            provider: self.about.provider.clone(),
            model: self.about.id.clone(),
            usage: self.usage,
            stop_reason,
            timestamp: self.now_ms,
            error_message: self.error_message.take(),
        }));
        Ok(())
    }

    /// Tokens of what was said, for providers that do not count.
    pub fn estimated_output(&self) -> u64 {
        self.parts.iter().map(|part| crate::tokens::of_text(&part.text)).sum()
    }

    fn begin(&mut self, kind: Kind) -> Result<usize, Fault> {
        if self.parts.len() >= BLOCKS {
            return Err(too_large(format!("the answer has more than {BLOCKS} blocks")));
        }
        self.parts.push(Part {
            kind,
            text: String::new(),
            signature: String::new(),
            open: true,
            arguments: None,
        });
        Ok(self.parts.len() - 1)
    }

    fn grow(
        &mut self,
        index: usize,
        delta: &str,
        fits: impl Fn(&Kind) -> bool,
    ) -> Result<Option<String>, Fault> {
        self.weigh(delta.len())?;
        let part = self.part(index, fits)?;
        part.text.push_str(delta);
        Ok(if delta.is_empty() { None } else { Some(delta.to_owned()) })
    }

    fn part(&mut self, index: usize, fits: impl Fn(&Kind) -> bool) -> Result<&mut Part, Fault> {
        match self.parts.get_mut(index) {
            Some(part) if part.open && fits(&part.kind) => Ok(part),
            Some(_) | None => Err(broken("it goes on with a block that is not open or of another kind")),
        }
    }

    fn weigh(&mut self, bytes: usize) -> Result<(), Fault> {
        self.bytes += bytes;
        if self.bytes > CONTENT_BYTES {
            return Err(too_large(format!("the answer is longer than {CONTENT_BYTES} bytes")));
        }
        Ok(())
    }
}

pub fn too_large(what: String) -> Fault {
    Fault::new(Code::PayloadTooLarge, what).with("reason", "answer_too_large")
}

fn senseless(name: &str) -> Fault {
    Fault::new(
        Code::Unavailable,
        format!("the model called {name} with arguments that are not a JSON object"),
    )
    .with("reason", "invalid_tool_arguments")
}
