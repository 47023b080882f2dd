//! After a start: everything that was under way is taken up again, in the order in which it came.

use orchestr8_contract::Fault;
use orchestr8_contract::id::Tenant;
use orchestr8_kernel::log;
use serde_json::json;

use super::{Hub, fault, load, tables};
use crate::engine::event::Status;

/// Rows read at once.
const PAGE: i64 = 256;

/// Executions up to this number were there before the start; later ones begin by themselves.
pub async fn recover(hub: Hub, last: i64) {
    let taken_up = match take_up(&hub, last).await {
        Ok(count) => count,
        Err(fault) => {
            hub.0.log().error("executions could not be taken up", json!({"error": log::error(&fault)}));
            return;
        }
    };
    if let Err(fault) = crate::keyed_events::recover(&hub).await {
        hub.0.log().error("kept events could not be looked at", json!({"error": log::error(&fault)}));
    }
    if taken_up > 0 {
        hub.0.log().info("took up what was under way", json!({"executions": taken_up}));
    }
}

async fn take_up(hub: &Hub, up_to: i64) -> Result<usize, Fault> {
    let store = &hub.0.ports.store;
    let (mut after, mut count) = (0, 0);
    loop {
        let rows = store.query(crate::tables::executions_awake(after, up_to, PAGE)).await.map_err(fault)?;
        let Some(last) = rows.last() else { break };
        after = last.int(0).map_err(fault)?;
        for row in &rows {
            let row = load::read(row)?;
            count += 1;
            let own = hub.clone();
            if let Err(fault) = hub.for_a_while(async move { one(&own, row).await }).await {
                hub.0.log().error("an execution could not be taken up", json!({"error": log::error(&fault)}));
            }
        }
    }
    let mut after = 0;
    loop {
        let rows = store.query(tables::inbox_executions(after, up_to, PAGE)).await.map_err(fault)?;
        let Some(last) = rows.last() else { return Ok(count) };
        after = last.int(0).map_err(fault)?;
        for row in &rows {
            let (own, num) = (hub.clone(), row.int(0).map_err(fault)?);
            if let Err(fault) = hub.for_a_while(async move { own.wake(num).await }).await {
                hub.0.log().error("a message waits for its execution", json!({"error": log::error(&fault)}));
            }
        }
    }
}

/// One execution and its children, in the order in which they came.
pub async fn take_up_family(hub: &Hub, tenant: &Tenant, id: &str) -> Result<(), Fault> {
    let rows = hub
        .0
        .ports
        .store
        .query(crate::tables::executions_family(tenant.as_str(), id))
        .await
        .map_err(fault)?;
    for row in &rows {
        let row = load::read(row)?;
        // What is its own already goes on by itself.
        if !hub.0.is_own(row.num) {
            hub.0.adopt(row.num);
            one(hub, row).await?;
        }
    }
    Ok(())
}

async fn one(hub: &Hub, row: load::Row) -> Result<(), Fault> {
    let waits = match row.status {
        Status::Queued => true,
        // One that was paused in the queue waits for its turn all the same.
        Status::Paused if row.started_ms.is_some() => !load::by_number(hub, row.num).await?.state.has_begun(),
        status => row.started_ms.is_none() && !status.is_final(),
    };
    if waits {
        let seed = load::seed(hub, &row).await?;
        hub.line_up(seed);
        return Ok(());
    }
    hub.wake(row.num).await
}
