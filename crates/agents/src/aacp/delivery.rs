//! Brings messages to agents that do not come for them: those inside the process, and those with a callback address. One run
//! per agent at a time, in the order of its inbox.

use std::time::Duration;

use orchestr8_contract::Fault;
use orchestr8_contract::error::StoredFault;
use orchestr8_contract::id::RequestId;
use orchestr8_kernel::audit::StateChange;
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::log;
use orchestr8_kernel::ports::store::Batch;
use orchestr8_kernel::principals::Standing;
use orchestr8_kernel::resilience::retry::may_retry;
use serde_json::{Map, Value, json};

use super::audit::Actor;
use super::callback::{Brought, Callback, Delivery};
use super::desk::{Ack, HandOver, Wish};
use super::envelope::{Envelope, Kind, More, Target};
use super::hub::Hub;
use super::record::{Address, Placed};
use super::registry::Registered;
use super::rows::{self, Item};
use super::runs::Next;
use crate::agent::Message;
use crate::limits;
use crate::tables;

/// How long a run rests when the store cannot be used.
const PAUSE_MS: u64 = 1_000;

/// Why nothing is brought to an agent whose principal has lost its credentials.
const REVOKED: &str = "principal_revoked";

/// How an agent gets its messages.
pub(super) enum Way {
    Local,
    Callback(Callback),
    /// It comes for them.
    Inbox,
    /// The credentials of the principal that registered its callback are gone.
    Orphaned,
}

impl Hub {
    /// Brings what waits for an agent, if it does not come for it itself.
    pub fn dispatch(&self, address: &Address, position: u64, placed: Option<Box<Placed>>) {
        let is_mine = match self.way(address) {
            Way::Local | Way::Callback(_) => self.0.runs.begin(address, position, placed),
            way @ (Way::Inbox | Way::Orphaned) => {
                if matches!(way, Way::Orphaned) {
                    self.pause_orphaned(address);
                }
                self.0.runs.forget(address);
                false
            }
        };
        if is_mine {
            let (hub, address) = (self.clone(), address.clone());
            tokio::spawn(async move { hub.deliver_all(&address).await });
        }
    }

    pub(super) fn way(&self, address: &Address) -> Way {
        match self.0.agents.get(address) {
            Some(agent) => {
                let secret = agent.registration.callback_secret;
                if agent.registration.signed && secret.is_none() {
                    // The vault is locked: messages wait in the inbox rather than go out unsigned.
                    return Way::Inbox;
                }
                match agent.registration.callback_url {
                    Some(_) if agent.registration.paused.is_some() => Way::Inbox,
                    Some(_) if self.0.kernel.standing(&address.tenant, &agent.owner) == Standing::Revoked => {
                        Way::Orphaned
                    }
                    Some(url) => Way::Callback(Callback { url, secret }),
                    None => Way::Inbox,
                }
            }
            None if self.0.coordinator.has(&address.agent) => Way::Local,
            None => Way::Inbox,
        }
    }

    /// Stops bringing messages to an agent whose principal has lost its credentials; they wait in its inbox. On record once.
    fn pause_orphaned(&self, address: &Address) {
        let Some(agent) = self.0.agents.pause(address, REVOKED) else { return };
        let (hub, address) = (self.clone(), address.clone());
        tokio::spawn(async move {
            let fields = json!({"agentId": address.agent, "owner": agent.owner});
            let log = hub.0.kernel.log();
            log.warn("a callback was paused: the credentials of its principal were revoked", fields);
            if let Err(fault) = hub.record_pause(&address, &agent).await {
                let fields = json!({"agentId": address.agent, "error": log::error(&fault)});
                log.error("the pause of a callback could not be recorded", fields);
            }
        });
    }

