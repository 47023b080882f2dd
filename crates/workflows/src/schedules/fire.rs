//! Starts what schedules want started. Starting an execution and moving on is one commit, so that a crash neither loses nor
//! repeats a start.

use orchestr8_contract::Fault;
use orchestr8_kernel::audit::StateChange;
use orchestr8_kernel::log;
use orchestr8_kernel::ports::store::Batch;
use serde_json::json;

use super::plan::{self, Look, Progress};
use super::spec::Overlap;
use super::{Schedule, request, stop, tables};
use crate::engine::event::Event;
use crate::runtime::{Hub, Row, fault, load};

/// How long a schedule with moments that wait is left alone.
const LOOK_AGAIN_MS: i64 = 500;

/// Schedules read at once.
const PAGE: i64 = 100;

/// Starts what is due. Says when to look again.
pub async fn fire(hub: &Hub, look: Look) -> Result<Option<i64>, Fault> {
    let store = &hub.ports().store;
    for row in store.query(tables::due(look.now_ms, PAGE)).await.map_err(fault)? {
        fire_one(hub, Schedule::read(&row)?, look).await?;
    }
    let mut after = (String::new(), String::new());
    loop {
        let rows = store.query(tables::waiting((&after.0, &after.1), PAGE)).await.map_err(fault)?;
        for row in &rows {
            let schedule = Schedule::read(row)?;
            after = (schedule.tenant.clone(), schedule.id.clone());
            fire_one(hub, schedule, look).await?;
        }
        if i64::try_from(rows.len()).is_ok_and(|rows| rows < PAGE) {
            break;
        }
    }
    let is_waiting = !store.query(tables::waiting(("", ""), 1)).await.map_err(fault)?.is_empty();
    let next = store.query(tables::next_due()).await.map_err(fault)?;
    let next_ms = next.first().and_then(|row| row.int(0).ok());
    let again_ms = look.now_ms + LOOK_AGAIN_MS;
    Ok(if is_waiting { Some(again_ms) } else { next_ms.map(|next_ms| next_ms.max(again_ms)) })
}

async fn fire_one(hub: &Hub, schedule: Schedule, look: Look) -> Result<(), Fault> {
    if let Err(fault) = schedule.check_seal(hub) {
        return stop::stop_changed(hub, &schedule, &fault, look.now_ms).await;
    }
    if schedule.is_orphaned(hub) {
        return stop::stop_orphaned(hub, schedule, look.now_ms).await;
    }
    let before = running(hub, &schedule).await?;
    let plan = plan::plan(&schedule.spec, &schedule.progress, look, before.is_some())?;
    if plan.left_out > 0 {
        let fields = json!({"scheduleId": schedule.id, "leftOut": plan.left_out});
        hub.ports().log.warn("a schedule leaves out moments: too many wait", fields);
    }
    if let Some(before) = before.as_ref().filter(|_| plan.cancels) {
        cancel(hub, &schedule, before).await?;
    }
    let mut is_busy = before.is_some();
    let mut schedule = schedule;
    let mut to = plan.progress;
    while let Some(at_ms) = to.pending.first().copied()
        && plan::may_start(schedule.spec.overlap, plan.cancels, is_busy)
    {
        to.pending.remove(0);
        if let Err(fault) = start(hub, &schedule, at_ms, &to).await {
            let fields = json!({"scheduleId": schedule.id, "error": log::error(&fault)});
            hub.ports().log.error("a schedule could not start its workflow", fields);
            return stop::leave_out(hub, &schedule, &to, look.now_ms).await;
        }
        schedule.progress = to.clone();
        is_busy = true;
        if schedule.spec.overlap != Overlap::Allow {
            break;
        }
    }
    if schedule.progress == to {
        return Ok(());
    }
    let mut batch = Batch::new();
    batch.then(tables::advance(&schedule, &to, None));
    hub.ports().store.commit(batch).await.map_err(fault)
}

/// Starts an execution for a moment and moves on, in one commit.
async fn start(hub: &Hub, schedule: &Schedule, at_ms: i64, to: &Progress) -> Result<(), Fault> {
    let mut accepted = hub.accept(request(hub, schedule, at_ms).await?)?;
    let mut batch = std::mem::take(&mut accepted.batch);
    let change = StateChange {
        principal: &schedule.spec.principal,
        detail: json!({"scheduleId": schedule.id}),
        ..StateChange::by_server("schedules.fire", &schedule.tenant, Some(&accepted.id))
    };
    batch.link(change.link(hub.ports().clock.now_ms()));
    batch.then_one(tables::advance(schedule, to, Some((at_ms, &accepted.id))));
    hub.ports().store.commit(batch).await.map_err(fault)?;
    hub.launch(accepted);
    Ok(())
}

/// The execution that the schedule started last, if it has not ended.
async fn running(hub: &Hub, schedule: &Schedule) -> Result<Option<Row>, Fault> {
    let Some(last) = &schedule.last_execution else { return Ok(None) };
    Ok(load::find(hub, &schedule.tenant, last).await?.filter(|row| !row.status.is_final()))
}

async fn cancel(hub: &Hub, schedule: &Schedule, before: &Row) -> Result<(), Fault> {
    let reason = format!("schedule '{}' starts again", schedule.id);
    let mut batch = Batch::new();
    let event = Event::CancelAsked { reason, graceful: true, force: false };
    let posted = hub.post_to(before.num, &event, &mut batch)?;
    hub.ports().store.commit(batch).await.map_err(fault)?;
    hub.deliver_later(before.tenant.clone(), posted);
    Ok(())
}
