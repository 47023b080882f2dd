//! Schedules that may not start: paused with a reason, or past a time that failed.

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::audit::StateChange;
use orchestr8_kernel::log;
use orchestr8_kernel::ports::store::Batch;
use serde_json::json;

use super::plan::Progress;
use super::{Schedule, switch, tables};
use crate::runtime::{Hub, fault};

/// Pauses a schedule whose author's credentials were revoked: no principal answers for what it starts.
pub(super) async fn stop_orphaned(hub: &Hub, schedule: Schedule, now_ms: i64) -> Result<(), Fault> {
    let fields = json!({"scheduleId": schedule.id, "author": schedule.spec.principal});
    hub.ports().log.warn("a schedule was paused: the credentials of its author were revoked", fields);
    let mut batch = Batch::new();
    let change = StateChange {
        detail: json!({"reason": "principal_revoked", "author": schedule.spec.principal}),
        ..StateChange::by_server("schedules.pause", &schedule.tenant, Some(&schedule.id))
    };
    batch.link(change.link(now_ms));
    batch.then(switch(hub, &schedule.switched(true, now_ms)?)?);
    hub.ports().store.commit(batch).await.map_err(fault)
}

/// Stops a schedule that was changed in the data file: it starts nothing until it is stored again.
pub(super) async fn stop_changed(
    hub: &Hub,
    schedule: &Schedule,
    cause: &Fault,
    now_ms: i64,
) -> Result<(), Fault> {
    let fields = json!({"scheduleId": schedule.id, "error": log::error(cause)});
    hub.ports().log.error("a schedule of the data file is refused", fields);
    let change = StateChange {
        code: Some(cause.code),
        detail: json!({"reason": "row_seal", "author": schedule.spec.principal}),
        ..StateChange::by_server("schedules.pause", &schedule.tenant, Some(&schedule.id))
    };
    let mut batch = Batch::new();
    batch.link(change.link(now_ms));
    batch.then(tables::stop(&schedule.tenant, &schedule.id));
    hub.ports().store.commit(batch).await.map_err(fault)
}

/// Leaves out a moment whose execution could not be started.
pub(super) async fn leave_out(
    hub: &Hub,
    schedule: &Schedule,
    to: &Progress,
    now_ms: i64,
) -> Result<(), Fault> {
    let mut batch = Batch::new();
    batch.then(tables::advance(schedule, to, None));
    let change = StateChange {
        code: Some(Code::Unavailable),
        ..StateChange::by_server("schedules.skip", &schedule.tenant, Some(&schedule.id))
    };
    batch.link(change.link(now_ms));
    hub.ports().store.commit(batch).await.map_err(fault)
}
