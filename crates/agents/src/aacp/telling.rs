//! Tells everybody concerned what is on record: readers of inboxes, whoever waits for an answer, listeners of the bus.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use orchestr8_contract::id::{MessageId, Tenant};
use orchestr8_contract::{Event, Fault, Priority};
use serde_json::{Value, json};

use super::desk::Told;
use super::hub::{Hub, MESSAGE_COMPLETED, MESSAGE_FAILED, MESSAGE_RECEIVED, Shared};

impl Shared {
    /// Tells everybody concerned what is on record now.
    pub(super) fn tell(self: &Arc<Self>, told: Vec<Told>) {
        let hub = Hub(self.clone());
        for told in told {
            match told {
                Told::Arrived(address) => {
                    hub.dispatch(&address);
                    self.publish(MESSAGE_RECEIVED, &address.tenant, || json!({"agentId": address.agent}));
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
                        &tenant,
                        || json!({"messageId": entry.message, "requestId": entry.request}),
                    );
                }
                Told::Ended(tenant, message, fault) => self.tell_ended(&tenant, &message, fault.as_ref()),
            }
        }
    }

    fn tell_ended(&self, tenant: &Tenant, message: &MessageId, fault: Option<&Fault>) {
        let name = if fault.is_some() { MESSAGE_FAILED } else { MESSAGE_COMPLETED };
        self.publish(name, tenant, || json!({"messageId": message}));
    }

    fn publish(&self, name: &'static str, tenant: &Tenant, data: impl FnOnce() -> Value) {
        let bus = self.kernel.bus();
        if !bus.has_listeners(name) {
            return;
        }
        bus.publish(Event {
            name,
            subject: tenant.as_str().into(),
            priority: Priority::Normal,
            at_ms: self.kernel.ports().clock.now_ms(),
            data: Arc::new(data()),
        });
    }
}
