//! What a language model is to the rest of the program: it says what it is, and it streams an answer to a conversation.

use std::str::FromStr;

use futures::stream::BoxStream;
use orchestr8_contract::Fault;
use orchestr8_contract::id::Tenant;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::message::{Assistant, Message, Usage};

/// A language model.
pub trait Model: Send + Sync {
    fn about(&self) -> &About;

    /// Streams the answer to the last message. The last item of a good stream is `Delta::Done`; a fault ends the stream.
    /// When the token fires, the stream ends at once and without `Done`. Nothing happens before it is polled.
    fn stream(&self, request: Request, cancel: CancellationToken)
    -> BoxStream<'static, Result<Delta, Fault>>;
}

/// What is known of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct About {
    pub provider: String,
    pub id: String,
    pub name: String,
    /// Tokens of input and output together.
    pub context_window: u64,
    /// Tokens of one answer.
    pub max_output: u64,
    /// Whether it can think before it answers.
    pub thinking: bool,
    /// Whether it can see images.
    pub images: bool,
    pub price: Price,
}

/// US dollars per million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    pub cache_read: f64,
    pub cache_write: f64,
}

/// What to answer, and how.
#[derive(Debug, Clone, Default)]
pub struct Request {
    pub system: Option<String>,
    pub messages: Vec<Message>,
    pub tools: Vec<Tool>,
    pub thinking: Thinking,
    /// None: as much as the model can.
    pub max_output: Option<u64>,
    /// The answer shall be JSON of this schema. The model is told; whether it keeps to it is for the caller to check.
    pub response_schema: Option<Value>,
    pub temperature: Option<f64>,
    /// Whose request it is: the failures that one tenant causes open no circuit for another.
    pub tenant: Option<Tenant>,
}

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    pub name: String,
    pub description: String,
    /// JSON Schema of its arguments: an object.
    pub schema: Value,
}

/// How hard to think before answering.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Thinking {
    #[default]
    #[serde(alias = "none")]
    Off,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
}

/// A piece of an answer. `index` is the place of the block in the content of the whole message.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    TextStart {
        index: usize,
    },
    Text {
        index: usize,
        delta: String,
    },
    TextEnd {
        index: usize,
    },
    ThinkingStart {
        index: usize,
    },
    Thinking {
        index: usize,
        delta: String,
    },
    ThinkingEnd {
        index: usize,
    },
    ToolCallStart {
        index: usize,
        id: String,
        name: String,
    },
    /// A piece of the arguments' JSON text.
    ToolCall {
        index: usize,
        delta: String,
    },
    ToolCallEnd {
        index: usize,
        arguments: Map<String, Value>,
    },
    /// The whole message with its usage and cost.
    Done(Assistant),
}

/// A word that is no level of thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownLevel;

impl Thinking {
    /// In the order in which they are gone through.
    pub const ALL: [Thinking; 6] =
        [Thinking::Off, Thinking::Minimal, Thinking::Low, Thinking::Medium, Thinking::High, Thinking::Xhigh];

    pub fn as_str(self) -> &'static str {
        match self {
            Thinking::Off => "off",
            Thinking::Minimal => "minimal",
            Thinking::Low => "low",
            Thinking::Medium => "medium",
            Thinking::High => "high",
            Thinking::Xhigh => "xhigh",
        }
    }

    /// The next level; after the last comes the first.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Thinking::Off => Thinking::Minimal,
            Thinking::Minimal => Thinking::Low,
            Thinking::Low => Thinking::Medium,
            Thinking::Medium => Thinking::High,
            Thinking::High => Thinking::Xhigh,
            Thinking::Xhigh => Thinking::Off,
        }
    }
}

impl FromStr for Thinking {
    type Err = UnknownLevel;

    /// Both vocabularies: `none` is `off`.
    fn from_str(word: &str) -> Result<Self, UnknownLevel> {
        match word {
            "none" | "off" => Ok(Thinking::Off),
            "minimal" => Ok(Thinking::Minimal),
            "low" => Ok(Thinking::Low),
            "medium" => Ok(Thinking::Medium),
            "high" => Ok(Thinking::High),
            "xhigh" => Ok(Thinking::Xhigh),
            _ => Err(UnknownLevel),
        }
    }
}

impl Price {
    /// What the tokens of a usage cost.
    #[allow(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
    pub fn of(&self, usage: &Usage) -> f64 {
        let millions = |tokens: u64, price: f64| tokens as f64 / 1_000_000.0 * price;
        millions(usage.input, self.input)
            + millions(usage.output, self.output)
            + millions(usage.cache_read, self.cache_read)
            + millions(usage.cache_write, self.cache_write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_vocabularies_of_thinking_are_read_and_one_is_written() {
        assert_eq!("none".parse(), Ok(Thinking::Off));
        assert_eq!("NONE".parse::<Thinking>(), Err(UnknownLevel));
        assert_eq!(serde_json::from_str::<Thinking>("\"none\"").unwrap(), Thinking::Off);
        let mut level = Thinking::Off;
        for expected in Thinking::ALL {
            assert_eq!((level, level.as_str().parse()), (expected, Ok(expected)));
            assert_eq!(serde_json::to_value(level).unwrap(), level.as_str());
            level = level.next();
        }
        assert_eq!(level, Thinking::Off);
    }

    #[test]
    fn a_usage_has_its_price() {
        let price = Price { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75 };
        let usage =
            Usage { input: 1_000_000, output: 100_000, cache_read: 2_000_000, cache_write: 0, cost: 0.0 };
        assert!((price.of(&usage) - 5.1).abs() < 1e-9);
        assert_eq!(Price::default().of(&usage), 0.0);
    }
}
