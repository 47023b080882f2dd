//! Triggers that may not start anything: paused with a reason. What waits for them stays.

use orchestr8_contract::Fault;
use orchestr8_kernel::audit::StateChange;
use orchestr8_kernel::log;
use orchestr8_kernel::ports::store::Batch;
use serde_json::json;

use super::{Trigger, switch, tables};
use crate::runtime::{Hub, fault};

const REVOKED: &str = "principal_revoked";
const CHANGED: &str = "row_seal";

/// Pauses a trigger that may not start anything. True: it was paused.
pub async fn stop_unfit(hub: &Hub, trigger: &Trigger) -> Result<bool, Fault> {
    if let Err(cause) = trigger.check_seal(hub) {
        stop_changed(hub, trigger, &cause).await?;
        return Ok(true);
    }
    if trigger.is_orphaned(hub) {
        stop_orphaned(hub, trigger).await?;
        return Ok(true);
    }
    Ok(false)
}

/// Pauses a trigger whose author's credentials were revoked: no principal answers for what it starts.
async fn stop_orphaned(hub: &Hub, trigger: &Trigger) -> Result<(), Fault> {
    let author = &trigger.spec.author.name;
    let fields = json!({"triggerId": trigger.id, "author": author});
    hub.ports().log.warn("a trigger was paused: the credentials of its author were revoked", fields);
    let change = StateChange {
        detail: json!({"reason": REVOKED, "author": author}),
        ..StateChange::by_server("triggers.pause", &trigger.tenant, Some(&trigger.id))
    };
    let paused = Trigger { paused: Some(REVOKED.to_owned()), ..trigger.clone() };
    let mut batch = Batch::new();
    batch.link(change.link(hub.ports().clock.now_ms()));
    batch.then(switch(hub, &paused)?);
    hub.ports().store.commit(batch).await.map_err(fault)
}

/// Stops a trigger that was changed in the data file: it starts nothing until it is stored again.
async fn stop_changed(hub: &Hub, trigger: &Trigger, cause: &Fault) -> Result<(), Fault> {
    let fields = json!({"triggerId": trigger.id, "error": log::error(cause)});
    hub.ports().log.error("a trigger of the data file is refused", fields);
    let change = StateChange {
        code: Some(cause.code),
        detail: json!({"reason": CHANGED, "author": trigger.spec.author.name}),
        ..StateChange::by_server("triggers.pause", &trigger.tenant, Some(&trigger.id))
    };
    let mut batch = Batch::new();
    batch.link(change.link(hub.ports().clock.now_ms()));
    batch.then(tables::stop(&trigger.tenant, &trigger.id, CHANGED));
    hub.ports().store.commit(batch).await.map_err(fault)
}
