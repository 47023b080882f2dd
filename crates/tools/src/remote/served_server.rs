//! A server whose tools are offered: its entry, who it belongs to, and the tools that all of its instances share.

use std::sync::Arc;

use orchestr8_contract::id::Tenant;
use parking_lot::{Mutex, RwLock};
use tokio_util::sync::CancellationToken;

use super::Server;

/// What tells servers apart: two tenants may each have added one of the same name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerKey {
    /// The tenant that added it; None: the settings name it.
    pub owner: Option<Tenant>,
    pub name: String,
}

/// What is known of the tools of a server.
#[derive(Default)]
pub struct Catalogue {
    /// Whether an instance has listed them, and not only the store.
    pub is_learned: bool,
}

pub struct ServedServer {
    pub server: Arc<Server>,
    pub key: ServerKey,
    /// Held while the tools are registered, so that what was learned later is what stays.
    pub catalogue: Mutex<Catalogue>,
    /// Our names of its tools.
    names: RwLock<Vec<String>>,
    /// Who added it at run time, and when.
    pub added: Option<(String, i64)>,
    /// Ends all of its instances.
    pub stop: CancellationToken,
}

impl ServedServer {
    pub fn new(server: Server, owner: Option<Tenant>, stop: CancellationToken) -> Self {
        Self {
            key: ServerKey { owner, name: server.name.clone() },
            server: Arc::new(server),
            catalogue: Mutex::default(),
            names: RwLock::default(),
            added: None,
            stop,
        }
    }

    /// The tenant whose admins decide about its tools, and whose instance says which tools there are.
    pub fn home(&self) -> Tenant {
        self.key.owner.clone().unwrap_or_else(Tenant::local)
    }

    /// Whether a tenant sees its tools.
    pub fn is_for(&self, tenant: &Tenant) -> bool {
        self.key.owner.as_ref().is_none_or(|owner| owner == tenant)
    }

    /// Whose instance serves a tenant.
    pub fn instance_tenant(&self, caller: &Tenant) -> Tenant {
        if self.server.shared { self.home() } else { caller.clone() }
    }

    /// Whether an instance starts with the program and runs until its end: those of the machine's own tenant, and shared ones.
    pub fn is_permanent(&self, tenant: &Tenant) -> bool {
        self.server.shared || *tenant == Tenant::local()
    }

    /// How long an instance may be unused before it is stopped; None: for ever.
    pub fn idle_timeout_ms(&self, tenant: &Tenant) -> Option<u64> {
        let preset = (!self.is_permanent(tenant)).then_some(super::limits::IDLE_TIMEOUT_MS);
        self.server.idle_timeout_ms.or(preset).filter(|timeout_ms| *timeout_ms > 0)
    }

    pub fn listed_names(&self) -> Vec<String> {
        self.names.read().clone()
    }

    pub fn set_listed_names(&self, names: Vec<String>) {
        *self.names.write() = names;
    }
}
