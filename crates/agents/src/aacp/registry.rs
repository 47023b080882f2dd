//! The agents that messages can be sent to: those inside the process, and those elsewhere that have registered.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use orchestr8_contract::id::{AgentId, Tenant};
use orchestr8_contract::{AccessRole, Code, Fault};
use orchestr8_kernel::Principal;
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::Store;
use orchestr8_kernel::ports::store::{Error, Row};
use orchestr8_secrets::{RecordKind, SecretVault};
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

use super::envelope::EVERYONE;
use super::record::Address;
use crate::limits;
use crate::tables;

/// What an agent says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Registration {
    /// Where its messages are brought; none: it reads its inbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_url: Option<String>,
    /// What is brought there is signed with it. It is never shown, and kept in the vault only.
    #[serde(default, skip_serializing)]
    pub callback_secret: Option<Secret>,
    /// It has a secret: nothing is brought without a signature, not even when the vault is locked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub signed: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topics: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Why nothing is brought to it; none while messages are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Cow<'static, str>>,
}

/// A text that no log and no answer repeats.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(pub String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Secret(..)")
    }
}

/// How an agent says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    Idle,
    Busy,
    /// It finishes what it has and wants nothing new.
    Draining,
}

impl Condition {
    pub const ALL: [Condition; 3] = [Condition::Idle, Condition::Busy, Condition::Draining];

    pub fn as_str(self) -> &'static str {
        match self {
            Condition::Idle => "idle",
            Condition::Busy => "busy",
            Condition::Draining => "draining",
        }
    }
}

/// An agent that has registered.
#[derive(Debug, Clone)]
pub struct Registered {
    /// Who registered it: only they, and the owner, act in its name.
    pub owner: Arc<str>,
    pub registration: Registration,
    pub condition: Condition,
    pub registered_ms: i64,
    /// Its last sign of life in this process.
    pub seen_ms: Option<i64>,
}

/// Names that agents of clients cannot have: the program speaks under those that begin with `svc:`, and `*` stands for every agent.
/// Those that begin with `workflow:` belong to the steps of the workflow that they name.
pub fn check_reserved(agent: &AgentId, workflow: Option<&str>) -> Result<(), Fault> {
    let name = agent.as_str();
    let begins = |prefix: &str| {
        name.get(..prefix.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(prefix))
    };
    let is_own = workflow.is_some_and(|workflow| name.strip_prefix("workflow:") == Some(workflow));
    let is_reserved = name == EVERYONE || begins("svc:") || (begins("workflow:") && !is_own);
    match is_reserved {
        true => Err(Fault::new(Code::Unauthorized, format!("the agent name '{agent}' is reserved"))
            .with("reason", "reserved_name")
            .with("agentId", name)),
        false => Ok(()),
    }
}

impl Registered {
    /// What is told of it: as it says itself, or that it is gone.
    pub fn state(&self, now_ms: i64) -> &'static str {
        let silent = self.seen_ms.is_none_or(|seen_ms| now_ms.saturating_sub(seen_ms) > limits::ALIVE_MS);
        if silent { "offline" } else { self.condition.as_str() }
    }
}

/// All agents that have registered: read once, kept here and in the store.
#[derive(Default)]
pub struct Agents {
    known: RwLock<BTreeMap<Address, Registered>>,
    read: OnceCell<()>,
}

impl Agents {
    /// Reads them, if that has not happened yet.
    pub async fn ready(&self, store: &Arc<dyn Store>, vault: Option<&SecretVault>) -> Result<(), Fault> {
        if let Some(vault) = vault {
            vault.load().await?;
        }
        let read = async {
            let limit = i64::try_from(limits::AGENTS).unwrap_or(i64::MAX);
            let rows = store.query(tables::agents_all(limit)).await?;
            let mut known = rows.iter().map(agent).collect::<Result<BTreeMap<_, _>, Error>>()?;
            for (address, agent) in &mut known {
                let (tenant, name) = (address.tenant.as_str(), address.agent.as_str());
                let kept = vault.and_then(|vault| vault.internal(RecordKind::Callback, tenant, name));
                let registration = &mut agent.registration;
                registration.callback_secret = kept
                    .map(|secret| Secret(secret.expose().to_owned()))
                    .or(registration.callback_secret.take());
                registration.signed |= registration.callback_secret.is_some();
            }
            *self.known.write() = known;
            Ok(())
        };
        self.read.get_or_try_init(|| read).await.map(|_| ()).map_err(store_fault)
    }

