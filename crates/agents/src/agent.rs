//! What an agent is: something that answers messages and has a state.

use futures::future::BoxFuture;
use orchestr8_contract::Fault;
use orchestr8_contract::id::AgentId;
use orchestr8_kernel::{Cancel, Log};
use serde_json::Value;

use crate::state::State;

/// One message to an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// What sort of message, in words the agent knows.
    pub kind: String,
    pub payload: Value,
    /// The agent that sent it, if one did.
    pub source: Option<AgentId>,
}

/// What an agent gets beside the message.
pub struct Surroundings<'a> {
    pub id: &'a AgentId,
    /// Its own state. What it changes counts once it has answered; a message that fails leaves the state as it was.
    pub state: &'a mut State,
    pub log: Log,
    /// Fires when nobody wants the answer any more; the agent stops promptly (MCP-TIMEOUT-3).
    pub cancel: Cancel,
}

/// Answers messages, one at a time.
pub trait Agent: Send + Sync + 'static {
    fn receive<'a>(
        &'a self,
        message: Message,
        around: Surroundings<'a>,
    ) -> BoxFuture<'a, Result<Value, Fault>>;
}
