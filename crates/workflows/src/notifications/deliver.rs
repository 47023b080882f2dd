//! Sends notifications: with longer and longer waits until they are taken, and given up after many attempts.

use std::time::Duration;

use futures::future::join_all;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::audit::StateChange;
use orchestr8_kernel::log;
use orchestr8_kernel::ports::store::{Batch, Row};
use orchestr8_kernel::resilience::retry::{Jitter, delay_ms};
use orchestr8_outbound::delivery::{DeliveryEnd, SignedDelivery};
use serde_json::json;

use super::tables;
use crate::limits::{
    NOTIFICATION_ATTEMPTS, NOTIFICATION_BASE_MS, NOTIFICATION_CAP_MS, NOTIFICATION_TIMEOUT_MS,
    NOTIFICATIONS_AT_ONCE,
};
use crate::runtime::{Hub, fault};
use crate::triggers::{deliver::secret_of, look_up, stop};

/// Without anything due it looks this often.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// After a failure of the store.
const AGAIN: Duration = Duration::from_secs(1);

/// One notification as it is stored.
struct Pending {
    num: i64,
    tenant: String,
    trigger: String,
    id: String,
    event: String,
    body: String,
    attempts: i64,
}

pub async fn run(hub: Hub) {
    loop {
        let due = hub.notifier().due.notified();
        let wait = match send_due(&hub).await {
            Ok(wait) => wait,
            Err(cause) => {
                hub.ports()
                    .log
                    .error("notifications could not be sent", json!({"error": log::error(&cause)}));
                AGAIN
            }
        };
        tokio::select! {
            () = hub.closing() => return,
            () = due => {}
            () = hub.ports().clock.sleep(wait) => {}
        }
    }
}

/// Sends what is due, and says how long to wait for the next.
async fn send_due(hub: &Hub) -> Result<Duration, Fault> {
    let store = &hub.ports().store;
    loop {
        let now_ms = hub.ports().clock.now_ms();
        let rows = store.query(tables::due(now_ms, NOTIFICATIONS_AT_ONCE)).await.map_err(fault)?;
        if rows.is_empty() {
            let next = store.query(tables::next_due()).await.map_err(fault)?;
            let next_ms = next.first().and_then(|row| row.int(0).ok());
            let wait = |ms: i64| Duration::from_millis(u64::try_from(ms - now_ms).unwrap_or(1).max(1));
            return Ok(next_ms.map_or(LOOK_EVERY, wait).min(LOOK_EVERY));
        }
        let pending = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let ends = join_all(pending.iter().map(|one| send(hub, one))).await;
        let mut batch = Batch::new();
        for (one, end) in pending.iter().zip(ends) {
            settle(hub, one, end?, &mut batch);
        }
        if !batch.is_empty() {
            store.commit(batch).await.map_err(fault)?;
        }
    }
}

/// None: its trigger was paused just now, and it waits.
async fn send(hub: &Hub, one: &Pending) -> Result<Option<DeliveryEnd>, Fault> {
    let Some(trigger) = look_up(hub, &one.tenant, &one.trigger).await? else { return Ok(None) };
    if stop::stop_unfit(hub, &trigger).await? {
        return Ok(None);
    }
    let Some(spec) = &trigger.spec.notify else {
        return Ok(Some(DeliveryEnd::Gone(String::from("the trigger notifies no more"))));
    };
    // Nothing goes out unsigned because the vault is locked.
    let Some(secret) = secret_of(hub, &trigger, spec.secret_name.as_deref()) else {
        return Ok(Some(DeliveryEnd::Refused(String::from("the secret that signs it cannot be read"))));
    };
    let delivery = SignedDelivery {
        url: &spec.url,
        event: &one.event,
        id: &one.id,
        body: &one.body,
        secret: Some(secret.expose()),
        timeout: Duration::from_millis(NOTIFICATION_TIMEOUT_MS),
    };
    let notifier = hub.notifier();
    Ok(Some(delivery.send(&notifier.client, &notifier.guard, hub.ports().clock.now_ms()).await))
}

fn settle(hub: &Hub, one: &Pending, end: Option<DeliveryEnd>, batch: &mut Batch) {
    let (now_ms, attempts) = (hub.ports().clock.now_ms(), one.attempts + 1);
    match end {
        None => {}
        Some(DeliveryEnd::Taken) => {
            batch.then(tables::delivered(one.num));
        }
        Some(DeliveryEnd::Refused(why)) if attempts < NOTIFICATION_ATTEMPTS => {
            let due_ms = now_ms + wait_ms(hub, attempts);
            batch.then(tables::put_off(one.num, attempts, Some(due_ms), None, &why));
        }
        Some(DeliveryEnd::Refused(why) | DeliveryEnd::Gone(why)) => {
            let fields = json!({"triggerId": one.trigger, "tenant": one.tenant, "why": why});
            hub.ports().log.warn("a notification was given up", fields);
            let change = StateChange {
                code: Some(Code::Unavailable),
                detail: json!({"delivery": one.id, "attempts": attempts}),
                ..StateChange::by_server("triggers.give_up", &one.tenant, Some(&one.trigger))
            };
            batch.link(change.link(now_ms));
            batch.then(tables::put_off(one.num, attempts, None, Some(now_ms), &why));
        }
    }
}

fn wait_ms(hub: &Hub, attempts: i64) -> i64 {
    let doubled = u32::try_from(attempts - 1).ok().and_then(|n| NOTIFICATION_BASE_MS.checked_shl(n));
    let ceiling_ms = doubled.unwrap_or(NOTIFICATION_CAP_MS).min(NOTIFICATION_CAP_MS);
    i64::try_from(delay_ms(Jitter::Full, ceiling_ms, hub.ports().random.unit())).unwrap_or(i64::MAX)
}

fn read(row: &Row) -> Result<Pending, Fault> {
    let text = |at| row.text(at).map(str::to_owned).map_err(fault);
    Ok(Pending {
        num: row.int(0).map_err(fault)?,
        tenant: text(1)?,
        trigger: text(2)?,
        id: text(3)?,
        event: text(4)?,
        body: text(5)?,
        attempts: row.int(6).map_err(fault)?,
    })
}
