//! Slots bound how much runs at once. A slot is held until the work returns, not until it is answered (MCP-TIMEOUT-4).
//!
//! One caller may hold all of them, as the seed has it; so a few more are kept in reserve for callers that hold none or few: half of
//! the reserve for any principal, the rest for other tenants only. Whatever one tenant holds, another one finds room (ADR 39).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use tokio::sync::Notify;

use crate::submission::Principal;

/// Counters of tenants and of principals, found by a hash. Two that share one share what they get of the reserve, and nothing else.
pub(crate) const COUNTERS: usize = 512;

/// The reserve, in tenths of the maximum, and at least this many slots.
const RESERVE_TENTHS: usize = 4;
const RESERVE_LEAST: usize = 4;

/// A tenant or principal that holds fewer than this share of the reserve may use it.
const RESERVE_SHARE: usize = 4;

#[derive(Debug)]
struct Pool {
    taken: AtomicUsize,
    max: usize,
    reserve: usize,
    tenants: Box<[AtomicU32]>,
    principals: Box<[AtomicU32]>,
    /// A slot that anyone may take is free.
    freed: Notify,
    /// Any slot is free, perhaps one of the reserve.
    freed_reserve: Notify,
}

/// A bounded number of places to run.
#[derive(Debug, Clone)]
pub struct Slots(Arc<Pool>);

/// A place to run; dropped, it is free again.
#[derive(Debug)]
pub struct Slot {
    pool: Arc<Pool>,
    holder: Holder,
}

/// The counters of a caller.
#[derive(Debug, Clone, Copy)]
pub struct Holder {
    tenant: u16,
    principal: u16,
}

impl Holder {
    pub fn of(principal: &Principal) -> Self {
        let tenant = hash(OFFSET, principal.tenant.as_str().as_bytes());
        Self { tenant: counter(tenant), principal: counter(hash(tenant, principal.name.as_bytes())) }
    }

    pub(crate) fn tenant_counter(principal: &Principal) -> u16 {
        counter(hash(OFFSET, principal.tenant.as_str().as_bytes()))
    }
}

impl Slots {
    /// So many for one caller, and a reserve for others.
    pub fn new(max: usize) -> Self {
        Self::with_reserve(max, (max * RESERVE_TENTHS / 10).max(RESERVE_LEAST))
    }

    /// So many for all: what they are for can take no more.
    pub fn exact(max: usize) -> Self {
        Self::with_reserve(max, 0)
    }

    fn with_reserve(max: usize, reserve: usize) -> Self {
        let counters = || (0..COUNTERS).map(|_| AtomicU32::new(0)).collect();
        Self(Arc::new(Pool {
            taken: AtomicUsize::new(0),
            max,
            reserve,
            tenants: counters(),
            principals: counters(),
            freed: Notify::new(),
            freed_reserve: Notify::new(),
        }))
    }

    /// A slot, or None at once when all are taken.
    pub fn try_take(&self, holder: Holder) -> Option<Slot> {
        let pool = &self.0;
        let claim = |taken: usize| (taken < pool.max).then_some(taken + 1);
        let claimed = pool.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, claim);
        if claimed.is_err() {
            pool.claim_reserve(holder)?;
        }
        Some(self.slot(holder))
    }

    /// A slot for work elsewhere that outlives its run: taken while the run still holds its own, and so whatever the maximum is.
    pub fn take_for_outliving(&self, holder: Holder) -> Slot {
        self.0.taken.fetch_add(1, Ordering::AcqRel);
        self.slot(holder)
    }

    fn slot(&self, holder: Holder) -> Slot {
        let pool = &self.0;
        pool.tenants[usize::from(holder.tenant)].fetch_add(1, Ordering::AcqRel);
        pool.principals[usize::from(holder.principal)].fetch_add(1, Ordering::AcqRel);
        Slot { pool: pool.clone(), holder }
    }

    /// Waits for a slot.
    pub async fn take(&self, holder: Holder) -> Slot {
        loop {
            let (freed, reserve) = (self.0.freed.notified(), self.0.freed_reserve.notified());
            tokio::pin!(freed, reserve);
            // Registered before looking, so that a slot freed in between wakes this waiter.
            freed.as_mut().enable();
            let may_reserve = self.0.reserve_for(holder) > 0;
            if may_reserve {
                reserve.as_mut().enable();
            }
            if let Some(slot) = self.try_take(holder) {
                return slot;
            }
            tokio::select! {
                () = freed => {}
                () = reserve, if may_reserve => {}
            }
        }
    }

    pub fn taken(&self) -> usize {
        self.0.taken.load(Ordering::Acquire)
    }

    pub fn max(&self) -> usize {
        self.0.max
    }
}

