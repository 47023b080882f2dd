//! Events that are addressed by a business key instead of an execution id: they go to the executions that wait for the key, or are
//! kept for one that will. What was acknowledged is durable, and is taken once.

pub mod tables;

use std::hash::{DefaultHasher, Hash, Hasher};

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault, canonical};
use orchestr8_kernel::log;
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::store::Batch;
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};

use crate::engine::event::Event;
use crate::engine::waits;
use crate::limits;
use crate::runtime::{Hub, Posted, fault, load};
use tables::{EventAddress, NewEvent};

/// Keys that do not meet share no lock; more locks than cores is enough.
const LOCKS: usize = 64;

/// One event of a key is decided and written at a time.
pub struct EventLocks([Mutex<()>; LOCKS]);

impl Default for EventLocks {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }
}

impl EventLocks {
    async fn lock(&self, address: EventAddress<'_>) -> MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        (address.tenant, address.name, address.key).hash(&mut hasher);
        let place = usize::try_from(hasher.finish() % 64).unwrap_or(0);
        self.0[place % LOCKS].lock().await
    }
}

/// What a client sends.
pub struct KeyedEvent {
    pub name: String,
    pub key: String,
    pub payload: Value,
    pub id: Option<String>,
    /// To every execution that waits, and not to the oldest only.
    pub to_all: bool,
    /// How long it is kept, and remembered.
    pub keep_ms: i64,
}

/// Takes an event in. What is answered is durable.
pub async fn send(hub: &Hub, tenant: &Tenant, event: &KeyedEvent) -> Result<Value, Fault> {
    let address = EventAddress { tenant: tenant.as_str(), name: &event.name, key: &event.key };
    let _turn = hub.event_locks().lock(address).await;
    let now_ms = hub.ports().clock.now_ms();
    let hash = canonical::sha256_hex(&json!([event.name, event.key, event.payload, event.to_all]));
    if let Some(answer) = answered(hub, address, event, &hash, now_ms).await? {
        return Ok(answer);
    }
    let mut batch = Batch::new();
    let found = waiting(hub, address, event.to_all, &mut batch).await?;
    let mut posted = Vec::new();
    for row in &found {
        let signal = signal(address, event.payload.clone(), event.id.clone());
        posted.push((row.tenant.clone(), hub.post_to(row.num, &signal, &mut batch)?));
        batch.then_one(tables::wait_delete(address, row.num));
    }
    let is_kept = found.is_empty();
    if is_kept {
        check_room(hub, address, now_ms).await?;
    }
    let executions: Vec<&str> = found.iter().map(|row| &*row.id).collect();
    let until_ms = now_ms.saturating_add(event.keep_ms);
    if is_kept || event.id.is_some() {
        if let Some(id) = &event.id {
            batch.then(tables::expire(address.tenant, id, now_ms));
        }
        batch.then_one(tables::insert(NewEvent {
            address,
            id: event.id.as_deref(),
            payload: if is_kept { event.payload.to_string() } else { Value::Null.to_string() },
            hash,
            waiting: is_kept,
            executions: json!(executions).to_string(),
            until_ms,
        }));
    }
    hub.ports().store.commit(batch).await.map_err(fault)?;
    for (tenant, posted) in posted {
        hub.deliver_later(tenant, posted);
    }
    Ok(shown(event, &json!(executions), is_kept.then_some(until_ms), false))
}

fn shown(event: &KeyedEvent, executions: &Value, kept_until_ms: Option<i64>, duplicate: bool) -> Value {
    json!({"accepted": true, "name": event.name, "key": event.key, "executions": executions,
           "kept": kept_until_ms.is_some(), "keptUntil": kept_until_ms.map(iso), "duplicate": duplicate})
}

fn signal(address: EventAddress<'_>, payload: Value, id: Option<String>) -> Event {
    Event::Signal { name: waits::address(address.name, Some(address.key)), payload, id }
}

/// The answer to an event whose id came before.
async fn answered(
    hub: &Hub,
    address: EventAddress<'_>,
    event: &KeyedEvent,
    hash: &str,
    now_ms: i64,
) -> Result<Option<Value>, Fault> {
    let Some(id) = &event.id else { return Ok(None) };
    let rows = hub.ports().store.query(tables::find(address.tenant, id, now_ms)).await.map_err(fault)?;
    let Some(row) = rows.first() else { return Ok(None) };
    if row.text(0).map_err(fault)? != hash {
        let what = format!("/id: an event with the id '{id}' and other content was sent before");
        return Err(Fault::new(Code::StateConflict, what).with("path", "/id"));
    }
    let executions: Value = serde_json::from_str(row.text(1).map_err(fault)?).unwrap_or_default();
    let until_ms = row.int(3).map_err(fault)?;
    let is_kept = row.int(2).map_err(fault)? != 0;
    Ok(Some(shown(event, &executions, is_kept.then_some(until_ms), true)))
}

