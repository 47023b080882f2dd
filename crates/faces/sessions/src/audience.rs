//! Who hears broadcasts: every client of one tenant, and nobody of another.

use std::collections::HashMap;
use std::sync::Arc;

use orchestr8_contract::id::Tenant;
use parking_lot::{Mutex, RwLock};

use crate::outbox::{Outbox, Weight};
use crate::wire::Frame;

/// The clients of one tenant.
#[derive(Default)]
pub struct Audience {
    outboxes: RwLock<Vec<Arc<Outbox>>>,
}

impl Audience {
    /// Gives everybody the same frame; it is shared, not copied.
    pub fn tell(&self, frame: &Frame, weight: Weight) {
        for outbox in self.outboxes.read().iter() {
            outbox.push(frame.clone(), weight);
        }
    }
}

/// All audiences.
#[derive(Default)]
pub struct Audiences {
    by_tenant: Mutex<HashMap<Tenant, Arc<Audience>>>,
}

impl Audiences {
    /// The audience of a tenant. It may be empty yet.
    pub fn of(&self, tenant: &Tenant) -> Arc<Audience> {
        self.by_tenant.lock().entry(tenant.clone()).or_default().clone()
    }

    /// The audience of a tenant, if anybody is there.
    pub fn present(&self, tenant: &str) -> Option<Arc<Audience>> {
        let tenant = Tenant::parse(tenant).ok()?;
        self.by_tenant.lock().get(&tenant).cloned()
    }

    pub fn join(&self, tenant: &Tenant, outbox: &Arc<Outbox>) {
        let mut by_tenant = self.by_tenant.lock();
        by_tenant.entry(tenant.clone()).or_default().outboxes.write().push(outbox.clone());
    }

    pub fn leave(&self, tenant: &Tenant, outbox: &Arc<Outbox>) {
        let mut by_tenant = self.by_tenant.lock();
        let Some(audience) = by_tenant.get(tenant) else { return };
        let mut outboxes = audience.outboxes.write();
        outboxes.retain(|other| !Arc::ptr_eq(other, outbox));
        let is_empty = outboxes.is_empty();
        drop(outboxes);
        // Somebody who is about to join has the audience in hand already.
        if is_empty && Arc::strong_count(audience) == 1 {
            by_tenant.remove(tenant);
        }
    }

    pub fn tell_everybody(&self, frame: &Frame, weight: Weight) {
        let all: Vec<_> = self.by_tenant.lock().values().cloned().collect();
        all.iter().for_each(|audience| audience.tell(frame, weight));
    }

    /// Broadcasts that those present have missed.
    pub fn dropped(&self) -> u64 {
        let all: Vec<_> = self.by_tenant.lock().values().cloned().collect();
        let of = |audience: &Arc<Audience>| {
            audience.outboxes.read().iter().map(|outbox| outbox.dropped()).sum::<u64>()
        };
        all.iter().map(of).sum()
    }
}
