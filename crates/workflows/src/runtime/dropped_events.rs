//! Notes in the journal of an execution that events about it were dropped on the bus (WF-19.6).

use std::collections::HashMap;
use std::sync::Arc;

use orchestr8_kernel::bus::{EVENT_DROPPED, Filter, Subscription};
use orchestr8_kernel::log;
use serde_json::{Value, json};

use super::actor::Message;
use super::{Hub, load};
use crate::limits;

/// What the subject of an event about an execution begins with.
const SUBJECT: &str = "execution://";

/// Executions whose journals were told lately. Each is told at most once in a while: the entry itself is news that a listener who
/// does not listen loses, too.
#[derive(Default)]
struct Told(HashMap<Arc<str>, i64>);

impl Told {
    fn may_tell(&mut self, subject: &Arc<str>, now_ms: i64) -> bool {
        let is_recent = |told_ms: &i64| now_ms - told_ms < limits::EVENT_DROPPED_EVERY_MS;
        if self.0.get(subject).is_some_and(is_recent) {
            return false;
        }
        if self.0.len() >= limits::EVENT_DROPPED_TOLD {
            self.0.retain(|_, told_ms| is_recent(told_ms));
        }
        let has_room = self.0.len() < limits::EVENT_DROPPED_TOLD;
        if has_room {
            self.0.insert(subject.clone(), now_ms);
        }
        has_room
    }
}

/// Listens from now on, until the process stops.
pub fn follow(hub: Hub) {
    match hub.0.kernel.bus().subscribe(&Filter::names([EVENT_DROPPED])) {
        Ok(events) => {
            tokio::spawn(hear(hub, events));
        }
        Err(fault) => {
            let fields = json!({"error": log::error(&fault)});
            hub.0.log().warn("dropped events will not be in journals", fields);
        }
    }
}

async fn hear(hub: Hub, mut events: Subscription) {
    let mut told = Told::default();
    loop {
        let event = tokio::select! {
            () = hub.0.stop.cancelled() => return,
            event = events.next() => event,
        };
        let Some(event) = event else { return };
        let Some(id) = event.subject.strip_prefix(SUBJECT) else { continue };
        let Some(tenant) = event.data.get("tenant").and_then(Value::as_str) else { continue };
        if told.may_tell(&event.subject, hub.0.now_ms()) {
            tell(&hub, tenant, id, &event.data).await;
        }
    }
}

/// Hands it to the actor. An execution that only waits or has ended makes no news that could be dropped.
async fn tell(hub: &Hub, tenant: &str, id: &str, drop: &Value) {
    let Ok(Some(row)) = load::find(hub, tenant, id).await else { return };
    let live = hub.0.live.lock().get(&row.num).cloned();
    if let Some(live) = live {
        // A mailbox without room belongs to an actor that has more important things to hear.
        let _ = live.sender.try_send(Message::EventsDropped(drop.clone()));
    }
}
