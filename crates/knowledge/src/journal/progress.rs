//! How far an index has come with each tenant, for those who wait for it.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::{Either, select};
use orchestr8_kernel::ports::clock::Clock;
use parking_lot::Mutex;
use tokio::sync::{MutexGuard, watch};

use crate::limits::CATCH_UP_CHANGES;

/// What the one who follows the changes has told. There is at most one entry for each tenant that has a tree.
pub struct Progress {
    reached: Mutex<HashMap<String, i64>>,
    told: watch::Sender<u64>,
    /// Held while a step is taken, so that no two are taken at once.
    step: tokio::sync::Mutex<()>,
    followed: Followed,
}

/// How many follow the changes.
#[derive(Default)]
pub struct Followed(Mutex<usize>);

impl Default for Progress {
    fn default() -> Self {
        let (reached, followed) = (Mutex::default(), Followed::default());
        Self { reached, told: watch::Sender::new(0), step: tokio::sync::Mutex::default(), followed }
    }
}

/// Somebody follows the changes for as long as this is there.
pub struct Following<'a>(&'a Followed);

impl Drop for Following<'_> {
    fn drop(&mut self) {
        *self.0.0.lock() -= 1;
    }
}

impl Followed {
    pub fn follow(&self) -> Following<'_> {
        *self.0.lock() += 1;
        Following(self)
    }

    pub fn is_followed(&self) -> bool {
        *self.0.lock() > 0
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

    /// Waits so long until a version of a tenant's tree is reached, and says whether it is. With much to do the wait would be
    /// in vain.
    pub async fn comes_to(&self, tenant: &str, version: i64, clock: &dyn Clock, wait: Duration) -> bool {
        let mut told = self.told.subscribe();
        let reached = || self.reached(tenant).unwrap_or(0);
        if reached() >= version {
            return true;
        }
        if version - reached() > CATCH_UP_CHANGES {
            return false;
        }
        let work = Box::pin(async {
            while reached() < version {
                if told.changed().await.is_err() {
                    return false;
                }
            }
            true
        });
        match select(work, clock.sleep(wait)).await {
            Either::Left((caught_up, _)) => caught_up,
            Either::Right(_) => false,
        }
    }

    pub async fn step(&self) -> MutexGuard<'_, ()> {
        self.step.lock().await
    }

    pub fn followed(&self) -> &Followed {
        &self.followed
    }
}
