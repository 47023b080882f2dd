//! Tells everybody concerned what is on record: readers of inboxes, whoever waits for an answer, listeners of the bus.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use orchestr8_contract::id::{MessageId, Tenant};
use orchestr8_contract::{Event, Fault, Priority};
use serde_json::{Value, json};

use super::desk::Told;
use super::envelope::Kind;
use super::hub::{Hub, MESSAGE_COMPLETED, MESSAGE_FAILED, MESSAGE_PLACED, MESSAGE_RECEIVED, Shared, topic};
use super::record::{Address, Placed};
use crate::limits;

impl Hub {
    /// Lets the streams of an inbox look whether it is still theirs to read.
    pub fn tell_readers(&self, address: &Address) {
        self.0.tell_placed(address, u64::MAX, None);
    }
}

impl Shared {
    /// Tells everybody concerned what is on record now.
    pub(super) fn tell(self: &Arc<Self>, told: Vec<Told>) {
        let hub = Hub(self.clone());
        for told in told {
            match told {
                Told::Arrived(address, position, placed) => {
                    self.tell_placed(&address, position, placed.as_deref());
                    hub.dispatch(&address, position, placed);
                    self.publish(
                        MESSAGE_RECEIVED,
                        address.tenant.as_str(),
                        || json!({"agentId": address.agent}),
                    );
                }
                Told::Asked { due_ms } => {
                    if due_ms < self.next_due_ms.fetch_min(due_ms, Ordering::SeqCst) {
                        self.sooner.notify_one();
                    }
                }
                Told::Settled(tenant, entry) => {
                    let waiting = self.waiters.lock().remove(&(tenant.clone(), entry.request.clone()));
                    for tell in waiting.into_iter().flatten() {
                        let _ = tell.send((*entry).clone());
                    }
                    let name = match entry.status {
                        super::Status::Completed => MESSAGE_COMPLETED,
                        super::Status::Failed | super::Status::Pending | super::Status::Unknown => {
                            MESSAGE_FAILED
                        }
                    };
                    self.publish(
                        name,
                        tenant.as_str(),
                        || json!({"messageId": entry.message, "requestId": entry.request}),
                    );
                }
                Told::Ended(tenant, message, fault) => self.tell_ended(&tenant, &message, fault.as_ref()),
            }
        }
    }

    fn tell_ended(&self, tenant: &Tenant, message: &MessageId, fault: Option<&Fault>) {
        let name = if fault.is_some() { MESSAGE_FAILED } else { MESSAGE_COMPLETED };
        self.publish(name, tenant.as_str(), || json!({"messageId": message}));
    }

    /// Hands the message to the streams of its inbox, or says where it lies.
    fn tell_placed(&self, address: &Address, position: u64, placed: Option<&Placed>) {
        self.publish(MESSAGE_PLACED, &topic(address), || {
            // A request is read from the store, where its delivery is counted.
            let is_told =
                |placed: &&Placed| placed.text.len() <= limits::NEWS_BYTES && placed.kind != Kind::Request;
            match placed.filter(is_told) {
                Some(placed) => json!({"inboxSeq": position, "envelope": placed.text}),
                None => json!({"inboxSeq": position}),
            }
        });
    }

    fn publish(&self, name: &'static str, subject: &str, data: impl FnOnce() -> Value) {
        let bus = self.kernel.bus();
        if !bus.has_listeners(name) {
            return;
        }
        bus.publish(Event {
            name,
            subject: subject.into(),
            priority: Priority::Normal,
            at_ms: self.kernel.ports().clock.now_ms(),
            data: Arc::new(data()),
        });
    }
}