impl Pool {
    fn claim_reserve(&self, holder: Holder) -> Option<()> {
        let limit = self.max + self.reserve_for(holder);
        let claim = |taken: usize| (taken < limit).then_some(taken + 1);
        self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, claim).ok().map(|_| ())
    }

    /// How much of the reserve a caller may use.
    fn reserve_for(&self, holder: Holder) -> usize {
        let share = u32::try_from(self.reserve / RESERVE_SHARE).unwrap_or(u32::MAX);
        let holds_few = |counter: &AtomicU32| counter.load(Ordering::Acquire) < share;
        if holds_few(&self.tenants[usize::from(holder.tenant)]) {
            self.reserve
        } else if holds_few(&self.principals[usize::from(holder.principal)]) {
            self.reserve / 2
        } else {
            0
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let pool = &self.pool;
        pool.tenants[usize::from(self.holder.tenant)].fetch_sub(1, Ordering::AcqRel);
        pool.principals[usize::from(self.holder.principal)].fetch_sub(1, Ordering::AcqRel);
        if pool.taken.fetch_sub(1, Ordering::AcqRel) <= pool.max {
            pool.freed.notify_one();
        }
        pool.freed_reserve.notify_one();
    }
}

fn counter(hash: u64) -> u16 {
    u16::try_from(hash % COUNTERS as u64).unwrap_or_default()
}

/// Where FNV-1a begins.
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a: names are short, and every call needs it.
fn hash(begin: u64, bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x0100_0000_01b3;
    let hash = bytes.iter().fold(begin, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
    // The low bits choose the counter; the high ones have seen more of the name.
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use orchestr8_contract::RoleSet;
    use orchestr8_contract::id::Tenant;

    use super::*;

    fn holder(tenant: &str, name: &str) -> Holder {
        Holder::of(&Principal::new(name, Tenant::parse(tenant).unwrap(), RoleSet::NONE))
    }

    /// As many as the caller gets.
    fn fill(slots: &Slots, holder: Holder) -> Vec<Slot> {
        std::iter::from_fn(|| slots.try_take(holder)).collect()
    }

    #[test]
    fn one_caller_never_has_more_than_the_maximum() {
        for max in [5, 10, 1000] {
            let slots = Slots::new(max);
            let me = holder("acme", "alice");
            let mut held = fill(&slots, me);
            assert_eq!((held.len(), slots.taken()), (max, max));
            held.pop();
            assert!(slots.try_take(me).is_some());
        }
    }

    #[test]
    fn exact_slots_have_no_reserve() {
        let slots = Slots::exact(2);
        assert_eq!(fill(&slots, holder("rival", "eve")).len(), 2);
        let _held = fill(&slots, holder("rival", "eve"));
        assert!(slots.try_take(holder("acme", "alice")).is_none());
    }

    #[test]
    fn whatever_one_tenant_holds_another_one_finds_room() {
        let slots = Slots::new(10);
        let mut held = Vec::new();
        for principal in 0..100 {
            held.extend(fill(&slots, holder("rival", &format!("eve-{principal}"))));
        }
        assert_eq!(held.len(), 12, "the maximum, and the half of the reserve that is for principals");
        let acme = fill(&slots, holder("acme", "alice"));
        assert_eq!(acme.len(), 1);
        let third = fill(&slots, holder("third", "bob"));
        assert_eq!(third.len(), 1);
        assert!(slots.try_take(holder("fourth", "carol")).is_none(), "the reserve has an end");
        drop(acme);
        assert!(slots.try_take(holder("fourth", "carol")).is_some());
    }

    #[test]
    fn whatever_one_principal_holds_another_one_of_its_tenant_finds_room() {
        let slots = Slots::new(10);
        let eve = fill(&slots, holder("acme", "eve"));
        assert_eq!(eve.len(), 10);
        assert_eq!(fill(&slots, holder("acme", "alice")).len(), 1);
    }

    #[tokio::test]
    async fn a_waiter_gets_the_slot_that_is_given_back() {
        let slots = Slots::new(1);
        let me = holder("acme", "alice");
        let held = slots.try_take(me).unwrap();
        let waiting = tokio::spawn({
            let slots = slots.clone();
            async move { slots.take(me).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(held);
        waiting.await.unwrap();
        assert_eq!(slots.taken(), 0);
    }

    /// A slot of the reserve is of no use to those who wait with their hands full; it must not end with them.
    #[tokio::test]
    async fn a_freed_slot_of_the_reserve_wakes_one_who_may_have_it() {
        let slots = Slots::new(2);
        let eve = holder("rival", "eve");
        let _held = fill(&slots, eve);
        let reserve: Vec<Slot> =
            (0..100).flat_map(|other| fill(&slots, holder(&format!("t{other}"), "x"))).collect();
        let wait = |holder: Holder| {
            let slots = slots.clone();
            tokio::spawn(async move { slots.take(holder).await })
        };
        let full: Vec<_> = (0..3).map(|_| wait(eve)).collect();
        tokio::task::yield_now().await;
        let honest = wait(holder("acme", "alice"));
        tokio::task::yield_now().await;
        assert!(!honest.is_finished());
        drop(reserve.into_iter().next());
        honest.await.unwrap();
        assert!(full.iter().all(|waiting| !waiting.is_finished()));
    }
}
