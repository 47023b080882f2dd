//! What a provider's protocol has to say for itself: how a request is written, and how its events become deltas.

use orchestr8_contract::Fault;
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::model::{About, Delta, Request};
use crate::secret::Secret;
use crate::sse::Event;

/// How a model is told how hard to think.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reasoning {
    /// It cannot think.
    #[default]
    None,
    /// By a number of tokens (`thinking.budget_tokens`). Only Anthropic has it; elsewhere it is as `Effort`.
    Budget,
    /// By a word (`output_config.effort`, `reasoning_effort`).
    Effort,
}

/// A model as its provider's protocol needs to know it.
#[derive(Debug, Clone)]
pub struct Spec {
    pub about: About,
    pub reasoning: Reasoning,
    pub key: Option<Secret>,
}

/// A protocol. Both sides are pure: all that is done over the network is in `remote.rs`.
pub trait Wire: Send + Sync + 'static {
    /// Behind the base URL of the provider.
    fn path(&self) -> &'static str;

    /// The headers, with the key in its place. None: the key cannot be sent in a header.
    fn headers(&self, key: Option<&Secret>) -> Option<HeaderMap>;

    fn body(&self, spec: &Spec, request: &Request) -> Value;

    /// A fresh one for each attempt.
    fn fold(&self, spec: &Spec, request: &Request, now_ms: i64) -> Box<dyn Fold>;
}

/// Turns events into deltas. The last delta is `Done`; after it, or after a fault, nothing is asked any more.
pub trait Fold: Send {
    fn take(&mut self, event: &Event) -> Result<Vec<Delta>, Fault>;

    /// The stream is over: the rest, or the fault that it broke off.
    fn end(&mut self) -> Result<Vec<Delta>, Fault>;
}
