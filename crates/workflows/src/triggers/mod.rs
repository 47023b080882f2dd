//! Triggers: stored workflows that start when something comes in. A delivery and what follows from it are one commit, so that a
//! crash neither loses nor repeats a start.
//!
//! ```text
//! POST /v1/hooks/{name} -> deliver: signature, key, inputs -> start, or wait (debounce, batch) -> pending: start what is due
//! journals, documents, inboxes -> events: filter, inputs -> start, and go on from there
//! ```

pub mod deliver;
pub mod event_feeds;
pub mod events;
mod locks;
mod mapping;
pub mod pending;
pub mod spec;
pub mod stop;
pub mod tables;

use orchestr8_contract::id::{CorrelationId, Tenant};
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::Principal;
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::ports::store::{self, Batch, Statement};
use orchestr8_kernel::principals::Standing;
use serde_json::{Map, Value, json};

use crate::actions;
use crate::authors::Authors;
use crate::runtime::{Hub, Request, fault};
use crate::stored;
use crate::tags::TagSources;

pub use locks::TriggerLocks;
pub use spec::TriggerSpec;

const TABLE: &str = "wf_triggers";

/// A trigger as it is stored.
#[derive(Clone)]
pub struct Trigger {
    pub tenant: String,
    pub id: String,
    pub spec: TriggerSpec,
    /// The same as it is written down.
    source: String,
    /// Why it starts nothing, if that is so.
    pub paused: Option<String>,
    seal: Option<String>,
    /// When what waits is to start an execution, and since when it waits.
    due_ms: Option<i64>,
    since_ms: Option<i64>,
    pub pending: i64,
    /// About how many keys of deliveries are remembered.
    remembered: i64,
    deliveries: i64,
    duplicates: i64,
    started: i64,
    last_ms: Option<i64>,
    last_execution: Option<String>,
    last_error: Option<String>,
    /// How far an event trigger has read the journals.
    pub cursor: i64,
}

impl Trigger {
    pub fn new(tenant: &str, id: String, spec: TriggerSpec, paused: Option<String>) -> Result<Self, Fault> {
        let source = serde_json::to_string(&spec)
            .map_err(|error| Fault::internal("a trigger cannot be stored").because(error))?;
        Ok(Self {
            tenant: tenant.to_owned(),
            id,
            spec,
            source,
            paused,
            seal: None,
            due_ms: None,
            since_ms: None,
            pending: 0,
            remembered: 0,
            deliveries: 0,
            duplicates: 0,
            started: 0,
            last_ms: None,
            last_execution: None,
            last_error: None,
            cursor: 0,
        })
    }

    /// With the counters of the one that was there, and what waits for it.
    pub fn in_place_of(self, before: Trigger) -> Self {
        Self {
            spec: self.spec,
            source: self.source,
            paused: self.paused,
            cursor: self.cursor,
            seal: None,
            last_error: None,
            ..before
        }
    }

    fn read(row: &store::Row) -> Result<Self, Fault> {
        let text = |column| row.optional_text(column).map(|text| text.map(str::to_owned)).map_err(fault);
        let int = |column| row.int(column).map_err(fault);
        let source = row.text(2).map_err(fault)?.to_owned();
        let spec = serde_json::from_str(&source)
            .map_err(|error| Fault::new(Code::StoreCorrupt, "a trigger cannot be read").because(error))?;
        Ok(Self {
            tenant: row.text(0).map_err(fault)?.to_owned(),
            id: row.text(1).map_err(fault)?.to_owned(),
            spec,
            source,
            paused: text(3)?,
            seal: text(4)?,
            due_ms: row.int(5).ok(),
            since_ms: row.int(6).ok(),
            pending: int(7)?,
            remembered: int(8)?,
            deliveries: int(9)?,
            duplicates: int(10)?,
            started: int(11)?,
            last_ms: row.int(12).ok(),
            last_execution: text(13)?,
            last_error: text(14)?,
            cursor: row.int(15).unwrap_or(0),
        })
    }

    fn tenant(&self) -> Result<Tenant, Fault> {
        Tenant::parse(&self.tenant)
            .map_err(|_| Fault::new(Code::StoreCorrupt, "the tenant of a trigger cannot be read"))
    }

    /// As it is written down.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether its author may decide approvals, then and now: by its roles and by the scope of its token.
    pub fn may_decide(&self, hub: &Hub) -> bool {
        let author = &self.spec.author;
        let Ok(tenant) = self.tenant() else { return false };
        let recorded =
            Principal::new(author.name.clone(), tenant.clone(), author.roles).narrowed(&author.scope);
        actions::may_decide(&hub.standing(&tenant, &author.name).reduce_principal(recorded))
    }

    /// Whether its author has lost the credentials.
    pub fn is_orphaned(&self, hub: &Hub) -> bool {
        self.tenant().is_ok_and(|tenant| hub.standing(&tenant, &self.spec.author.name) == Standing::Revoked)
    }

