//! Deliveries that wait for the end of a quiet period or of a batch: what is due starts one execution.

use orchestr8_contract::{Fault, Kind};
use orchestr8_kernel::log;
use orchestr8_kernel::ports::store::Batch;
use serde_json::{Map, Value, json};

use super::{Trigger, deliver, look_up, stop, tables};
use crate::limits;
use crate::runtime::{Hub, fault};

/// Triggers looked at together.
const PAGE: i64 = 100;

/// How long a trigger that could not start waits until it tries again: when a limit was reached, and when anything else was wrong.
const BUSY_MS: i64 = 1000;
const FAILED_MS: i64 = 60_000;

/// One that is still due is looked at again after a while.
const LOOK_AGAIN_MS: i64 = 100;

/// Starts what is due. Says when the next one is.
pub async fn fire(hub: &Hub, now_ms: i64) -> Result<Option<i64>, Fault> {
    let store = &hub.ports().store;
    for row in store.query(tables::due(now_ms, PAGE)).await.map_err(fault)? {
        let (tenant, id) = (row.text(0).map_err(fault)?, row.text(1).map_err(fault)?);
        if let Err(cause) = fire_one(hub, tenant, id, now_ms).await {
            let fields = json!({"triggerId": id, "error": log::error(&cause)});
            hub.ports().log.error("a trigger could not be looked at", fields);
        }
    }
    let next = store.query(tables::next_due()).await.map_err(fault)?;
    Ok(next.first().and_then(|row| row.int(0).ok()).map(|next_ms| next_ms.max(now_ms + LOOK_AGAIN_MS)))
}

async fn fire_one(hub: &Hub, tenant: &str, id: &str, now_ms: i64) -> Result<(), Fault> {
    let _turn = hub.trigger_locks().lock(tenant, id).await;
    // A delivery may have come meanwhile, and has put it off.
    let Some(trigger) = look_up(hub, tenant, id).await? else { return Ok(()) };
    let is_due = trigger.paused.is_none() && trigger.due_ms.is_some_and(|due_ms| due_ms <= now_ms);
    if !is_due || stop::stop_unfit(hub, &trigger).await? {
        return Ok(());
    }
    match start(hub, &trigger, now_ms).await {
        Ok(()) => Ok(()),
        Err(cause) => put_off(hub, &trigger, &cause, now_ms).await,
    }
}

/// What waits of a trigger and goes into one execution.
struct Taken {
    inputs: Map<String, Value>,
    count: usize,
    last: i64,
}

async fn start(hub: &Hub, trigger: &Trigger, now_ms: i64) -> Result<(), Fault> {
    let Trigger { tenant, id, .. } = trigger;
    let mut batch = Batch::new();
    let Some(taken) = take(hub, trigger).await? else {
        batch.then_one(tables::fired(trigger, trigger.pending, (None, None), None, None));
        return hub.ports().store.commit(batch).await.map_err(fault);
    };
    let count = i64::try_from(taken.count).unwrap_or(i64::MAX);
    let mut accepted = hub.accept(trigger.request(hub, taken.inputs).await?)?;
    batch.merge(std::mem::take(&mut accepted.batch));
    batch.link(deliver::started(trigger, &accepted.id, taken.count, now_ms));
    batch.then(tables::pending_delete(tenant, id, taken.last));
    let rest = (trigger.pending > count).then_some(now_ms);
    batch.then_one(tables::fired(trigger, count, (rest, rest), Some(&accepted.id), None));
    hub.ports().store.commit(batch).await.map_err(fault)?;
    hub.launch(accepted);
    Ok(())
}

/// The deliveries of the next execution: a batch, or the oldest that waits.
async fn take(hub: &Hub, trigger: &Trigger) -> Result<Option<Taken>, Fault> {
    let batching = trigger.spec.webhook.as_ref().and_then(|webhook| webhook.batch.as_ref());
    let size = batching.map_or(1, |batching| batching.size);
    let rows = tables::pending(&trigger.tenant, &trigger.id, size);
    let rows = hub.ports().store.query(rows).await.map_err(fault)?;
    let (mut items, mut bytes, mut last) = (Vec::new(), 0, 0);
    for row in &rows {
        let (number, text) = (row.int(0).map_err(fault)?, row.text(1).map_err(fault)?);
        bytes += text.len();
        if !items.is_empty() && bytes > limits::BATCH_BYTES {
            break;
        }
        let item: Value = serde_json::from_str(text)
            .map_err(|error| Fault::internal("a delivery that waits cannot be read").because(error))?;
        items.push(item);
        last = number;
    }
    let count = items.len();
    let inputs = match batching {
        _ if count == 0 => return Ok(None),
        Some(batching) => Map::from_iter([(batching.input.clone(), Value::Array(items))]),
        None => items.into_iter().next().and_then(|item| item.as_object().cloned()).unwrap_or_default(),
    };
    Ok(Some(Taken { inputs, count, last }))
}

/// Nothing that was acknowledged is lost: what could not be started waits, and is tried again.
async fn put_off(hub: &Hub, trigger: &Trigger, cause: &Fault, now_ms: i64) -> Result<(), Fault> {
    let fields = json!({"triggerId": trigger.id, "tenant": trigger.tenant, "error": log::error(cause)});
    hub.ports().log.error("a trigger could not start its workflow", fields);
    let wait_ms = match cause.code.kind() {
        Kind::Exhausted | Kind::Unavailable => BUSY_MS,
        Kind::Invalid
        | Kind::NotFound
        | Kind::Unauthenticated
        | Kind::Forbidden
        | Kind::Conflict
        | Kind::Timeout
        | Kind::Cancelled
        | Kind::Dependency
        | Kind::State
        | Kind::Unknown
        | Kind::Internal => FAILED_MS,
    };
    let due_ms = Some(now_ms + wait_ms);
    let mut batch = Batch::new();
    batch.then(tables::fired(trigger, 0, (due_ms, trigger.since_ms), None, Some(&cause.message)));
    hub.ports().store.commit(batch).await.map_err(fault)
}
