//! The client on the other side of a run: told of progress, sent log messages, asked questions.

use std::sync::Arc;

use futures::future::BoxFuture;
use orchestr8_contract::Fault;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::action::Action;
use crate::registry::ToolFilter;

/// A question only the client can answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    /// Names the question within one call, so that its answer can be matched on a later try.
    pub key: String,
    pub about: About,
    /// What is asked, in the words of the protocol.
    pub params: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// Let the client's model write something.
    Sample,
    /// Let the person fill in a form or open a page.
    Elicit,
    /// Which folders may be worked in.
    Roots,
}

/// The news of a log message that belongs to no call. Its data has `level`, `logger` and `data`, and the `tenant` whose clients may
/// hear it, or none if all may.
pub const LOG_MESSAGE: &str = "log.message";

/// How serious a message to the client is, in the words of syslog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

/// What became of a question.
pub enum Answered {
    /// The client answered.
    With(Value),
    /// It will answer by sending the call again; end this run by returning `Halt::Asks`.
    Later,
}

pub trait Peer: Send + Sync + 'static {
    /// Tells how far the work has come, if the client asked to know.
    fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>);

    /// Sends a log message, if the client's level lets it through.
    fn log(&self, severity: Severity, logger: Option<&str>, data: Value);

    /// Whether the client can be asked such a thing.
    fn can(&self, about: About) -> bool;

    /// Asks a question. An error when the client cannot be asked such a thing.
    fn ask(&self, ask: Ask) -> BoxFuture<'_, Result<Answered, Fault>>;

    /// Whether the client gets to see this action, beyond what roles say. A filter hides some of them.
    fn sees(&self, _action: &Action) -> bool {
        true
    }

    /// What its calls have in common, as long as it is the same conversation. None: each stands for itself.
    fn conversation(&self) -> Option<Arc<str>> {
        None
    }

    /// Whether the call is a task, which the client asks after instead of waiting for its answer.
    fn in_task(&self) -> bool {
        false
    }

    /// Says in words where the work stands, to whoever asks after its task.
    fn status(&self, _message: &str) {}

    /// From which level on this client wants log messages.
    fn log_level(&self) -> Option<Severity> {
        None
    }

    /// Whether it hears log messages that belong to no call.
    fn hears_broadcasts(&self) -> bool {
        false
    }

    /// Lets the client reconnect to the stream of this answer; does nothing where there is none.
    fn close_stream(&self) {}
}

/// A caller who only waits for the answer: sees what the filter lets through, and is told and asked nothing.
pub struct Alone(pub ToolFilter);

impl Peer for Alone {
    fn progress(&self, _: f64, _: Option<f64>, _: Option<&str>) {}

    fn log(&self, _: Severity, _: Option<&str>, _: Value) {}

    fn can(&self, _: About) -> bool {
        false
    }

    /// The call ends with its questions, and whoever made it says that they cannot be answered there.
    fn ask(&self, _: Ask) -> BoxFuture<'_, Result<Answered, Fault>> {
        Box::pin(std::future::ready(Ok(Answered::Later)))
    }

    fn sees(&self, action: &Action) -> bool {
        self.0.shows(action.name.as_str())
    }
}
