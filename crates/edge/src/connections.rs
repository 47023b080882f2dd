//! The table of open connections: limits in all and per address, eviction of connections that ask for nothing, and a reserve
//! for health probes.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::signal::{ConnectionSignal, Stage};

/// Connections beyond the limits that are answered only if they ask for a health probe: an orchestrator must not kill a server
/// for being busy. Enough that a flood does not push a probe out while its request is under way.
pub(crate) const PROBE_SLOTS: usize = 16;

pub(crate) struct ConnectionTable {
    limit: usize,
    limit_per_address: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    next_id: u64,
    /// In the order in which they came; bounded by the limit and the reserve.
    all: BTreeMap<u64, Entry>,
    /// Without those of the reserve. An address without connections has no entry.
    per_address: HashMap<IpAddr, usize>,
    reserved: usize,
}

struct Entry {
    address: IpAddr,
    reserved: bool,
    signal: Arc<ConnectionSignal>,
}

/// Which limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    Total,
    Address,
}

/// What becomes of a new connection.
pub(crate) enum Admission {
    Open(ConnectionSlot),
    /// Only a health probe is answered.
    ProbesOnly(ConnectionSlot, Full),
    Refused(Full),
}

/// One open connection; dropped, its place is free again.
pub(crate) struct ConnectionSlot {
    table: Arc<ConnectionTable>,
    id: u64,
    pub signal: Arc<ConnectionSignal>,
}

impl ConnectionTable {
    pub fn new(limit: usize, limit_per_address: usize) -> Self {
        Self { limit, limit_per_address, open: Mutex::default() }
    }

    /// Makes room if need be: first among connections that never sent a whole request, then among idle ones, the oldest first.
    /// An address beyond its own limit makes room among its own connections only.
    pub fn admit(self: &Arc<Self>, address: IpAddr) -> Admission {
        let address = address.to_canonical();
        let mut open = self.open();
        let of_address = open.per_address.get(&address).copied().unwrap_or_default();
        let full = if of_address >= self.limit_per_address {
            (!open.evict(|entry| !entry.reserved && entry.address == address)).then_some(Full::Address)
        } else if open.all.len() - open.reserved >= self.limit {
            (!open.evict(|entry| !entry.reserved)).then_some(Full::Total)
        } else {
            None
        };
        let Some(full) = full else { return Admission::Open(self.slot(&mut open, address, false)) };
        let has_room = open.reserved < PROBE_SLOTS || open.evict(|entry| entry.reserved);
        match has_room {
            true => Admission::ProbesOnly(self.slot(&mut open, address, true), full),
            false => Admission::Refused(full),
        }
    }

    /// Closes the connections whose token is no longer valid: streams at once, requests that wait at the second sweep.
    pub fn close_revoked(&self, is_sweep: bool) {
        self.open().all.values().for_each(|entry| entry.signal.close_revoked(is_sweep));
    }

    fn slot(self: &Arc<Self>, open: &mut Open, address: IpAddr, reserved: bool) -> ConnectionSlot {
        let (id, signal) = (open.next_id, Arc::new(ConnectionSignal::new(address)));
        open.next_id += 1;
        open.all.insert(id, Entry { address, reserved, signal: signal.clone() });
        match reserved {
            true => open.reserved += 1,
            false => *open.per_address.entry(address).or_default() += 1,
        }
        ConnectionSlot { table: self.clone(), id, signal }
    }

    /// A panic elsewhere cannot leave the counts half changed, so a poisoned lock is still good.
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Closes one connection that asks for nothing at the moment. False if there is none.
    fn evict(&mut self, may_go: impl Fn(&Entry) -> bool) -> bool {
        let oldest = |stage: Stage| {
            let mut candidates = self.all.iter().filter(|(_, entry)| may_go(entry));
            candidates.find(|(_, entry)| entry.signal.stage() == stage).map(|(id, _)| *id)
        };
        let Some(id) = oldest(Stage::Receiving).or_else(|| oldest(Stage::Idle)) else { return false };
        if let Some(entry) = self.remove(id) {
            entry.signal.close();
        }
        true
    }