    async fn record_pause(&self, address: &Address, agent: &Registered) -> Result<(), Fault> {
        let about = serde_json::to_string(&agent.registration)
            .map_err(|error| Fault::internal("a registration could not be written").because(error))?;
        let change = StateChange {
            detail: json!({"reason": REVOKED, "owner": agent.owner}),
            ..StateChange::by_server("agents.pause", address.tenant.as_str(), Some(address.agent.as_str()))
        };
        let mut batch = Batch::new();
        batch.then(tables::agent_put(address, &agent.owner, &agent.owner, about, agent.registered_ms));
        batch.link(change.link(self.now_ms()));
        self.0.kernel.ports().store.commit(batch).await.map_err(store_fault)
    }

    async fn deliver_all(&self, address: &Address) {
        let mut after = 0;
        loop {
            match self.0.runs.next(address) {
                Next::Nothing => return,
                Next::Placed(position, placed) => {
                    if position > after {
                        after = position;
                        self.deliver(address, item(position, *placed)).await;
                    }
                }
                // What was put back into an inbox lies behind what is there already.
                Next::Look => match self.waiting(address, after).await {
                    Ok(items) => {
                        if items.len() >= usize::try_from(limits::INBOX_PAGE).unwrap_or(usize::MAX) {
                            self.0.runs.look_again(address);
                        }
                        for item in items {
                            after = item.position;
                            self.deliver(address, item).await;
                        }
                    }
                    Err(fault) => {
                        self.0.runs.look_again(address);
                        self.pause(address, "messages could not be read", &fault).await;
                    }
                },
            }
        }
    }

    /// A store that cannot be used now is asked again in a moment: nothing is skipped, and nothing is worked on again for it.
    pub(super) async fn pause(&self, address: &Address, what: &str, fault: &Fault) {
        let fields = json!({"agentId": address.agent, "error": log::error(fault)});
        self.0.kernel.log().warn(what, fields);
        self.0.kernel.ports().clock.sleep(Duration::from_millis(PAUSE_MS)).await;
    }

    async fn waiting(&self, address: &Address, after: u64) -> Result<Vec<Item>, Fault> {
        let (_, floor) = self.bounds(address).await?;
        let waiting = tables::inbox_waiting(address, after.max(floor), self.now_ms(), limits::INBOX_PAGE);
        let rows = self.query(waiting).await?;
        rows.iter().map(rows::item).collect::<Result<_, _>>().map_err(store_fault)
    }

    async fn deliver(&self, address: &Address, item: Item) {
        if item.expires_ms <= self.now_ms() {
            return;
        }
        let delivery = match self.way(address) {
            Way::Local => self.work(address, &item).await.after(1),
            Way::Callback(to) => self.call(address, &to, &item).await,
            Way::Inbox => return,
            Way::Orphaned => return self.pause_orphaned(address),
        };
        while let Err(fault) = self.record(address, &item, &delivery).await {
            if item.expires_ms <= self.now_ms() {
                return;
            }
            if !may_retry(&fault) {
                let fields = json!({"agentId": address.agent, "error": log::error(&fault)});
                self.0.kernel.log().error("the end of a message could not be recorded", fields);
                return;
            }
            self.pause(address, "the end of a message could not be recorded yet", &fault).await;
        }
    }

    async fn record(&self, address: &Address, item: &Item, delivery: &Delivery) -> Result<(), Fault> {
        let transmissions = delivery.transmissions;
        match (&delivery.brought, &item.request) {
            (Brought::Answered(answer), Some(request)) if item.kind == Kind::Request => {
                self.respond(address, item, (request, transmissions), answer.clone()).await
            }
            (Brought::Taken | Brought::Answered(_), request) => {
                if let (Some(request), Kind::Request) = (request, item.kind) {
                    let (tenant, requests) = (address.tenant.clone(), vec![request.clone()]);
                    let how = HandOver::Transmitted(transmissions);
                    self.wish(Wish::HandedOver { tenant, requests, how }).await?;
                }
                let what = Ack::Of { source: item.source.clone(), seq: item.seq };
                self.acknowledge(address, Actor::server(), what).await.map(|_| ())
            }
            (Brought::Refused(fault), request) => {
                let (tenant, position) = (address.tenant.clone(), item.position);
                self.wish(Wish::GiveUp { address: address.clone(), position, fault: fault.clone() }).await?;
                if let (Some(request), Kind::Request) = (request, item.kind) {
                    let (request, fault) = (request.clone(), fault.clone());
                    self.wish(Wish::Broke { tenant, request, fault, transmissions }).await?;
                }
                Ok(())
            }
            (Brought::Expired, _) => Ok(()),
        }
    }

