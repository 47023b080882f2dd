//! Submissions that were admitted and have not come to their end, counted in all and by tenant.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::slots::{COUNTERS, Holder};
use crate::submission::Principal;

/// Beyond the limit there is still room for this share of it, in hundredths, for tenants that have few in flight: what one tenant
/// lets pile up must not shut others out.
const RESERVE_HUNDREDTHS: usize = 10;

/// A tenant has few in flight below this share of the reserve.
const RESERVE_SHARE: usize = 10;

pub struct InFlightCounts {
    all: AtomicUsize,
    /// By the counter of a tenant.
    tenants: Box<[AtomicU32]>,
}

impl Default for InFlightCounts {
    fn default() -> Self {
        let tenants = (0..COUNTERS).map(|_| AtomicU32::new(0)).collect();
        Self { all: AtomicUsize::new(0), tenants }
    }
}

/// Counts one submission for as long as it is there.
pub struct InFlight {
    counts: Arc<InFlightCounts>,
    tenant: u16,
    is_too_many: bool,
}

impl InFlightCounts {
    pub fn total(&self) -> usize {
        self.all.load(Ordering::Acquire)
    }

    pub fn count_in(self: &Arc<Self>, principal: &Principal, limit: usize) -> InFlight {
        let tenant = Holder::tenant_counter(principal);
        let all = self.all.fetch_add(1, Ordering::AcqRel);
        let own = self.tenants[usize::from(tenant)].fetch_add(1, Ordering::AcqRel);
        let is_too_many = all >= limit && {
            let reserve = (limit * RESERVE_HUNDREDTHS / 100).max(1);
            let few = u32::try_from(reserve / RESERVE_SHARE).unwrap_or(u32::MAX).max(1);
            all >= limit + reserve || own >= few
        };
        InFlight { counts: self.clone(), tenant, is_too_many }
    }
}

impl InFlight {
    /// Whether there were as many as there may be when it came.
    pub fn is_too_many(&self) -> bool {
        self.is_too_many
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.counts.tenants[usize::from(self.tenant)].fetch_sub(1, Ordering::AcqRel);
        self.counts.all.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use orchestr8_contract::RoleSet;
    use orchestr8_contract::id::Tenant;

    use super::*;

    #[test]
    fn what_one_tenant_lets_pile_up_does_not_shut_out_another() {
        let counts = Arc::new(InFlightCounts::default());
        let of = |tenant: &str| Principal::new("x", Tenant::parse(tenant).unwrap(), RoleSet::NONE);
        let (rival, acme) = (of("rival"), of("acme"));
        let count = |principal: &Principal| counts.count_in(principal, 100);
        let mut held: Vec<InFlight> = (0..100).map(|_| count(&rival)).collect();
        assert!(held.iter().all(|one| !one.is_too_many()));
        assert!(count(&rival).is_too_many(), "the limit holds for one tenant");
        held.push(count(&acme));
        assert!(!held[100].is_too_many());
        assert!(count(&acme).is_too_many(), "the reserve is for tenants that have few");
        drop(held);
        assert_eq!(counts.total(), 0);
        assert!(!count(&rival).is_too_many());
    }
}
