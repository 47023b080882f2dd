//! The index in this process: every search looks at all vectors of its tenant that may be found, so filters cost no hit.

mod codes;
mod shelf;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::{Code, Fault};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::retrieval::dense::{Dense, Near, Point};
use shelf::Shelf;

/// Vectors of all tenants, in memory. Clones share them.
#[derive(Clone)]
pub struct Embedded(Arc<Shared>);

struct Shared {
    dimensions: usize,
    /// Passages that fit into the memory it may take.
    most: usize,
    held: AtomicUsize,
    tenants: Mutex<HashMap<String, Arc<Kept>>>,
    /// A search keeps a core busy; more at once would only make each of them slower.
    cores: Arc<Semaphore>,
}

struct Kept {
    shelf: RwLock<Shelf>,
    position: AtomicI64,
}

impl Embedded {
    pub fn new(dimensions: usize, memory_bytes: usize) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self(Arc::new(Shared {
            dimensions,
            most: memory_bytes / Shelf::bytes_each(dimensions),
            held: AtomicUsize::new(0),
            tenants: Mutex::default(),
            cores: Arc::new(Semaphore::new(cores)),
        }))
    }

    /// Passages that it holds.
    pub fn len(&self) -> usize {
        self.0.held.load(Ordering::Relaxed)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What it has of a tenant. One that never wrote anything leaves nothing behind.
    fn kept(&self, tenant: &str) -> Arc<Kept> {
        self.0.tenants.lock().get(tenant).cloned().unwrap_or_else(|| self.0.empty())
    }

    fn kept_from_now_on(&self, tenant: &str) -> Arc<Kept> {
        let mut tenants = self.0.tenants.lock();
        tenants.entry(tenant.to_owned()).or_insert_with(|| self.0.empty()).clone()
    }

    /// Works on the vectors of a tenant where it may take its time.
    fn work<T: Send + 'static>(
        &self,
        kept: Arc<Kept>,
        work: impl FnOnce(&Shared, &Kept) -> Result<T, Fault> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, Fault>> {
        let shared = self.0.clone();
        async move {
            let busy = shared.cores.clone().acquire_owned().await;
            let done = spawn_blocking(move || {
                let _busy = busy;
                work(&shared, &kept)
            });
            done.await.map_err(|cause| Fault::internal("a search by meaning broke off").because(cause))?
        }
        .boxed()
    }
}

impl Shared {
    fn empty(&self) -> Arc<Kept> {
        let shelf = RwLock::new(Shelf::new(self.dimensions));
        Arc::new(Kept { shelf, position: AtomicI64::new(0) })
    }

    /// Changes a shelf and counts what that did.
    fn change(&self, kept: &Kept, change: impl FnOnce(&mut Shelf)) {
        let mut shelf = kept.shelf.write();
        let before = shelf.len();
        change(&mut shelf);
        let after = shelf.len();
        self.held.fetch_add(after.saturating_sub(before), Ordering::Relaxed);
        self.held.fetch_sub(before.saturating_sub(after), Ordering::Relaxed);
    }
}

impl Dense for Embedded {
    fn upsert(&self, tenant: &str, points: Vec<Point>) -> BoxFuture<'static, Result<(), Fault>> {
        self.work(self.kept_from_now_on(tenant), move |shared, kept| {
            if shared.held.load(Ordering::Relaxed).saturating_add(points.len()) > shared.most {
                let message = format!("the vectors of more than {} passages do not fit into memory", shared.most);
                return Err(Fault::new(Code::ResourceExhausted, message).with(
                    "hint",
                    "raise knowledge.vectors.memoryMb, or let a server keep them: knowledge.vectors.engine = qdrant",
                ));
            }
            shared.change(kept, |shelf| {
                let documents: HashSet<&str> = points.iter().map(|point| point.document.as_str()).collect();
                documents.into_iter().for_each(|document| shelf.remove(document));
                for point in &points {
                    shelf.insert(&point.document, point.passage, &point.vector);
                }
            });
            Ok(())
        })
    }

    fn remove(&self, tenant: &str, documents: Vec<String>) -> BoxFuture<'static, Result<(), Fault>> {
        self.work(self.kept(tenant), move |shared, kept| {
            shared.change(kept, |shelf| documents.iter().for_each(|document| shelf.remove(document)));
            Ok(())
        })
    }

    fn search(&self, near: Near) -> BoxFuture<'static, Result<Vec<(i64, f64)>, Fault>> {
        self.work(self.kept(&near.tenant), move |_, kept| {
            Ok(kept.shelf.read().search(&near.vector, near.within.as_deref(), near.limit))
        })
    }

    fn at_hand(&self, tenant: &str, passages: Vec<i64>) -> BoxFuture<'static, Result<Vec<Point>, Fault>> {
        self.work(self.kept(tenant), move |_, kept| Ok(kept.shelf.read().points(&passages)))
    }

    fn position(&self, tenant: &str) -> BoxFuture<'static, Result<i64, Fault>> {
        let position = self.kept(tenant).position.load(Ordering::Acquire);
        async move { Ok(position) }.boxed()
    }

    fn reflect(&self, tenant: &str, position: i64) -> BoxFuture<'static, Result<(), Fault>> {
        self.kept_from_now_on(tenant).position.store(position, Ordering::Release);
        async { Ok(()) }.boxed()
    }

    fn clear(&self, tenant: &str) -> BoxFuture<'static, Result<(), Fault>> {
        self.work(self.kept(tenant), |shared, kept| {
            kept.position.store(0, Ordering::Release);
            shared.change(kept, |shelf| *shelf = Shelf::new(shared.dimensions));
            Ok(())
        })
    }

    fn passages(&self, tenant: &str) -> BoxFuture<'static, Result<Vec<i64>, Fault>> {
        self.work(self.kept(tenant), |_, kept| Ok(kept.shelf.read().numbers().to_vec()))
    }
}
