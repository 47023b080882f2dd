//! `agents.register`, `agents.unregister`, `agents.heartbeat` and `agents.list`: who takes part.

use std::sync::Arc;

use orchestr8_contract::{Code, Fault, Kind, Output};
use orchestr8_kernel::action::Cost;
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::store::Batch;
use orchestr8_kernel::principals::Standing;
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};
use orchestr8_secrets::{RecordKind, SecretRecord, SecretText};
use serde_json::{Value, json};

use super::inbox::own;
use super::{agent_id, agent_schema, answer, object, reading, working};
use crate::aacp::record::Address;
use crate::aacp::{Condition, Hub, Registered, Registration, Secret, check_reserved};
use crate::limits;
use crate::tables;

/// What was wrong with a wish did nothing: its key may be used again.
const REFUSALS: &[Kind] = &[Kind::Invalid, Kind::NotFound, Kind::Forbidden, Kind::Exhausted];

fn changing() -> Policy {
    let slotting = orchestr8_kernel::action::Slotting::Free;
    Policy {
        slotting,
        cost: Cost::Work,
        refusals: REFUSALS,
        idempotent: true,
        secret_args: &["callbackSecret"],
        ..Policy::stored()
    }
}

pub fn register(hub: &Hub) -> Result<Action, schema::Error> {
    let input = object(
        json!({
            "agentId": agent_schema(),
            "callbackUrl": {"type": "string", "maxLength": 2048, "description": "Where messages are brought; without it the agent reads its inbox."},
            "callbackSecret": {"type": "string", "minLength": limits::SECRET_LETTERS_MIN, "maxLength": limits::SECRET_LETTERS, "description": "What is brought there is signed with it; without it, as before."},
            "topics": {"type": "array", "maxItems": limits::TOPICS, "items": {"type": "string", "minLength": 1, "maxLength": limits::TOPIC_LETTERS}},
            "description": {"type": "string", "maxLength": 1000}
        }),
        &["agentId"],
    );
    let about = "Registers an agent, so that messages can be sent to it. Done again, it changes where and what it listens to.";
    let action =
        working(("agents.register", about), input, changing(), hub, |hub, args, context| async move {
            enlist(&hub, &args, &context).await
        })?;
    Ok(action.titled("Register an agent"))
}

async fn enlist(hub: &Hub, args: &Args, context: &Context) -> Result<Reply, Halt> {
    hub.ready().await?;
    let address = Address { tenant: context.principal.tenant.clone(), agent: agent_id(args, "agentId")? };
    if hub.coordinator().has(&address.agent) {
        let text = format!("/agentId: '{}' is an agent of this server", address.agent);
        return Err(Fault::new(Code::StateConflict, text).with("path", "/agentId").into());
    }
    if address.agent.as_str() == crate::aacp::EVERYONE {
        return Err(Fault::invalid("/agentId: '*' stands for every agent").with("path", "/agentId").into());
    }
    check_reserved(&address.agent, context.workflow.as_deref())?;
    let known = hub.agents().get(&address);
    if let Some(known) = &known {
        known.check(&address.agent, &context.principal)?;
    }
    if known.is_none() {
        hub.agents().check_name(&address)?;
    }
    hub.agents().check_room(&address)?;
    let texts = |name: &str| -> Vec<String> {
        let list = args.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        list.iter().filter_map(|text| Some(text.as_str()?.to_owned())).collect()
    };
    // Nobody can read a secret back to give it again.
    let kept = known.as_ref().and_then(|known| known.registration.callback_secret.clone());
    let secret = args.text("callbackSecret").map(|text| Secret(text.to_owned())).or(kept);
    let callback_url = args.text("callbackUrl").map(str::to_owned);
    if callback_url.is_none() && args.get("callbackSecret").is_some() {
        let fault = Fault::invalid("/callbackSecret: there is no callbackUrl whose messages it would sign");
        return Err(fault.with("path", "/callbackSecret").into());
    }
    let registration = Registration {
        signed: callback_url.is_some() && secret.is_some(),
        callback_secret: callback_url.as_ref().and(secret),
        callback_url,
        topics: texts("topics"),
        description: args.text("description").map(str::to_owned),
        paused: None,
    };
    if let Some(url) = &registration.callback_url {
        hub.check_callback(url)?;
    }
    let now_ms = hub.now_ms();
    let registered = Registered {
        owner: owner(&address, known.as_ref(), context),
        registration,
        condition: Condition::Idle,
        registered_ms: known.as_ref().map_or(now_ms, |known| known.registered_ms),
        seen_ms: Some(now_ms),
    };
    let about = serde_json::to_string(&registered.registration)
        .map_err(|error| Fault::internal("a registration could not be written").because(error))?;
    let mut effects = Batch::new();
    let was = known.as_ref().map_or(&registered.owner, |known| &known.owner);
    effects.then_one(tables::agent_put(&address, was, &registered.owner, about, registered.registered_ms));
    let kept = keep_secret(hub, &address, &registered, args, &mut effects).await?;
    let output = Output::json(shown(address.agent.as_str(), &registered, now_ms));
    let hub = hub.clone();
    Ok(Reply::new(output, effects).then(move || {
        kept.settle(&hub, &address);
        hub.agents().keep(address.clone(), registered);
        hub.dispatch(&address, 0, None);
    }))
}

