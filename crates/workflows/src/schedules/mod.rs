//! Workflows that start by themselves: cron with a time zone. Starting one and moving to the next time is one commit, so a
//! crash neither loses nor repeats a start.

mod fire;
mod plan;
mod spec;
mod stop;
mod tables;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use orchestr8_contract::id::{CorrelationId, Tenant};
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::ports::store::{self, Statement};
use orchestr8_kernel::principals::Standing;
use serde_json::{Value, json};

use crate::authors::{Author, Authors};
use crate::engine::identity::ScheduledMoment;
use crate::runtime::{Hub, Request, fault};
use crate::stored;
use crate::tags::TagSources;

pub use fire::fire;
pub use plan::Look;
use plan::Progress;
pub use spec::Spec;
pub use tables::MIGRATION;

const TABLE: &str = "wf_schedules";

/// A schedule as it is stored.
pub struct Schedule {
    pub tenant: String,
    pub id: String,
    pub spec: Spec,
    /// The same as it is written down.
    source: String,
    pub paused: bool,
    pub progress: Progress,
    pub last_ms: Option<i64>,
    pub last_execution: Option<String>,
    seal: Option<String>,
}

impl Schedule {
    /// A new one, or one in the place of another.
    pub fn new(tenant: &str, id: String, spec: Spec, paused: bool, now_ms: i64) -> Result<Self, Fault> {
        let source = serde_json::to_string(&spec)
            .map_err(|error| Fault::internal("a schedule cannot be stored").because(error))?;
        let next_ms = spec.next_after(now_ms)?;
        let tenant = tenant.to_owned();
        Ok(Self {
            tenant,
            id,
            spec,
            source,
            paused,
            progress: Progress { next_ms, pending: Vec::new() },
            last_ms: None,
            last_execution: None,
            seal: None,
        })
    }

    /// Paused, or going on from now.
    pub fn switched(self, paused: bool, now_ms: i64) -> Result<Self, Fault> {
        let progress = Progress { next_ms: self.spec.next_after(now_ms)?, ..self.progress };
        Ok(Self { paused, progress, ..self })
    }

    /// Whether its author has lost the credentials.
    pub fn is_orphaned(&self, hub: &Hub) -> bool {
        Tenant::parse(&self.tenant)
            .is_ok_and(|tenant| hub.standing(&tenant, &self.spec.principal) == Standing::Revoked)
    }

    fn sealed(&self, hub: &Hub) -> Result<Option<String>, Fault> {
        hub.row_seal().seal(TABLE, &self.sealed_cells().map(Some))
    }

    /// Fails if the row is not the one that this server wrote. When it starts next is not sealed, since each start changes it.
    fn check_seal(&self, hub: &Hub) -> Result<(), Fault> {
        hub.row_seal().check(TABLE, &self.sealed_cells().map(Some), self.seal.as_deref())
    }

    fn sealed_cells(&self) -> [&str; 4] {
        [&self.tenant, &self.id, &self.source, if self.paused { "paused" } else { "active" }]
    }

    fn read(row: &store::Row) -> Result<Self, Fault> {
        let source = row.text(1).map_err(fault)?.to_owned();
        let spec = serde_json::from_str(&source)
            .map_err(|error| Fault::new(Code::StoreCorrupt, "a schedule cannot be read").because(error))?;
        let pending = tables::read_pending(row.optional_text(8).map_err(fault)?)
            .ok_or_else(|| Fault::new(Code::StoreCorrupt, "the moments of a schedule cannot be read"))?;
        Ok(Self {
            id: row.text(0).map_err(fault)?.to_owned(),
            spec,
            source,
            paused: row.int(2).map_err(fault)? != 0,
            progress: Progress { next_ms: row.int(3).ok(), pending },
            last_ms: row.int(4).ok(),
            last_execution: row.optional_text(5).map_err(fault)?.map(str::to_owned),
            tenant: row.text(6).map_err(fault)?.to_owned(),
            seal: row.optional_text(7).map_err(fault)?.map(str::to_owned),
        })
    }

    pub fn shown(&self) -> Value {
        let spec = &self.spec;
        let mut shown = json!({"id": self.id, "workflowId": spec.workflow_id, "cron": spec.cron, "timeZone": spec.time_zone,
               "inputs": spec.inputs, "overlap": spec.overlap, "backfill": spec.backfill, "paused": self.paused,
               "nextAt": self.progress.next_ms.filter(|_| !self.paused).map(iso),
               "waiting": self.progress.pending.len(), "lastAt": self.last_ms.map(iso),
               "lastExecutionId": self.last_execution, "author": spec.principal, "revision": spec.revision});
        if !spec.tags.is_empty() {
            shown["tags"] = json!(spec.tags);
        }
        shown
    }
}

pub async fn find(hub: &Hub, tenant: &str, id: &str) -> Result<Schedule, Fault> {
    let rows = hub.ports().store.query(tables::find(tenant, id)).await.map_err(fault)?;
    rows.first().map(Schedule::read).transpose()?.ok_or_else(|| {
        Fault::new(Code::NotFound, format!("there is no schedule named '{id}'")).with("scheduleId", id)
    })
}

pub async fn list(hub: &Hub, tenant: &str, after: &str, limit: i64) -> Result<Vec<Schedule>, Fault> {
    let rows = hub.ports().store.query(tables::page(tenant, after, limit)).await.map_err(fault)?;
    rows.iter().map(Schedule::read).collect()
}

/// The same, if it is what this server wrote.
pub async fn find_intact(hub: &Hub, tenant: &str, id: &str) -> Result<Schedule, Fault> {
    let schedule = find(hub, tenant, id).await?;
    schedule.check_seal(hub)?;
    Ok(schedule)
}

/// Stores it, whatever was there.
pub fn put(hub: &Hub, schedule: &Schedule) -> Result<Statement, Fault> {
    Ok(tables::put(schedule, schedule.sealed(hub)?))
}

/// Pauses it or lets it go on, as long as it is what was read.
pub fn switch(hub: &Hub, schedule: &Schedule) -> Result<Statement, Fault> {
    Ok(tables::switch(schedule, schedule.sealed(hub)?))
}

pub fn delete(tenant: &str, id: &str) -> Statement {
    tables::delete(tenant, id)
}

/// What a schedule wants executed for a moment, on behalf of its author.
pub async fn request(hub: &Hub, schedule: &Schedule, at_ms: i64) -> Result<Request, Fault> {
    let spec = &schedule.spec;
    let tenant = Tenant::parse(&schedule.tenant)
        .map_err(|_| Fault::new(Code::StoreCorrupt, "the tenant of a schedule cannot be read"))?;
    let definition = match spec.revision {
        Some(revision) => stored::pinned(hub, &schedule.tenant, &spec.workflow_id, revision).await?,
        None => stored::find(hub, &schedule.tenant, &spec.workflow_id, None).await?,
    };
    let (workflow, authors) = definition.into_parts();
    let author = spec.author(tenant);
    Ok(Request {
        workflow,
        authors: Authors { scheduled_by: Some(Author::of(&author)), ..authors },
        variables: spec.inputs.clone(),
        tags: TagSources { given: spec.tags.clone(), ..TagSources::default() },
        correlation: CorrelationId::from_uuid(hub.ports().ids.fresh(For::Correlation)),
        trace: None,
        principal: Arc::new(author),
        timeout_ms: None,
        priority: None,
        parent: None,
        forked_from: None,
        kept: Vec::new(),
        generations: Vec::new(),
        schedule: Some(ScheduledMoment { id: schedule.id.as_str().into(), at_ms }),
    })
}
