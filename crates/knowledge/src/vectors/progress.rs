//! How far the index has come with each tenant, for those who wait for it.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::sync::{MutexGuard, watch};

/// What the one who follows the changes has told. There is one entry for each tenant that has a tree.
pub struct Progress {
    reached: Mutex<HashMap<String, i64>>,
    told: watch::Sender<u64>,
    /// Held while a step is taken, so that no two are taken at once.
    step: tokio::sync::Mutex<()>,
    followed: Mutex<usize>,
}

impl Default for Progress {
    fn default() -> Self {
        let (reached, followed) = (Mutex::default(), Mutex::default());
        Self { reached, told: watch::Sender::new(0), step: tokio::sync::Mutex::default(), followed }
    }
}

/// Somebody follows the changes for as long as this is there.
pub struct Following<'a>(&'a Progress);

impl Drop for Following<'_> {
    fn drop(&mut self) {
        *self.0.followed.lock() -= 1;
    }
}

impl Progress {
    /// None while nothing is known yet.
    pub fn reached(&self, tenant: &str) -> Option<i64> {
        self.reached.lock().get(tenant).copied()
    }

    pub fn reach(&self, tenant: &str, position: i64) {
        self.reached.lock().insert(tenant.to_owned(), position);
        self.told.send_modify(|times| *times = times.wrapping_add(1));
    }

    /// What is known of a tenant does not hold any more.
    pub fn forget(&self, tenant: &str) {
        self.reached.lock().remove(tenant);
    }

    pub fn watch(&self) -> watch::Receiver<u64> {
        self.told.subscribe()
    }

    pub async fn step(&self) -> MutexGuard<'_, ()> {
        self.step.lock().await
    }

    pub fn follow(&self) -> Following<'_> {
        *self.followed.lock() += 1;
        Following(self)
    }

    pub fn is_followed(&self) -> bool {
        *self.followed.lock() > 0
    }
}
