//! Those who want to hear of changes: one listener on the kernel's bus, and everybody it passes the news on to.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use orchestr8_contract::Event;
use orchestr8_contract::id::Tenant;
use orchestr8_kernel::bus::{Bus, Filter};
use orchestr8_kernel::interest::{Interest, Interests};
use orchestr8_kernel::log::{self, Log};
use orchestr8_kernel::peer::{LOG_MESSAGE, Severity};
pub use orchestr8_kernel::registry::RESOURCE_UPDATED;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::era::SUBSCRIPTION_KEY;
use crate::face::Outlet;
use crate::wire::{Error, Id};

/// The news that a list has changed. Its subject says which: `tools`, `prompts`, `resources`; anything else means all.
pub const REGISTRY_CHANGED: &str = orchestr8_kernel::registry::CHANGED;

/// One listener may follow this many resources.
pub const RESOURCES: usize = 1000;
/// Addresses longer than this are not followed.
const ADDRESS_BYTES: usize = 4096;

/// The lists somebody wants to hear of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lists {
    pub tools: bool,
    pub prompts: bool,
    pub resources: bool,
}

impl Lists {
    pub const ALL: Lists = Lists { tools: true, prompts: true, resources: true };

    /// The lists a change is about.
    fn changed(subject: &str) -> Self {
        match subject {
            "tools" => Self { tools: true, ..Self::default() },
            "prompts" => Self { prompts: true, ..Self::default() },
            "resources" => Self { resources: true, ..Self::default() },
            _ => Self::ALL,
        }
    }
}

/// Somebody who wants to hear of changes.
pub struct Listener {
    pub outlet: Arc<dyn Outlet>,
    pub lists: Lists,
    /// The request that opened the stream (modern era); every message on it says so.
    pub subscription: Option<Id>,
    /// Whose resources it may hear of.
    tenant: Tenant,
    resources: Mutex<BTreeMap<String, Interest>>,
    /// From which level on it hears log messages that belong to no call (legacy era).
    log: Mutex<Option<(Severity, Interest)>>,
    interests: Interests,
}

impl Listener {
    pub fn new(
        outlet: Arc<dyn Outlet>,
        lists: Lists,
        subscription: Option<Id>,
        tenant: Tenant,
        interests: Interests,
    ) -> Self {
        let (resources, log) = (Mutex::default(), Mutex::default());
        Self { outlet, lists, subscription, tenant, resources, log, interests }
    }

    /// It hears log messages from this level on.
    pub fn log_from(&self, level: Severity) {
        *self.log.lock() = Some((level, self.interests.log_from(&self.tenant, level)));
    }

    /// Resources of a tenant are announced to that tenant only; those of the server to all.
    fn may_hear(&self, event: &Event) -> bool {
        event.data.get("tenant").is_none_or(|tenant| tenant.as_str() == Some(self.tenant.as_str()))
    }

    pub fn follow(&self, uri: &str) -> Result<(), Error> {
        let mut resources = self.resources.lock();
        if uri.len() > ADDRESS_BYTES {
            return Err(Error::params(format!(
                "an address longer than {ADDRESS_BYTES} bytes cannot be followed"
            )));
        }
        if resources.len() >= RESOURCES && !resources.contains_key(uri) {
            return Err(Error::params(format!("{RESOURCES} resources are followed already")));
        }
        let interest = || self.interests.follow(&self.tenant, uri);
        resources.entry(uri.to_owned()).or_insert_with(interest);
        Ok(())
    }

    pub fn unfollow(&self, uri: &str) {
        self.resources.lock().remove(uri);
    }

    pub fn followed(&self) -> Vec<String> {
        self.resources.lock().keys().cloned().collect()
    }

    /// Sends a notification, marked with the subscription it belongs to.
    pub fn notify(&self, method: &str, mut params: Map<String, Value>) {
        if let Some(id) = &self.subscription {
            let id: Value = serde_json::from_str(id.as_json()).unwrap_or_default();
            params.insert("_meta".into(), json!({SUBSCRIPTION_KEY: id}));
        }
        let mut message = json!({"jsonrpc": "2.0", "method": method});
        if !params.is_empty() {
            message["params"] = Value::Object(params);
        }
        let _ = self.outlet.send(message.to_string());
    }

    fn hear(&self, event: &Event) {
        match event.name {
            RESOURCE_UPDATED
                if self.may_hear(event) && self.resources.lock().contains_key(&*event.subject) =>
            {
                let params = Map::from_iter([("uri".to_owned(), Value::from(&*event.subject))]);
                self.notify("notifications/resources/updated", params);
            }
            LOG_MESSAGE if self.may_hear(event) => {
                let level = Severity::deserialize(&event.data["level"]).unwrap_or(Severity::Info);
                if self.log.lock().as_ref().is_some_and(|(from, _)| level >= *from) {
                    let members =
                        ["level", "logger", "data"].map(|name| (name.to_owned(), event.data[name].clone()));
                    self.notify("notifications/message", Map::from_iter(members));
                }
            }
            REGISTRY_CHANGED => {
                let changed = Lists::changed(&event.subject);
                let news = [
                    (self.lists.tools && changed.tools, "notifications/tools/list_changed"),
                    (self.lists.prompts && changed.prompts, "notifications/prompts/list_changed"),
                    (self.lists.resources && changed.resources, "notifications/resources/list_changed"),
                ];
                for (_, method) in news.into_iter().filter(|(wanted, _)| *wanted) {
                    self.notify(method, Map::new());
                }
            }
            _ => {}
        }
    }
}

/// Everybody who wants to hear.
#[derive(Default)]
pub struct Audience {
    members: Mutex<HashMap<u64, Arc<Listener>>>,
    next: AtomicU64,
    is_listening: AtomicBool,
}

/// A seat in the audience; dropped, it is given up.
pub struct Seat {
    audience: Weak<Audience>,
    place: u64,
    pub listener: Arc<Listener>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(audience) = self.audience.upgrade() {
            audience.members.lock().remove(&self.place);
        }
    }
}

impl Audience {
    /// Takes a seat. The first to come starts the listening, which needs a tokio runtime.
    pub fn join(self: &Arc<Self>, listener: Listener, bus: &Bus, log: &Log) -> Seat {
        let listener = Arc::new(listener);
        let place = self.next.fetch_add(1, Ordering::Relaxed);
        self.members.lock().insert(place, listener.clone());
        if !self.is_listening.swap(true, Ordering::AcqRel) {
            self.listen(bus, log);
        }
        Seat { audience: Arc::downgrade(self), place, listener }
    }

    fn listen(self: &Arc<Self>, bus: &Bus, log: &Log) {
        match bus.subscribe(&Filter::names([REGISTRY_CHANGED, RESOURCE_UPDATED, LOG_MESSAGE])) {
            Ok(mut news) => {
                let audience = Arc::downgrade(self);
                tokio::spawn(async move {
                    while let Some(event) = news.next().await {
                        let Some(audience) = audience.upgrade() else { return };
                        audience.hear(&event);
                    }
                });
            }
            Err(fault) => {
                self.is_listening.store(false, Ordering::Release);
                log.warn("nobody will hear of changes", || json!({"error": log::error(&fault)}));
            }
        }
    }

    /// How many seats are taken.
    #[cfg(test)]
    pub fn size(&self) -> usize {
        self.members.lock().len()
    }

    fn hear(&self, event: &Event) {
        let members: Vec<Arc<Listener>> = self.members.lock().values().cloned().collect();
        members.iter().for_each(|listener| listener.hear(event));
    }
}