    fn remove(&mut self, id: u64) -> Option<Entry> {
        let entry = self.all.remove(&id)?;
        if entry.reserved {
            self.reserved -= 1;
        } else if let Some(count) = self.per_address.get_mut(&entry.address) {
            *count -= 1;
            if *count == 0 {
                self.per_address.remove(&entry.address);
            }
        }
        Some(entry)
    }
}

impl Drop for ConnectionSlot {
    /// An evicted connection has lost its place already.
    fn drop(&mut self) {
        self.table.open().remove(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEAR: &str = "10.0.0.1";
    const FAR: &str = "10.0.0.2";

    fn admit(table: &Arc<ConnectionTable>, address: &str) -> Admission {
        table.admit(address.parse().unwrap())
    }

    /// A connection whose request is being answered.
    fn busy(table: &Arc<ConnectionTable>, address: &str) -> ConnectionSlot {
        match admit(table, address) {
            Admission::Open(slot) => {
                slot.signal.complete();
                slot
            }
            Admission::ProbesOnly(_, full) | Admission::Refused(full) => panic!("{full:?}"),
        }
    }

    #[test]
    fn connections_at_work_are_bounded_in_all_and_per_address_and_their_places_come_back() {
        let table = Arc::new(ConnectionTable::new(3, 2));
        let first = busy(&table, NEAR);
        // The same address in its IPv6 dress counts as the same.
        let second = busy(&table, "::ffff:10.0.0.1");
        assert!(matches!(admit(&table, NEAR), Admission::ProbesOnly(_, Full::Address)));
        let third = busy(&table, FAR);
        assert!(matches!(admit(&table, FAR), Admission::ProbesOnly(_, Full::Total)));
        drop(first);
        let again = busy(&table, NEAR);
        drop((second, third, again));
        assert!(table.open().all.is_empty() && table.open().per_address.is_empty());
        assert_eq!(table.open().reserved, 0);
    }

    #[test]
    fn whoever_asks_for_nothing_makes_room_the_oldest_incomplete_one_first() {
        let table = Arc::new(ConnectionTable::new(3, 3));
        let idle = busy(&table, NEAR);
        idle.signal.idle();
        let Admission::Open(silent) = admit(&table, NEAR) else { panic!() };
        let working = busy(&table, FAR);
        let newest = busy(&table, FAR);
        assert!(silent.signal.is_closing() && !idle.signal.is_closing());
        let last = busy(&table, FAR);
        assert!(idle.signal.is_closing() && !working.signal.is_closing());
        assert!(matches!(admit(&table, NEAR), Admission::ProbesOnly(_, Full::Total)));
        // The places of those that were closed are not given back twice.
        drop((silent, idle));
        assert!(matches!(admit(&table, NEAR), Admission::ProbesOnly(_, Full::Total)));
        drop((working, newest, last));
        assert!(table.open().all.is_empty());
    }

    #[test]
    fn an_address_beyond_its_limit_costs_no_other_address_anything() {
        let table = Arc::new(ConnectionTable::new(10, 1));
        let Admission::Open(other) = admit(&table, FAR) else { panic!() };
        let own = busy(&table, NEAR);
        assert!(matches!(admit(&table, NEAR), Admission::ProbesOnly(_, Full::Address)));
        assert!(!other.signal.is_closing());
        own.signal.idle();
        assert!(matches!(admit(&table, NEAR), Admission::Open(_)));
        assert!(own.signal.is_closing() && !other.signal.is_closing());
    }

    #[test]
    fn the_reserve_is_bounded_and_a_flood_replaces_only_what_never_asked() {
        let table = Arc::new(ConnectionTable::new(1, 1));
        let _busy = busy(&table, NEAR);
        let reserve = || match admit(&table, FAR) {
            Admission::ProbesOnly(slot, Full::Total) => slot,
            Admission::Open(_) | Admission::ProbesOnly(..) | Admission::Refused(_) => panic!(),
        };
        let mut slots: Vec<ConnectionSlot> = (0..PROBE_SLOTS).map(|_| reserve()).collect();
        slots[0].signal.complete();
        slots.push(reserve());
        assert!(slots[1].signal.is_closing() && !slots[0].signal.is_closing());
        slots.iter().for_each(|slot| slot.signal.complete());
        assert!(matches!(admit(&table, FAR), Admission::Refused(Full::Total)));
    }
}
