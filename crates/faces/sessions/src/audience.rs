//! Broadcasts: to the clients of one tenant, and of these to the principals that may hear them.

use std::collections::HashMap;
use std::sync::Arc;

use orchestr8_contract::id::Tenant;
use orchestr8_kernel::Principal;
use parking_lot::{Mutex, RwLock};

use crate::outbox::{Outbox, Weight};
use crate::wire::Frame;

/// The clients of one tenant.
#[derive(Default)]
pub struct Audience {
    members: RwLock<Vec<Member>>,
}

struct Member {
    principal: Arc<Principal>,
    outbox: Arc<Outbox>,
}

impl Audience {
    /// Gives every client the same frame; it is shared, not copied.
    pub fn tell(&self, frame: &Frame, weight: Weight) {
        self.tell_those(frame, weight, |_| true);
    }

    /// Gives it to the clients whose principal may hear it.
    pub fn tell_those(&self, frame: &Frame, weight: Weight, may_hear: impl Fn(&Principal) -> bool) {
        for member in self.members.read().iter().filter(|member| may_hear(&member.principal)) {
            member.outbox.push(frame.clone(), weight);
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

    pub fn join(&self, principal: &Arc<Principal>, outbox: &Arc<Outbox>) {
        let mut by_tenant = self.by_tenant.lock();
        let audience = by_tenant.entry(principal.tenant.clone()).or_default();
        audience.members.write().push(Member { principal: principal.clone(), outbox: outbox.clone() });
    }

    pub fn leave(&self, tenant: &Tenant, outbox: &Arc<Outbox>) {
        let mut by_tenant = self.by_tenant.lock();
        let Some(audience) = by_tenant.get(tenant) else { return };
        let mut members = audience.members.write();
        members.retain(|member| !Arc::ptr_eq(&member.outbox, outbox));
        let is_empty = members.is_empty();
        drop(members);
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
            audience.members.read().iter().map(|member| member.outbox.dropped()).sum::<u64>()
        };
        all.iter().map(of).sum()
    }
}
