//! The built-in agent `echo`: answers with what it was sent, and counts, so that sending and state can be tried out.

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::Fault;
use serde_json::{Value, json};

use crate::agent::{Agent, Message, Surroundings};

/// Answers `{"type", "payload", "count"}`; its state holds the `count` of messages and the `lastType`.
pub struct Echo;

impl Echo {
    /// The name it is registered under.
    pub const ID: &'static str = "echo";
}

impl Agent for Echo {
    fn receive<'a>(
        &'a self,
        message: Message,
        around: Surroundings<'a>,
    ) -> BoxFuture<'a, Result<Value, Fault>> {
        async move {
            let count = around.state.get("count").and_then(Value::as_u64).unwrap_or(0) + 1;
            around.state.set("count", count)?;
            around.state.set("lastType", message.kind.as_str())?;
            Ok(json!({"type": message.kind, "payload": message.payload, "count": count}))
        }
        .boxed()
    }
}