    pub fn get(&self, address: &Address) -> Option<Registered> {
        self.known.read().get(address).cloned()
    }

    pub fn list(&self, tenant: &Tenant) -> Vec<(AgentId, Registered)> {
        let known = self.known.read();
        let own = known.iter().filter(|(address, _)| address.tenant == *tenant);
        own.map(|(address, agent)| (address.agent.clone(), agent.clone())).collect()
    }

    /// Those of a tenant who listen to a topic; without one, all.
    pub fn listeners(&self, tenant: &Tenant, topic: Option<&str>) -> Vec<AgentId> {
        let listens = |agent: &Registered| {
            topic.is_none_or(|topic| agent.registration.topics.iter().any(|own| own == topic))
        };
        let known = self.known.read();
        let own = known.iter().filter(|(address, agent)| address.tenant == *tenant && listens(agent));
        own.map(|(address, _)| address.agent.clone()).collect()
    }

    /// Refuses a name that differs from that of another agent of the tenant only in case or in blanks around it.
    pub fn check_name(&self, address: &Address) -> Result<(), Fault> {
        let name = address.agent.as_str();
        if name.trim() != name {
            let text = format!("/agentId: '{name}' begins or ends with a blank");
            return Err(Fault::invalid(text).with("path", "/agentId"));
        }
        let known = self.known.read();
        let is_alike = |other: &&Address| {
            other.tenant == address.tenant
                && other.agent != address.agent
                && other.agent.as_str().to_lowercase() == name.to_lowercase()
        };
        match known.keys().find(is_alike) {
            None => Ok(()),
            Some(other) => {
                let text = format!("/agentId: '{name}' can be taken for the agent '{}'", other.agent);
                Err(Fault::new(Code::StateConflict, text).with("path", "/agentId"))
            }
        }
    }

    /// Whether there is room for one more.
    pub fn check_room(&self, address: &Address) -> Result<(), Fault> {
        let known = self.known.read();
        if known.contains_key(address) || known.len() < limits::AGENTS {
            return Ok(());
        }
        let what = format!("there are {} agents, and no more are taken", limits::AGENTS);
        Err(Fault::new(Code::ResourceExhausted, what).with("reason", "too_many_agents"))
    }

    pub fn keep(&self, address: Address, agent: Registered) {
        self.known.write().insert(address, agent);
    }

    /// Stops bringing messages to an agent. Gives it as it is now, or none if it was stopped already.
    pub fn pause(&self, address: &Address, reason: &'static str) -> Option<Registered> {
        let mut known = self.known.write();
        let agent = known.get_mut(address).filter(|agent| agent.registration.paused.is_none())?;
        agent.registration.paused = Some(Cow::Borrowed(reason));
        Some(agent.clone())
    }

    pub fn forget(&self, address: &Address) {
        self.known.write().remove(address);
    }

    /// Notes a sign of life.
    pub fn saw(&self, address: &Address, condition: Option<Condition>, now_ms: i64) -> Option<Registered> {
        let mut known = self.known.write();
        let agent = known.get_mut(address)?;
        agent.seen_ms = Some(now_ms);
        agent.condition = condition.unwrap_or(agent.condition);
        Some(agent.clone())
    }
}

impl Registered {
    /// Only the principal that registered an agent, and an owner, speak and read for it.
    pub fn check(&self, agent: &AgentId, principal: &Principal) -> Result<(), Fault> {
        if self.owner == principal.name || principal.has(AccessRole::Owner) {
            return Ok(());
        }
        Err(Fault::new(
            Code::Unauthorized,
            format!("the agent '{agent}' was registered by another principal"),
        )
        .with("agentId", agent.as_str()))
    }
}

fn agent(row: &Row) -> Result<(Address, Registered), Error> {
    let damaged = |what: &dyn std::fmt::Display| Error::Corrupt(what.to_string());
    let address = Address {
        tenant: Tenant::parse(row.text(0)?).map_err(|error| damaged(&error))?,
        agent: AgentId::parse(row.text(1)?).map_err(|error| damaged(&error))?,
    };
    let registered = Registered {
        owner: row.text(2)?.into(),
        registration: serde_json::from_str(row.text(3)?).map_err(|error| damaged(&error))?,
        condition: Condition::Idle,
        registered_ms: row.int(4)?,
        seen_ms: None,
    };
    Ok((address, registered))
}