/// Whose agent it is: of the principal that registered it, unless that one's credentials are gone.
fn owner(address: &Address, known: Option<&Registered>, context: &Context) -> Arc<str> {
    let is_revoked = |owner: &str| context.kernel.standing(&address.tenant, owner) == Standing::Revoked;
    match known {
        Some(known) if !is_revoked(&known.owner) => known.owner.clone(),
        Some(_) | None => context.principal.name.clone(),
    }
}

/// What the vault must know once the registration is durable.
enum KeptSecret {
    Same,
    Stored(Box<SecretRecord>, SecretText),
    Removed,
}

impl KeptSecret {
    fn settle(self, hub: &Hub, address: &Address) {
        let Some(vault) = hub.vault() else { return };
        match self {
            KeptSecret::Same => {}
            KeptSecret::Stored(record, value) => vault.remember(*record, value),
            KeptSecret::Removed => {
                vault.forget(RecordKind::Callback, address.tenant.as_str(), address.agent.as_str())
            }
        }
    }
}

/// Encrypts a secret that was given, and deletes one that signs nothing any more.
async fn keep_secret(
    hub: &Hub,
    address: &Address,
    registered: &Registered,
    args: &Args,
    effects: &mut Batch,
) -> Result<KeptSecret, Fault> {
    let (tenant, name) = (address.tenant.as_str(), address.agent.as_str());
    match (args.text("callbackSecret"), hub.vault()) {
        (Some(_), None) => {
            Err(Fault::new(Code::SecretsUnavailable, "/callbackSecret: this server keeps no secrets"))
        }
        (Some(secret), Some(vault)) => {
            let (record, value) =
                (vault.draft(RecordKind::Callback, tenant, name, &registered.owner), SecretText::new(secret));
            effects.then_one(vault.seal(&record, &value).await?);
            Ok(KeptSecret::Stored(Box::new(record), value))
        }
        (None, Some(vault)) if !registered.registration.signed => {
            effects.then(vault.removal(RecordKind::Callback, tenant, name));
            Ok(KeptSecret::Removed)
        }
        (None, Some(_) | None) => Ok(KeptSecret::Same),
    }
}