/// The executions that wait for it now. Rows of those that do not wait any more are deleted with the batch.
async fn waiting(
    hub: &Hub,
    address: EventAddress<'_>,
    all: bool,
    batch: &mut Batch,
) -> Result<Vec<load::Row>, Fault> {
    let rows = tables::waits(address, limits::EVENT_RECEIVERS + 1);
    let rows = hub.ports().store.query(rows).await.map_err(fault)?;
    let most = usize::try_from(limits::EVENT_RECEIVERS).unwrap_or(usize::MAX);
    let name = waits::address(address.name, Some(address.key));
    let mut found = Vec::new();
    for row in &rows {
        let num = row.int(0).map_err(fault)?;
        let loaded = match load::by_number(hub, num).await {
            // It was deleted with its journal.
            Err(gone) if gone.code == Code::NotFound => {
                batch.then(tables::wait_delete(address, num));
                continue;
            }
            loaded => loaded?,
        };
        let is_waiting = !loaded.row.status.is_final()
            && loaded.row.tenant.as_str() == address.tenant
            && loaded.state.work.values().any(|work| work.waits_for(&name));
        if !is_waiting {
            batch.then(tables::wait_delete(address, num));
            continue;
        }
        if all && found.len() >= most {
            let what =
                format!("more than {most} executions wait for this key; an event goes to {most} at most");
            return Err(Fault::new(Code::ResourceExhausted, what).with("reason", "event_receivers"));
        }
        found.push(loaded.row);
        if !all {
            break;
        }
    }
    Ok(found)
}

/// Nothing that was acknowledged is evicted: when it is full, the next one is refused.
async fn check_room(hub: &Hub, address: EventAddress<'_>, now_ms: i64) -> Result<(), Fault> {
    let rows = hub.ports().store.query(tables::count_waiting(address.tenant, now_ms)).await.map_err(fault)?;
    let count = rows.first().map_or(Ok(0), |row| row.int(0)).map_err(fault)?;
    if count < limits::KEYED_EVENTS_KEPT {
        return Ok(());
    }
    let most = limits::KEYED_EVENTS_KEPT;
    let what =
        format!("no execution waits for this key, and {most} events are kept already; send it again later");
    Err(Fault::new(Code::ResourceExhausted, what).with("reason", "events_kept").with("limit", most))
}

/// Gives a kept event to an execution that waits for it. For use after a wait is durable.
pub async fn match_kept(hub: &Hub, address: EventAddress<'_>) -> Result<(), Fault> {
    let _turn = hub.event_locks().lock(address).await;
    let now_ms = hub.ports().clock.now_ms();
    let store = &hub.ports().store;
    loop {
        let rows = store.query(tables::next_waiting(address, now_ms)).await.map_err(fault)?;
        let Some(row) = rows.first() else { return Ok(()) };
        let (num, payload) = (row.int(0).map_err(fault)?, row.text(1).map_err(fault)?);
        let id = row.optional_text(2).map_err(fault)?.map(str::to_owned);
        let payload = serde_json::from_str(payload)
            .map_err(|error| Fault::internal("a kept event cannot be read").because(error))?;
        let mut batch = Batch::new();
        let found = waiting(hub, address, false, &mut batch).await?;
        let Some(receiver) = found.first() else { return Ok(()) };
        let posted: Posted = hub.post_to(receiver.num, &signal(address, payload, id), &mut batch)?;
        batch.then_one(tables::wait_delete(address, receiver.num));
        batch.then_one(tables::taken(num, json!([&*receiver.id]).to_string()));
        store.commit(batch).await.map_err(fault)?;
        hub.deliver_later(receiver.tenant.clone(), posted);
    }
}

/// Events looked at together after a start.
const PAGE: i64 = 1000;

/// After a start: the process may have died between a wait and the event that was kept for it.
pub async fn recover(hub: &Hub) -> Result<(), Fault> {
    let now_ms = hub.ports().clock.now_ms();
    let rows = hub.ports().store.query(tables::unmatched(now_ms, PAGE)).await.map_err(fault)?;
    for row in &rows {
        let (tenant, name, key) =
            (row.text(0).map_err(fault)?, row.text(1).map_err(fault)?, row.text(2).map_err(fault)?);
        if let Err(cause) = match_kept(hub, EventAddress { tenant, name, key }).await {
            hub.ports().log.error("a kept event waits", json!({"error": log::error(&cause)}));
        }
    }
    Ok(())
}
