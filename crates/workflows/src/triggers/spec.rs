//! What a trigger says: which workflow it starts, from what, with which inputs and on whose behalf.

use std::sync::Arc;

use orchestr8_contract::id::{AgentId, Tenant};
use orchestr8_contract::{Fault, RoleSet};
use orchestr8_kernel::Principal;
use orchestr8_kernel::grant::TokenGrant;
use orchestr8_kernel::tool_limit::ToolLimit;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::mapping::{self, TriggerSource};
use crate::authors::Author;
use crate::expression::Condition;
use crate::limits;
use crate::notifications::NotifySpec;

/// What a trigger says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TriggerSpec {
    /// Empty for one that only notifies.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub workflow_id: String,
    /// The revision of the workflow that it starts.
    #[serde(default)]
    pub revision: i64,
    /// It is started by signed requests; else by events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<EventSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<NotifySpec>,
    /// The inputs of an execution, with expressions over what came in.
    pub inputs: Option<Value>,
    pub author: TriggerAuthor,
}

/// A trigger that a signed request starts.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WebhookSpec {
    #[serde(default)]
    pub signature: SignatureScheme,
    /// The name of the secret that signs; none: the trigger has one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    #[serde(default)]
    pub deduplication: Deduplication,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debounce: Option<Debounce>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<Batching>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_per_minute: Option<u32>,
}

/// A trigger that events start: of executions, of documents, or messages to an agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EventSpec {
    /// Names of live events.
    pub types: Vec<String>,
    /// A condition over the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// The agent whose messages it follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Whether it acknowledges the messages that it has taken or left out; it does unless this says no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledge: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_per_minute: Option<u32>,
}

/// What event triggers can follow: the beginning, the end and the interruptions of executions, the ends of steps, changes of
/// documents, and messages to an agent.
pub const EVENT_TYPES: [&str; 14] = [
    "workflow.started",
    "workflow.completed",
    "workflow.failed",
    "workflow.cancelled",
    "workflow.compensated",
    "workflow.paused",
    "workflow.resumed",
    "step.completed",
    "step.failed",
    "document.created",
    "document.updated",
    "document.moved",
    "document.deleted",
    MESSAGE_RECEIVED,
];

/// A message has come for an agent.
pub const MESSAGE_RECEIVED: &str = "message.received";

/// Where the events of a trigger come from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum EventOrigin {
    /// The journals of executions.
    Journals,
    Documents,
    Inbox(AgentId),
}

impl EventSpec {
    pub fn is_of_type(&self, event: &Value) -> bool {
        self.types.iter().any(|name| event["type"] == name.as_str())
    }

    /// What it follows: all its types come from there.
    pub fn origin(&self) -> EventOrigin {
        match &self.agent {
            Some(agent) => EventOrigin::Inbox(agent.clone()),
            None if self.types.iter().any(|name| is_of_document(name)) => EventOrigin::Documents,
            None => EventOrigin::Journals,
        }
    }

    pub fn acknowledges(&self) -> bool {
        self.acknowledge.unwrap_or(true)
    }

    /// The filter, if there is one.
    pub fn condition(&self) -> Result<Option<Condition>, Fault> {
        self.filter.as_deref().map(mapping::condition).transpose()
    }

    fn check(&self) -> Result<(), Fault> {
        self.condition()?;
        if let Some(unknown) = self.types.iter().find(|name| !EVENT_TYPES.contains(&name.as_str())) {
            let what = format!("there is no event '{unknown}'; there are {}", EVENT_TYPES.join(", "));
            return Err(wrong("/event/types", what));
        }
        self.check_origin()?;
        match self.max_per_minute {
            Some(count) if !(1..=limits::EVENTS_PER_MINUTE).contains(&count) => {
                Err(wrong("/event/maxPerMinute", format!("must be from 1 to {}", limits::EVENTS_PER_MINUTE)))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// A trigger has one place in one feed, so its types are of one feed.
    fn check_origin(&self) -> Result<(), Fault> {
        let documents = self.types.iter().filter(|name| is_of_document(name)).count();
        let messages = self.types.iter().filter(|name| *name == MESSAGE_RECEIVED).count();
        if [0, self.types.len()].iter().all(|count| *count != documents)
            || [0, self.types.len()].iter().all(|count| *count != messages)
        {
            let what = "events of executions, events of documents and messages are followed by triggers of their own; store one for each";
            return Err(wrong("/event/types", what));
        }
        match (messages > 0, &self.agent, self.acknowledge) {
            (true, None, _) => Err(wrong("/event/agent", "name the agent whose messages start the workflow")),
            (false, Some(_), _) => {
                Err(wrong("/event/agent", format!("belongs to the type {MESSAGE_RECEIVED}")))
            }
            (false, None, Some(_)) => {
                Err(wrong("/event/acknowledge", format!("belongs to the type {MESSAGE_RECEIVED}")))
            }
            (true, Some(_), _) | (false, None, None) => Ok(()),
        }
    }
}

fn is_of_document(name: &str) -> bool {
    name.starts_with("document.")
}

/// Which signatures a webhook trigger accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SignatureScheme {
    #[default]
    Any,
    /// `X-Orchestr8-Signature-V1: t=<seconds>,v1=<hex>`: an old request is refused.
    Timed,
    /// `X-Hub-Signature-256: sha256=<hex>`, as GitHub signs.
    Github,
}

/// When two deliveries are the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Deduplication {
    /// An expression; none: the id of the delivery in its headers, or the hash of its body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default = "default_window_ms")]
    pub window_ms: i64,
}

impl Default for Deduplication {
    fn default() -> Self {
        Self { key: None, window_ms: limits::DEDUPLICATION_MS }
    }
}

fn default_window_ms() -> i64 {
    limits::DEDUPLICATION_MS
}

/// Waits until no delivery has come for a while; the last one starts an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Debounce {
    pub quiet_ms: i64,
    /// However many come, it waits no longer than this after the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_wait_ms: Option<i64>,
}

