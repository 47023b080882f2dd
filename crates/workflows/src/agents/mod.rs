//! What a step can call. An agent gets an input and gives an output; one file per agent.

mod capability;
mod child;
mod discreet;
mod echo;
mod exec;
mod http;
mod knowledge;
mod llm;
mod members;
mod message;
mod remote;
pub mod secrets;
mod session;
pub mod settings;
mod tool;
mod transform;
pub mod workers;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use futures::future::BoxFuture;
use orchestr8_contract::error::StoredFault;
use orchestr8_contract::id::CorrelationId;
use orchestr8_contract::{Code, Fault, TraceParent};
use orchestr8_kernel::tool_limit::ToolLimit;
use orchestr8_kernel::{Kernel, Principal};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use discreet::{Discreet, Discretion};

pub use capability::Capability;
pub use secrets::{CallSecrets, SecretAccess};
pub use settings::Settings;
pub use workers::Workers;

/// What agents use of the program around them.
#[derive(Clone)]
pub struct Parts {
    pub kernel: Kernel,
    pub workers: Workers,
}

/// The agents that come with the program. To add one: its file, and its line here.
pub fn builtin(settings: &Settings, parts: &Parts) -> Vec<Arc<dyn Agent>> {
    let ports = parts.kernel.ports();
    let discretion = Discretion { redactor: ports.redactor.clone() };
    let mut all: Vec<Arc<dyn Agent>> = vec![
        Arc::new(echo::Echo),
        Arc::new(transform::Transform),
        Arc::new(http::Http::new(&settings.http, ports.clock.clone())),
        Arc::new(tool::Tool::new(parts.kernel.clone(), settings.tools.clone())),
        Arc::new(llm::Llm::new(parts.kernel.clone())),
        Arc::new(session::Session::new(parts.kernel.clone())),
        Arc::new(knowledge::Knowledge::new(parts.kernel.clone())),
        Arc::new(message::Send::new(parts.kernel.clone())),
        Arc::new(message::Request::new(parts.kernel.clone())),
        Arc::new(exec::Exec::new(settings.exec.as_ref(), ports.clock.clone(), discretion.clone())),
        Arc::new(workers::Worker::new(parts.workers.clone())),
    ];
    let client = Arc::new(orchestr8_outbound::Client::trusted());
    all.extend(settings.remote.iter().map(|(name, remote)| -> Arc<dyn Agent> {
        Arc::new(remote::Remote::new(name, remote, client.clone(), ports.clock.clone()))
    }));
    all.into_iter().map(|agent| discreet(agent, &discretion)).collect()
}

/// Whether an agent refuses members of its input that it does not know.
pub fn has_fixed_input(id: &str) -> bool {
    id.starts_with("@orchestr8/") && id != echo::ID
}

/// What a pure agent says in a fault is of our own making, so only the others need to be watched.
fn discreet(agent: Arc<dyn Agent>, discretion: &Discretion) -> Arc<dyn Agent> {
    if agent.is_pure() { agent } else { Discreet::around(agent, discretion.clone()) }
}

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
    /// To be passed on to whomever the agent calls.
    pub trace: Option<TraceParent>,
    pub principal: Arc<Principal>,
    /// The values behind the references to secrets in input and config.
    pub secrets: CallSecrets,
    /// Fires when the attempt must end: within 100 ms.
    pub cancel: CancellationToken,
    /// To be called now and then by long work that has a heartbeat limit.
    pub heartbeat: Heartbeat,
    /// Fires once the end of the attempt is on record.
    pub recorded: CancellationToken,
    /// The result is kept as an artifact, so it may be larger than an output.
    pub keeps_artifact: bool,
}

impl Call {
    /// How much an agent may read of an answer that it was going to limit to so many bytes.
    pub fn answer_bytes(&self, inline: usize) -> usize {
        if self.keeps_artifact { crate::limits::ARTIFACT_BYTES } else { inline }
    }
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

impl Usage {
    /// The name under which a fault says what the failed attempt used all the same.
    pub const DETAIL: &str = "usage";

    /// What a failed attempt used.
    pub fn of(fault: &StoredFault) -> Self {
        let used = fault.details.as_ref().and_then(|details| details.get(Self::DETAIL));
        let used: Self = used.and_then(|used| Self::deserialize(used).ok()).unwrap_or_default();
        if used.cost.is_finite() && used.cost >= 0.0 { used } else { Self { cost: 0.0, ..used } }
    }
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

/// Where an agent's work is done, which says what limits how many of its attempts run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkLocation {
    /// Here: an attempt holds a step slot.
    ThisProcess,
    /// With others, who have a limit of their own; here it is only waited for.
    Remote {
        /// Attempts that may be with them at once.
        limit: usize,
        /// Each tenant has others of its own, such as a queue of workers.
        is_per_tenant: bool,
    },
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