    /// Lets an agent inside the process work on it; it takes one message after the other.
    async fn work(&self, address: &Address, item: &Item) -> Brought {
        let worked = self.0.coordinator.send(&address.agent, message(item)).await;
        match worked {
            Ok(value) => Brought::Answered(Ok(value)),
            Err(fault)
                if item.kind == Kind::Request && self.is_worth_another(address, item, &fault).await =>
            {
                Brought::Refused(fault)
            }
            Err(fault) => Brought::Answered(Err(StoredFault::from(&fault))),
        }
    }

    /// Whether the policy wants another attempt after a failure (AACP-RETRY).
    async fn is_worth_another(&self, address: &Address, item: &Item, fault: &Fault) -> bool {
        let Some(request) = &item.request else { return false };
        let policy = &self.0.settings.policy;
        match self.request(&address.tenant, request).await {
            // The attempt that has just failed is not counted yet.
            Ok(Some(entry)) => {
                entry.attempts + 1 < policy.max_attempts() && policy.should_retry(&entry, fault)
            }
            Ok(None) | Err(_) => false,
        }
    }

    async fn respond(
        &self,
        address: &Address,
        item: &Item,
        (request, transmissions): (&RequestId, u32),
        answer: Result<Value, StoredFault>,
    ) -> Result<(), Fault> {
        let (payload, error) = match answer {
            Ok(payload) => (payload, None),
            Err(error) => (Value::Null, Some(error)),
        };
        let causation = item.envelope.get("messageId").and_then(Value::as_str).map(str::to_owned);
        let correlation = item.envelope.get("correlationId").and_then(Value::as_str).map(str::to_owned);
        let envelope = Envelope {
            message: None,
            request: Some(request.clone()),
            source: address.agent.clone(),
            target: Target::Agent(item.source.clone()),
            seq: None,
            // What came before it from the same source was worked on before it.
            ack: Some(item.seq),
            kind: Kind::Response,
            payload,
            error,
            ttl_ms: None,
            expires_ms: None,
            timeout_ms: None,
            transmissions,
            more: More { causation_id: causation, correlation_id: correlation, ..More::default() },
        };
        self.send_unchecked(&address.tenant, Actor::server(), envelope).await.map(|_| ())
    }
}

/// A message as it was placed.
fn item(position: u64, placed: Placed) -> Item {
    let Placed { source, seq, kind, request, expires_ms, text } = placed;
    // The desk wrote the text as JSON.
    let envelope = serde_json::from_str(&text).unwrap_or_default();
    Item { position, source, seq, kind, request, expires_ms, retries: 0, is_unread: true, envelope }
}

/// A message as agents inside the process know it: a payload with a `type` is one of theirs as it is.
fn message(item: &Item) -> Message {
    let payload = item.envelope.get("payload").cloned().unwrap_or_default();
    let typed = |map: &Map<String, Value>| map.get("type").and_then(Value::as_str).map(str::to_owned);
    match payload.as_object().and_then(typed) {
        Some(kind) => {
            let inner = payload.get("payload").cloned().unwrap_or_default();
            Message { kind, payload: inner, source: Some(item.source.clone()) }
        }
        None => Message { kind: item.kind.as_str().to_owned(), payload, source: Some(item.source.clone()) },
    }
}
