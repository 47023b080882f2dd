//! One delivery of a trigger is decided and written at a time; and how many came within the minute.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, OwnedMutexGuard};

const MINUTE_MS: i64 = 60_000;

/// By tenant and id. There are as many as triggers that had a delivery since the process began.
#[derive(Default)]
pub struct TriggerLocks {
    entries: Mutex<HashMap<(String, String), Entry>>,
    generation: AtomicU64,
    changed: Notify,
}

#[derive(Default)]
struct Entry {
    lock: Arc<tokio::sync::Mutex<()>>,
    since_ms: i64,
    count: u32,
}

impl TriggerLocks {
    /// Waits for those before. Between what is read under the lock and what is written nothing else of this trigger happens.
    pub async fn lock(&self, tenant: &str, id: &str) -> OwnedMutexGuard<()> {
        let lock = self.entries.lock().entry(key(tenant, id)).or_default().lock.clone();
        lock.lock_owned().await
    }

    /// Counts one delivery. False: the limit of the minute is reached.
    pub fn count(&self, tenant: &str, id: &str, limit: u32, now_ms: i64) -> bool {
        let mut entries = self.entries.lock();
        let entry = entries.entry(key(tenant, id)).or_default();
        if entry.count == 0 || now_ms - entry.since_ms >= MINUTE_MS {
            (entry.since_ms, entry.count) = (now_ms, 0);
        }
        entry.count = entry.count.saturating_add(1);
        entry.count <= limit
    }

    pub fn forget(&self, tenant: &str, id: &str) {
        self.entries.lock().remove(&key(tenant, id));
    }

    /// A trigger was stored, paused, resumed or deleted.
    pub fn note_change(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.changed.notify_waiters();
    }

    /// Counts the changes of triggers.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Resolves at the next change after it was asked for.
    pub fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }
}

fn key(tenant: &str, id: &str) -> (String, String) {
    (tenant.to_owned(), id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_has_its_limit_and_the_next_begins_again() {
        let locks = TriggerLocks::default();
        let taken = |at_ms| locks.count("t", "a", 2, at_ms);
        assert!(taken(1000) && taken(1001) && !taken(60_999));
        assert!(locks.count("t", "b", 2, 1001), "another trigger has its own");
        assert!(taken(61_000));
    }
}
