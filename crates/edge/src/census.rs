//! Counts open connections, in all and per address. A seat is held as long as its socket is open.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) struct Census {
    limit: usize,
    limit_per_ip: Option<usize>,
    /// Bounded by `limit`: an address without connections has no entry.
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    total: usize,
    per_ip: HashMap<IpAddr, usize>,
}

/// Why there is no seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    Total,
    Address,
}

/// One place among the open connections; dropped, it is free again.
pub(crate) struct Seat {
    census: Arc<Census>,
    ip: IpAddr,
}

impl Census {
    pub fn new(limit: usize, limit_per_ip: Option<usize>) -> Self {
        Self { limit, limit_per_ip, open: Mutex::default() }
    }

    pub fn admit(self: &Arc<Self>, ip: IpAddr) -> Result<Seat, Full> {
        let ip = ip.to_canonical();
        let mut open = self.open();
        if open.total >= self.limit {
            return Err(Full::Total);
        }
        if let Some(limit) = self.limit_per_ip {
            let count = open.per_ip.entry(ip).or_default();
            if *count >= limit {
                return Err(Full::Address);
            }
            *count += 1;
        }
        open.total += 1;
        Ok(Seat { census: self.clone(), ip })
    }

    /// A panic elsewhere cannot leave the counts half changed, so a poisoned lock is still good.
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut open = self.census.open();
        open.total -= 1;
        if let Some(count) = open.per_ip.get_mut(&self.ip) {
            *count -= 1;
            if *count == 0 {
                open.per_ip.remove(&self.ip);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_bounded_in_all_and_per_address_and_come_back() {
        let census = Arc::new(Census::new(3, Some(2)));
        let (near, far): (IpAddr, IpAddr) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        let first = census.admit(near).unwrap();
        // The same address in its IPv6 dress counts as the same.
        let second = census.admit("::ffff:10.0.0.1".parse().unwrap()).unwrap();
        assert_eq!(census.admit(near).err(), Some(Full::Address));
        let third = census.admit(far).unwrap();
        assert_eq!(census.admit(far).err(), Some(Full::Total));
        drop(first);
        let again = census.admit(near).unwrap();
        drop((second, third, again));
        assert_eq!(census.open().total, 0);
        assert!(census.open().per_ip.is_empty());
    }
}
