//! Slots bound how much runs at once. A slot is held until the work returns, not until it is answered (MCP-TIMEOUT-4).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

#[derive(Debug)]
struct Pool {
    taken: AtomicUsize,
    max: usize,
    freed: Notify,
}

/// A bounded number of places to run.
#[derive(Debug, Clone)]
pub struct Slots(Arc<Pool>);

/// A place to run; dropped, it is free again.
#[derive(Debug)]
pub struct Slot(Arc<Pool>);

impl Slots {
    pub fn new(max: usize) -> Self {
        Self(Arc::new(Pool { taken: AtomicUsize::new(0), max, freed: Notify::new() }))
    }

    /// A slot, or None at once when all are taken.
    pub fn try_take(&self) -> Option<Slot> {
        let pool = &self.0;
        let claim = |taken: usize| (taken < pool.max).then_some(taken + 1);
        pool.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, claim).ok()?;
        Some(Slot(pool.clone()))
    }

    /// Waits for a slot.
    pub async fn take(&self) -> Slot {
        loop {
            let freed = self.0.freed.notified();
            tokio::pin!(freed);
            // Registered before looking, so that a slot freed in between wakes this waiter.
            freed.as_mut().enable();
            if let Some(slot) = self.try_take() {
                return slot;
            }
            freed.await;
        }
    }

    pub fn taken(&self) -> usize {
        self.0.taken.load(Ordering::Acquire)
    }

    pub fn max(&self) -> usize {
        self.0.max
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::AcqRel);
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_more_than_the_maximum() {
        let slots = Slots::new(2);
        let (one, _two) = (slots.try_take().unwrap(), slots.try_take().unwrap());
        assert!(slots.try_take().is_none());
        drop(one);
        assert_eq!(slots.taken(), 1);
        assert!(slots.try_take().is_some());
    }

    #[tokio::test]
    async fn a_waiter_gets_the_slot_that_is_given_back() {
        let slots = Slots::new(1);
        let held = slots.try_take().unwrap();
        let waiting = tokio::spawn({
            let slots = slots.clone();
            async move { slots.take().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(held);
        waiting.await.unwrap();
        assert_eq!(slots.taken(), 0);
    }
}