pub fn unregister(hub: &Hub) -> Result<Action, schema::Error> {
    let input = object(json!({"agentId": agent_schema()}), &["agentId"]);
    let about =
        "Forgets an agent; nothing more can be sent to it. What it has not read stays until it expires.";
    let policy = Policy { destructive: true, ..changing() };
    let action =
        working(("agents.unregister", about), input, policy, hub, |hub, args, context| async move {
            let address = own(&hub, &args, &context).await?;
            let mut effects = Batch::new();
            effects.then(tables::agent_delete(&address));
            if let Some(vault) = hub.vault() {
                effects.then(vault.removal(
                    RecordKind::Callback,
                    address.tenant.as_str(),
                    address.agent.as_str(),
                ));
            }
            let output = Output::json(json!({"agentId": address.agent, "unregistered": true}));
            Ok(Reply::new(output, effects).then(move || {
                KeptSecret::Removed.settle(&hub, &address);
                hub.agents().forget(&address);
                hub.tell_readers(&address);
            }))
        })?;
    Ok(action.titled("Unregister an agent").hidden())
}

pub fn heartbeat(hub: &Hub) -> Result<Action, schema::Error> {
    let words: Vec<&str> = Condition::ALL.iter().map(|condition| condition.as_str()).collect();
    let state = json!({"type": "string", "enum": words, "description": "How it is; without it, as before."});
    let input = object(json!({"agentId": agent_schema(), "state": state}), &["agentId"]);
    let about = "Says that an agent is alive, and how it is. Without a sign of life for a minute it counts as offline.";
    let action =
        working(("agents.heartbeat", about), input, reading(), hub, |hub, args, context| async move {
            let address = own(&hub, &args, &context).await?;
            let word = args.text("state").unwrap_or_default();
            let condition = Condition::ALL.into_iter().find(|condition| condition.as_str() == word);
            let now_ms = hub.now_ms();
            match hub.agents().saw(&address, condition, now_ms) {
                Some(agent) => answer(shown(address.agent.as_str(), &agent, now_ms)),
                None => Err(crate::coordinator::unknown(&address.agent).into()),
            }
        })?;
    Ok(action.titled("Give a sign of life").hidden())
}

pub fn list(hub: &Hub) -> Result<Action, schema::Error> {
    let about =
        "Lists the agents that messages can be sent to: those of this server and those that have registered.";
    let input =
        object(json!({"topic": {"type": "string", "description": "Only those who listen to it."}}), &[]);
    let action = working(("agents.list", about), input, reading(), hub, |hub, args, context| async move {
        hub.ready().await?;
        let now_ms = hub.now_ms();
        let topic = args.text("topic");
        let (local, mut truncated) = hub.coordinator().list(limits::LISTED_AGENTS);
        let mut agents: Vec<Value> = match topic {
            Some(_) => Vec::new(),
            None => local.iter().map(|id| json!({"agentId": id, "kind": "local", "state": "idle"})).collect(),
        };
        for (id, agent) in hub.agents().list(&context.principal.tenant) {
            if topic.is_some_and(|topic| !agent.registration.topics.iter().any(|own| own == topic)) {
                continue;
            }
            if agents.len() >= limits::LISTED_AGENTS {
                truncated = true;
                break;
            }
            agents.push(shown(id.as_str(), &agent, now_ms));
        }
        answer(json!({"agents": agents, "truncated": truncated}))
    })?;
    Ok(action.titled("List agents and their states"))
}

/// An agent as it is told.
fn shown(id: &str, agent: &Registered, now_ms: i64) -> Value {
    let registration = &agent.registration;
    let kind = if registration.callback_url.is_some() { "callback" } else { "inbox" };
    let mut told = json!({
        "agentId": id, "kind": kind, "state": agent.state(now_ms), "topics": registration.topics,
        "registeredAt": iso(agent.registered_ms),
    });
    if let Some(url) = &registration.callback_url {
        told["callbackUrl"] = url.as_str().into();
        told["signed"] = registration.signed.into();
    }
    if let Some(description) = &registration.description {
        told["description"] = description.as_str().into();
    }
    if let Some(reason) = &registration.paused {
        told["paused"] = reason.as_ref().into();
    }
    if let Some(seen_ms) = agent.seen_ms {
        told["lastSeenAt"] = iso(seen_ms).into();
    }
    told
}
