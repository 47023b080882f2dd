//! The words of tenants in memory: what the search by words would read from the store's index, row by row. It is a cache that
//! follows the journal of changes; a tenant's is made when a query first needs it, and until it is there the store answers.

pub mod best;
mod follow;
pub mod index;
pub mod postings;
pub mod tables;
mod take;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use orchestr8_contract::Fault;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_blocking;

use crate::journal::progress::{Followed, Progress};
use crate::limits::{WORDS_IDLE_MS, WORDS_MB, WORDS_PASSAGES, WORDS_TENANTS};
use index::Index;

/// What an installation says about words in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Memory that they may take; 0: the store always answers.
    pub memory_bytes: usize,
    /// A tenant with fewer passages is answered from the store, which is about as fast.
    pub from_passages: i64,
}

impl Settings {
    pub fn of_mb(memory_mb: u64) -> Self {
        let bytes = memory_mb.saturating_mul(1024 * 1024);
        Self { memory_bytes: usize::try_from(bytes).unwrap_or(usize::MAX), from_passages: WORDS_PASSAGES }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::of_mb(WORDS_MB)
    }
}

/// The words of all tenants that are asked for.
pub struct Words {
    settings: Settings,
    tenants: Mutex<HashMap<String, Place>>,
    followed: Followed,
    /// Tells whoever follows that a tenant is wanted.
    wanted: watch::Sender<u64>,
    /// A search keeps a core busy; more at once would only make each of them slower.
    cores: Arc<Semaphore>,
}

#[derive(Clone)]
enum Place {
    Held(Arc<Kept>),
    /// It did not fit; it is tried again from then on.
    Refused {
        until_us: u64,
    },
}

/// What is held of a tenant.
pub struct Kept {
    index: RwLock<Index>,
    bytes: AtomicUsize,
    /// Its own, so that nothing that was let go of is ever taken for what came after it.
    progress: Progress,
    asked_us: AtomicU64,
}

/// What a tenant's tree says of itself.
#[derive(Debug, Clone, Copy)]
pub struct Tree {
    pub version: i64,
    pub chunks: i64,
    pub words: i64,
}

impl Words {
    pub fn new(settings: Settings) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            settings,
            tenants: Mutex::default(),
            followed: Followed::default(),
            wanted: watch::Sender::new(0),
            cores: Arc::new(Semaphore::new(cores)),
        }
    }

    /// Bytes that all of it takes.
    pub fn bytes(&self) -> usize {
        self.held().iter().map(|(_, kept)| kept.bytes.load(Ordering::Relaxed)).sum()
    }

    /// What is held of a tenant that is asked for; from now on it is wanted, if it is worth it and will fit.
    fn want(&self, tenant: &str, tree: Tree, now_us: u64) -> Option<Arc<Kept>> {
        let count = |number: i64| usize::try_from(number).unwrap_or(0);
        let bytes = Index::bytes_of(count(tree.chunks), count(tree.words));
        if tree.chunks < self.settings.from_passages || bytes > self.settings.memory_bytes {
            return None;
        }
        let mut tenants = self.tenants.lock();
        match tenants.get(tenant) {
            Some(Place::Held(kept)) => {
                kept.asked_us.store(now_us, Ordering::Relaxed);
                return Some(kept.clone());
            }
            Some(Place::Refused { until_us }) if *until_us > now_us => return None,
            Some(Place::Refused { .. }) | None => {}
        }
        if tenants.len() >= WORDS_TENANTS {
            tenants.retain(|_, place| match place {
                Place::Held(_) => true,
                Place::Refused { until_us } => *until_us > now_us,
            });
            if tenants.len() >= WORDS_TENANTS {
                return None;
            }
        }
        let kept = Arc::new(Kept::new(now_us));
        tenants.insert(tenant.to_owned(), Place::Held(kept.clone()));
        drop(tenants);
        self.wanted.send_modify(|times| *times = times.wrapping_add(1));
        Some(kept)
    }

    fn held(&self) -> Vec<(String, Arc<Kept>)> {
        let tenants = self.tenants.lock();
        let held = |(tenant, place): (&String, &Place)| match place {
            Place::Held(kept) => Some((tenant.clone(), kept.clone())),
            Place::Refused { .. } => None,
        };
        tenants.iter().filter_map(held).collect()
    }

    fn kept(&self, tenant: &str) -> Option<Arc<Kept>> {
        match self.tenants.lock().get(tenant) {
            Some(Place::Held(kept)) => Some(kept.clone()),
            Some(Place::Refused { .. }) | None => None,
        }
    }

    /// Lets go of a tenant; it is made anew when it is asked for again.
    pub fn let_go(&self, tenant: &str) {
        self.tenants.lock().remove(tenant);
    }

    /// Makes sure that all fits: whoever was not asked for in a while goes first, the longest first. Where there is none, the
    /// one that grew is refused, since two that took each other's place would be made anew all day. Says whether it is still
    /// held.
    fn make_room(&self, grown: &str, now_us: u64) -> bool {
        let idle_us = WORDS_IDLE_MS * 1_000;
        loop {
            let held = self.held();
            let bytes: usize = held.iter().map(|(_, kept)| kept.bytes.load(Ordering::Relaxed)).sum();
            if bytes <= self.settings.memory_bytes {
                return true;
            }
            let idle = held
                .iter()
                .map(|(tenant, kept)| (kept.asked_us.load(Ordering::Relaxed), tenant))
                .filter(|(asked_us, tenant)| *tenant != grown && asked_us + idle_us <= now_us);
            match idle.min() {
                Some((_, tenant)) => self.let_go(tenant),
                None => {
                    self.let_go(grown);
                    let refused = Place::Refused { until_us: now_us + idle_us };
                    self.tenants.lock().insert(grown.to_owned(), refused);
                    return false;
                }
            }
        }
    }

    /// Works where it may take its time.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let busy = self.cores.clone().acquire_owned().await;
        let done = spawn_blocking(move || {
            let _busy = busy;
            work()
        });
        done.await.map_err(|cause| Fault::internal("a search by words broke off").because(cause))?
    }
}

impl Kept {
    fn new(asked_us: u64) -> Self {
        Self {
            index: RwLock::default(),
            bytes: AtomicUsize::new(0),
            progress: Progress::default(),
            asked_us: AtomicU64::new(asked_us),
        }
    }

    /// Changes the index and counts what it takes. Only whoever follows does this, one step after another.
    fn change(&self, change: impl FnOnce(&mut Index)) {
        let mut index = self.index.write();
        change(&mut index);
        self.bytes.store(index.bytes(), Ordering::Relaxed);
    }
}