    /// How often a pure one goes over its input, at most: its work is about so many times the size of that.
    fn passes(&self, _input: &Value, _config: &Value) -> usize {
        1
    }

    /// Where its work is done.
    fn location(&self) -> WorkLocation {
        WorkLocation::ThisProcess
    }

    /// Whether the settings of this installation let it do anything. One that is not is not listed, and says why when called.
    fn is_usable(&self) -> bool {
        true
    }

    /// It inserts the values of secrets where they leave the process. Any other agent gets `[REDACTED]` in their place.
    fn inserts_secrets(&self) -> bool {
        false
    }

    /// What an execution whose tools are limited must be allowed for this call. Without a word, the agent by its own name.
    fn capability(&self, _input: &Value, _config: &Value) -> Capability {
        match self.is_pure() {
            true => Capability::Nothing,
            false => Capability::Agent { same_as: Vec::new() },
        }
    }

    /// What it would call, as part of the breaker's key: a host, for example.
    fn target(&self, _input: &Value, _config: &Value) -> Option<String> {
        None
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, Fault>>;

    /// Whether what it calls is well; none where there is nothing to ask.
    fn health(&self) -> Option<BoxFuture<'static, Result<(), Fault>>> {
        None
    }

    /// Whether it is meant by this id. An agent whose own id ends with `/` may stand for all ids that begin so.
    fn answers_to(&self, id: &str) -> bool {
        id == self.id()
    }
}

/// The agents of this installation, by name.
#[derive(Clone, Default)]
pub struct Agents {
    by_id: Arc<HashMap<String, Arc<dyn Agent>>>,
    /// The setting `workflows.allowedAgents`.
    allowed: Option<ToolLimit>,
}

impl Agents {
    pub fn new(agents: impl IntoIterator<Item = Arc<dyn Agent>>) -> Self {
        let by_id = agents.into_iter().map(|agent| (agent.id().to_owned(), agent)).collect();
        Self { by_id: Arc::new(by_id), allowed: None }
    }

    /// The same agents, of which steps may call only those that these names and beginnings of names stand for; all if empty.
    #[must_use]
    pub fn allowing(self, patterns: &[String]) -> Self {
        Self { allowed: ToolLimit::of_setting(patterns), ..self }
    }

    pub fn find(&self, id: &str) -> Option<&Arc<dyn Agent>> {
        let family = || self.by_id.get(&id[..=id.find('/')?]);
        self.by_id.get(id).or_else(family).filter(|agent| agent.answers_to(id))
    }

    /// Those that can be used here.
    pub fn all(&self) -> impl Iterator<Item = &Arc<dyn Agent>> {
        self.by_id.values().filter(|agent| agent.is_usable() && self.is_listed(agent.id()))
    }

    /// A family of agents is listed if one of them may be called.
    fn is_listed(&self, id: &str) -> bool {
        let is_family = |allowed: &ToolLimit| {
            id.ends_with('/') && allowed.patterns().iter().any(|pattern| pattern.starts_with(id))
        };
        self.allowed.as_ref().is_none_or(|allowed| allowed.allows(id) || is_family(allowed))
    }

    /// Whether steps may call the agent with this id here, on behalf of this principal.
    pub fn check(
        &self,
        agent: &dyn Agent,
        principal: &Principal,
        (id, input, config): (&str, &Value, &Value),
    ) -> Result<(), Fault> {
        if self.allowed.as_ref().is_some_and(|allowed| !allowed.allows(id)) {
            let what = format!("this server does not let steps call the agent '{id}'");
            return Err(Fault::new(Code::Unauthorized, what)
                .with("reason", "agent_not_allowed")
                .with("setting", "workflows.allowedAgents"));
        }
        match &principal.tools {
            None => Ok(()),
            Some(limit) => capability::check(limit, agent, id, input, config),
        }
    }
}

/// The work, or CANCELLED as soon as the token fires; the work is dropped then.
pub(crate) async fn until_cancelled<T>(
    cancel: &CancellationToken,
    work: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Fault::new(Code::Cancelled, "the step was cancelled")),
        result = work => result,
    }
}
