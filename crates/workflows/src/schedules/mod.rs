//! Workflows that start by themselves: cron with a time zone. Starting one and moving to the next time is one commit, so a
//! crash neither loses nor repeats a start.

mod spec;
mod stop;
mod tables;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use orchestr8_contract::id::{CorrelationId, Tenant};
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::audit::StateChange;
use orchestr8_kernel::log;
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::ports::store::{self, Batch, Statement};
use orchestr8_kernel::principals::Standing;
use serde_json::{Value, json};

use crate::authors::{Author, Authors};
use crate::engine::event::Event;
use crate::runtime::{Hub, Request, fault, load};
use crate::stored;

pub use spec::{Backfill, Overlap, Spec};

/// Missed times that are made up for at most; a schedule that slept for a year must not start a million executions.
const BACKFILL: usize = 1000;

/// How long a schedule that is due and may not start waits until it is looked at again.
const LOOK_AGAIN_MS: i64 = 500;

const TABLE: &str = "wf_schedules";

/// Schedules looked at together.
const PAGE: i64 = 100;

/// A schedule as it is stored.
pub struct Schedule {
    pub tenant: String,
    pub id: String,
    pub spec: Spec,
    /// The same as it is written down.
    source: String,
    pub paused: bool,
    pub next_ms: Option<i64>,
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
            next_ms,
            last_ms: None,
            last_execution: None,
            seal: None,
        })
    }

    /// Paused, or going on from now.
    pub fn switched(self, paused: bool, now_ms: i64) -> Result<Self, Fault> {
        Ok(Self { paused, next_ms: self.spec.next_after(now_ms)?, ..self })
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
        Ok(Self {
            id: row.text(0).map_err(fault)?.to_owned(),
            spec,
            source,
            paused: row.int(2).map_err(fault)? != 0,
            next_ms: row.int(3).ok(),
            last_ms: row.int(4).ok(),
            last_execution: row.optional_text(5).map_err(fault)?.map(str::to_owned),
            tenant: row.text(6).map_err(fault)?.to_owned(),
            seal: row.optional_text(7).map_err(fault)?.map(str::to_owned),
        })
    }

    pub fn shown(&self) -> Value {
        let spec = &self.spec;
        json!({"id": self.id, "workflowId": spec.workflow_id, "cron": spec.cron, "timeZone": spec.time_zone,
               "inputs": spec.inputs, "overlap": spec.overlap, "backfill": spec.backfill, "paused": self.paused,
               "nextAt": self.next_ms.filter(|_| !self.paused).map(iso), "lastAt": self.last_ms.map(iso),
               "lastExecutionId": self.last_execution, "author": spec.principal, "revision": spec.revision})
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

/// Starts what is due. Says when the next one is.
pub async fn fire(hub: &Hub, now_ms: i64) -> Result<Option<i64>, Fault> {
    let store = &hub.ports().store;
    for row in store.query(tables::due(now_ms, PAGE)).await.map_err(fault)? {
        let schedule = Schedule::read(&row)?;
        if let Err(fault) = schedule.check_seal(hub) {
            stop::stop_changed(hub, &schedule, &fault, now_ms).await?;
            continue;
        }
        if schedule.is_orphaned(hub) {
            stop::stop_orphaned(hub, schedule, now_ms).await?;
            continue;
        }
        if let Err(fault) = start_due(hub, &schedule, now_ms).await {
            let fields = json!({"scheduleId": schedule.id, "error": log::error(&fault)});
            hub.ports().log.error("a schedule could not start its workflow", fields);
            stop::skip(hub, &schedule, now_ms).await?;
        }
    }
    let next = store.query(tables::next_due()).await.map_err(fault)?;
    // One that waits for the execution before it stays due, and is looked at again after a while.
    Ok(next.first().and_then(|row| row.int(0).ok()).map(|next_ms| next_ms.max(now_ms + LOOK_AGAIN_MS)))
}

/// How many times are due now, the first included, and when the next one is.
pub fn missed(spec: &Spec, due_ms: i64, now_ms: i64) -> Result<(usize, Option<i64>), Fault> {
    let (mut count, mut at_ms) = (1, due_ms);
    loop {
        match spec.next_after(at_ms)? {
            Some(next_ms) if next_ms <= now_ms && count < BACKFILL => {
                count += 1;
                at_ms = next_ms;
            }
            Some(next_ms) if next_ms <= now_ms => return Ok((count, spec.next_after(now_ms)?)),
            next => return Ok((count, next)),
        }
    }
}

/// A start this much after its time was missed while the server was down.
const LATE_MS: i64 = 60_000;

async fn start_due(hub: &Hub, schedule: &Schedule, now_ms: i64) -> Result<(), Fault> {
    let Some(due_ms) = schedule.next_ms else { return Ok(()) };
    let (due, next_ms) = missed(&schedule.spec, due_ms, now_ms)?;
    let late = now_ms - due_ms > LATE_MS;
    let mut times = match (schedule.spec.backfill, late) {
        (Backfill::None, true) => 0,
        (Backfill::All, _) => due,
        (Backfill::None | Backfill::One, _) => 1,
    };
    match may_start(hub, schedule).await? {
        Turn::Now => {}
        Turn::Never => times = 0,
        Turn::Later => return Ok(()),
    }
    let mut batch = Batch::new();
    let mut started = Vec::new();
    for _ in 0..times {
        let mut accepted = hub.accept(request(hub, schedule).await?)?;
        batch.merge(std::mem::take(&mut accepted.batch));
        let change = StateChange {
            principal: &schedule.spec.principal,
            detail: json!({"scheduleId": schedule.id}),
            ..StateChange::by_server("schedules.fire", &schedule.tenant, Some(&accepted.id))
        };
        batch.link(change.link(now_ms));
        started.push(accepted);
    }
    let last = started.last().map(|accepted| accepted.id.clone());
    let advance = tables::advance(&schedule.tenant, &schedule.id, due_ms, next_ms, due_ms, last.as_deref());
    batch.then_one(advance);
    hub.ports().store.commit(batch).await.map_err(fault)?;
    started.into_iter().for_each(|accepted| hub.launch(accepted));
    Ok(())
}

enum Turn {
    Now,
    Later,
    Never,
}

/// Whether the execution before lets a new one start, as the overlap policy says.
async fn may_start(hub: &Hub, schedule: &Schedule) -> Result<Turn, Fault> {
    let Some(last) = &schedule.last_execution else { return Ok(Turn::Now) };
    let Some(row) = load::find(hub, &schedule.tenant, last).await? else { return Ok(Turn::Now) };
    if row.status.is_final() {
        return Ok(Turn::Now);
    }
    match schedule.spec.overlap {
        Overlap::Allow => Ok(Turn::Now),
        Overlap::Skip => Ok(Turn::Never),
        Overlap::Queue => Ok(Turn::Later),
        Overlap::Cancel => {
            let reason = format!("schedule '{}' starts anew", schedule.id);
            let mut batch = Batch::new();
            let event = Event::CancelAsked { reason, graceful: true, force: false };
            let posted = hub.post_to(row.num, &event, &mut batch)?;
            hub.ports().store.commit(batch).await.map_err(fault)?;
            hub.deliver_later(row.tenant, posted);
            Ok(Turn::Now)
        }
    }
}

/// What a schedule wants executed, on behalf of its author.
pub async fn request(hub: &Hub, schedule: &Schedule) -> Result<Request, Fault> {
    let spec = &schedule.spec;
    let tenant = Tenant::parse(&schedule.tenant)
        .map_err(|_| Fault::new(Code::StoreCorrupt, "the tenant of a schedule cannot be read"))?;
    let definition = match spec.revision {
        Some(revision) => stored::pinned(hub, &schedule.tenant, &spec.workflow_id, revision).await?,
        None => stored::find(hub, &schedule.tenant, &spec.workflow_id, None).await?,
    };
    let author = Author { name: spec.principal.as_str().into(), roles: spec.roles };
    let (workflow, authors) = definition.into_parts();
    Ok(Request {
        workflow,
        authors: Authors { scheduled_by: Some(author), ..authors },
        variables: spec.inputs.clone(),
        correlation: CorrelationId::from_uuid(hub.ports().ids.fresh(For::Correlation)),
        trace: None,
        principal: Arc::new(spec.author(tenant)),
        timeout_ms: None,
        priority: None,
        parent: None,
        forked_from: None,
        kept: Vec::new(),
    })
}
