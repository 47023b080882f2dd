//! What a step can call. An agent gets an input and gives an output; one file per agent.

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use orchestr8_contract::Fault;
use orchestr8_contract::id::CorrelationId;
use orchestr8_kernel::Principal;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// One attempt of one step, as an agent gets it.
#[derive(Clone)]
pub struct Call {
    pub execution: Arc<str>,
    pub workflow: Arc<str>,
    pub step: Arc<str>,
    /// Counted from one, over restarts too.
    pub attempt: u32,
    /// The same for every attempt of one step, so that what is called can recognise a repeat.
    pub key: Arc<str>,
    pub agent: Arc<str>,
    pub input: Value,
    pub config: Value,
    pub correlation: CorrelationId,
    pub principal: Arc<Principal>,
    /// Fires when the attempt must end: within 100 ms.
    pub cancel: CancellationToken,
    /// To be called now and then by long work that has a heartbeat limit.
    pub heartbeat: Heartbeat,
}

/// What an agent gives back.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub output: Value,
    pub usage: Usage,
}

/// What a call used of a budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    #[serde(default)]
    pub tokens: u64,
    #[serde(default)]
    pub cost: f64,
}

impl From<Value> for Answer {
    fn from(output: Value) -> Self {
        Self { output, usage: Usage::default() }
    }
}

/// Says that an attempt is alive. Clones share it.
#[derive(Clone, Default)]
pub struct Heartbeat(Arc<tokio::sync::Notify>);

impl Heartbeat {
    pub fn beat(&self) {
        self.0.notify_one();
    }

    pub async fn beaten(&self) {
        self.0.notified().await;
    }
}

pub trait Agent: Send + Sync + 'static {
    /// The name workflows call it by, for example `@orchestr8/echo`.
    fn id(&self) -> &str;

    /// One sentence for people.
    fn about(&self) -> &str;

    /// It computes its output from its input and touches nothing else: running it again is harmless and nobody notices.
    fn is_pure(&self) -> bool {
        false
    }

    /// What it would call, as part of the breaker's key: a host, for example.
    fn target(&self, _input: &Value, _config: &Value) -> Option<String> {
        None
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, Fault>>;
}

/// The agents of this installation, by name.
#[derive(Clone, Default)]
pub struct Agents(Arc<HashMap<String, Arc<dyn Agent>>>);

impl Agents {
    pub fn new(agents: impl IntoIterator<Item = Arc<dyn Agent>>) -> Self {
        Self(Arc::new(agents.into_iter().map(|agent| (agent.id().to_owned(), agent)).collect()))
    }

    pub fn find(&self, id: &str) -> Option<&Arc<dyn Agent>> {
        self.0.get(id)
    }

    pub fn all(&self) -> impl Iterator<Item = &Arc<dyn Agent>> {
        self.0.values()
    }
}