    fn sealed(&self, hub: &Hub) -> Result<Option<String>, Fault> {
        hub.row_seal().seal(TABLE, &self.sealed_cells())
    }

    /// Fails if the row is not the one that this server wrote. Counters are not sealed, since each delivery changes them.
    fn check_seal(&self, hub: &Hub) -> Result<(), Fault> {
        hub.row_seal().check(TABLE, &self.sealed_cells(), self.seal.as_deref())
    }

    fn sealed_cells(&self) -> [Option<&str>; 4] {
        [Some(&self.tenant), Some(&self.id), Some(&self.source), self.paused.as_deref()]
    }

    /// The path that deliveries are sent to. It names the tenant, since a delivery has no other credential than its signature.
    fn hook(&self) -> String {
        match self.tenant == Tenant::local().as_str() {
            true => format!("/v1/hooks/{}", self.id),
            false => format!("/v1/hooks/{}.{}", self.id, self.tenant),
        }
    }

    pub fn shown(&self) -> Value {
        let spec = &self.spec;
        json!({"id": self.id, "workflowId": spec.workflow_id, "revision": spec.revision, "inputs": spec.inputs,
               "webhook": spec.webhook, "event": spec.event, "notify": spec.notify, "url": spec.webhook.as_ref().map(|_| self.hook()), "paused": self.paused.is_some(), "pauseReason": self.paused,
               "author": spec.author.name, "pending": self.pending, "dueAt": self.due_ms.map(iso),
               "deliveries": self.deliveries, "duplicates": self.duplicates, "started": self.started,
               "lastDeliveryAt": self.last_ms.map(iso), "lastExecutionId": self.last_execution,
               "lastError": self.last_error})
    }

    /// What it wants executed, on behalf of its author.
    async fn request(&self, hub: &Hub, inputs: Map<String, Value>) -> Result<Request, Fault> {
        let spec = &self.spec;
        let definition = stored::pinned(hub, &self.tenant, &spec.workflow_id, spec.revision).await?;
        let (workflow, authors) = definition.into_parts();
        Ok(Request {
            workflow,
            authors: Authors { triggered_by: Some(spec.author.author()), ..authors },
            variables: inputs,
            tags: TagSources::default(),
            correlation: CorrelationId::from_uuid(hub.ports().ids.fresh(For::Correlation)),
            trace: None,
            principal: spec.author.principal(self.tenant()?),
            timeout_ms: None,
            priority: None,
            parent: None,
            forked_from: None,
            kept: Vec::new(),
            generations: Vec::new(),
            schedule: None,
        })
    }
}

/// The trigger of this id, if there is one.
pub async fn look_up(hub: &Hub, tenant: &str, id: &str) -> Result<Option<Trigger>, Fault> {
    let rows = hub.ports().store.query(tables::find(tenant, id)).await.map_err(fault)?;
    rows.first().map(Trigger::read).transpose()
}

pub async fn find(hub: &Hub, tenant: &str, id: &str) -> Result<Trigger, Fault> {
    let unknown =
        || Fault::new(Code::NotFound, format!("there is no trigger named '{id}'")).with("triggerId", id);
    look_up(hub, tenant, id).await?.ok_or_else(unknown)
}

/// The same, if it is what this server wrote.
pub async fn find_intact(hub: &Hub, tenant: &str, id: &str) -> Result<Trigger, Fault> {
    let trigger = find(hub, tenant, id).await?;
    trigger.check_seal(hub)?;
    Ok(trigger)
}

pub async fn list(hub: &Hub, tenant: &str, after: &str, limit: i64) -> Result<Vec<Trigger>, Fault> {
    let rows = hub.ports().store.query(tables::page(tenant, after, limit)).await.map_err(fault)?;
    rows.iter().map(Trigger::read).collect()
}

/// How many triggers a tenant has besides the one of this id.
pub async fn count_others(hub: &Hub, tenant: &str, id: &str) -> Result<i64, Fault> {
    let rows = hub.ports().store.query(tables::count_others(tenant, id)).await.map_err(fault)?;
    rows.first().map_or(Ok(0), |row| row.int(0)).map_err(fault)
}

/// Stores it in the place of what was there; deliveries that wait stay.
pub fn put(hub: &Hub, trigger: &Trigger) -> Result<Statement, Fault> {
    Ok(tables::put(trigger, trigger.sealed(hub)?))
}

/// Pauses it or lets it go on, as long as it is what was read.
pub fn switch(hub: &Hub, trigger: &Trigger) -> Result<Statement, Fault> {
    Ok(tables::switch(trigger, trigger.sealed(hub)?))
}

pub fn delete(trigger: &Trigger, batch: &mut Batch) {
    let [own, pending, keys] = tables::delete(&trigger.tenant, &trigger.id);
    batch.then_one(own).then(pending).then(keys);
    batch.then(crate::notifications::tables::delete_all(&trigger.tenant, &trigger.id));
}