/// Collects deliveries; one execution gets all of them as a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Batching {
    pub size: i64,
    pub window_ms: i64,
    /// The input that gets the list.
    pub input: String,
}

/// The principal that stored a trigger, with its rights of that moment.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TriggerAuthor {
    pub name: String,
    pub roles: RoleSet,
    /// The scope of its API token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolLimit>,
}

impl TriggerAuthor {
    pub fn of(principal: &Principal) -> Self {
        Self {
            name: principal.name.to_string(),
            roles: principal.roles,
            scope: principal.scope_entries(),
            tools: principal.tools.clone(),
        }
    }

    pub fn author(&self) -> Author {
        let Self { name, roles, scope, tools } = self;
        Author { name: name.as_str().into(), roles: *roles, scope: scope.clone(), tools: tools.clone() }
    }

    pub fn principal(&self, tenant: Tenant) -> Arc<Principal> {
        let grant = TokenGrant::recorded(&self.name, tenant.clone(), &self.scope);
        let principal = Principal::new(self.name.as_str(), tenant, self.roles);
        Arc::new(principal.granted(grant).limited(self.tools.as_ref()))
    }
}

impl TriggerSpec {
    /// Whether it follows events.
    pub fn follows(&self) -> bool {
        self.event.is_some() || self.notify.is_some()
    }

    /// What it follows, if it does.
    pub fn origin(&self) -> EventOrigin {
        self.event.as_ref().map_or(EventOrigin::Journals, EventSpec::origin)
    }

    /// The name of its secret, if it is not one of its own.
    pub fn secret_name(&self) -> Option<&str> {
        let webhook = self.webhook.as_ref().and_then(|webhook| webhook.secret_name.as_deref());
        webhook.or_else(|| self.notify.as_ref()?.secret_name.as_deref())
    }

    /// Refuses what could never start an execution.
    pub fn check(&self) -> Result<(), Fault> {
        match (&self.webhook, &self.event) {
            (None, None) if self.notify.is_some() => Ok(()),
            (Some(_), _) | (_, Some(_)) if self.notify.is_some() => {
                Err(wrong("/notify", "a trigger has webhook, event or notify, and not two of them"))
            }
            (Some(webhook), None) => {
                mapping::inputs(self.inputs.as_ref(), TriggerSource::Hook)?;
                webhook.check()
            }
            (None, Some(event)) => {
                mapping::inputs(self.inputs.as_ref(), TriggerSource::Event)?;
                event.check()
            }
            (Some(_), Some(_)) => Err(wrong("/event", "a trigger has webhook or event, not both")),
            (None, None) => Err(wrong("/webhook", "a trigger needs webhook, event or notify")),
        }
    }
}

impl WebhookSpec {
    fn check(&self) -> Result<(), Fault> {
        if let Some(key) = &self.deduplication.key {
            mapping::key(key)?;
        }
        let within = |path: &str, value: i64, max: i64| match (1..=max).contains(&value) {
            true => Ok(()),
            false => Err(wrong(path, format!("must be from 1 to {max}"))),
        };
        within(
            "/webhook/deduplication/windowMs",
            self.deduplication.window_ms,
            limits::DEDUPLICATION_MAX_MS,
        )?;
        if let Some(debounce) = self.debounce {
            within("/webhook/debounce/quietMs", debounce.quiet_ms, limits::TRIGGER_WAIT_MS)?;
            if let Some(max_wait_ms) = debounce.max_wait_ms {
                within("/webhook/debounce/maxWaitMs", max_wait_ms, limits::TRIGGER_WAIT_MS)?;
            }
        }
        if let Some(batch) = &self.batch {
            within("/webhook/batch/size", batch.size, limits::BATCH_DELIVERIES)?;
            within("/webhook/batch/windowMs", batch.window_ms, limits::TRIGGER_WAIT_MS)?;
        }
        if let Some(count) = self.max_per_minute {
            within("/webhook/maxPerMinute", i64::from(count), i64::from(limits::DELIVERIES_PER_MINUTE))?;
        }
        match self.debounce.is_some() && self.batch.is_some() {
            true => Err(wrong("/webhook/batch", "a trigger has debounce or batch, not both")),
            false => Ok(()),
        }
    }
}

/// The fault of a member of a trigger.
pub fn wrong(path: &str, what: impl std::fmt::Display) -> Fault {
    Fault::invalid(format!("{path}: {what}")).with("path", path)
}
