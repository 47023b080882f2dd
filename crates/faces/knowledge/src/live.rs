//! The calls that go on in this process, to be looked at and stopped.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::{Cancel, Why};
use parking_lot::Mutex;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::calls::State;
use crate::face::Face;
use crate::failure::Failure;

/// Whose call, and its id.
pub(crate) type Place = (Tenant, String);

/// As many as there are calls under way. Those under one id are repeats of each other, or reads that do not mind each other.
#[derive(Default)]
pub(crate) struct Calls {
    live: Mutex<HashMap<Place, Vec<Live>>>,
    queue: RwLock<()>,
}

/// What a call is seen and stopped by. Clones are the same call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Live {
    pub cancel: Cancel,
    started: Arc<AtomicBool>,
}

impl Live {
    pub fn start(&self) {
        self.started.store(true, Ordering::Release);
    }

    /// Nothing is begun that nobody wants any more.
    pub fn check(&self) -> Result<(), Failure> {
        if self.cancel.is_fired() { Err(not_begun()) } else { Ok(()) }
    }
}

/// What is said of a call that was cancelled in time.
pub(crate) fn not_begun() -> Failure {
    Failure::of_action(Fault::new(Code::Cancelled, "it was cancelled before it began"))
}

/// Keeps a call among those that go on. It is there before the store says that the call goes on, and until the store says how it
/// ended: whoever reads the one and then looks here misses no call.
#[must_use = "it ends when it is dropped"]
pub(crate) struct Listed {
    face: Arc<Face>,
    place: Place,
    live: Live,
}

impl Listed {
    pub fn new(face: &Arc<Face>, place: Place, live: Live) -> Self {
        face.calls.live.lock().entry(place.clone()).or_default().push(live.clone());
        Self { face: face.clone(), place, live }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut live = self.face.calls.live.lock();
        if let Some(calls) = live.get_mut(&self.place) {
            // Only one: a call may be listed by whoever delivers it and by whoever runs it, and ends with the last of them.
            if let Some(at) = calls.iter().position(|call| Arc::ptr_eq(&call.started, &self.live.started)) {
                calls.swap_remove(at);
            }
            if calls.is_empty() {
                live.remove(&self.place);
            }
        }
    }
}

impl Calls {
    /// Where a call of this process has come to; none if it is not one, or has ended.
    pub fn look(&self, tenant: &Tenant, id: &str) -> Option<State> {
        let live = self.live.lock();
        let calls = live.get(&(tenant.clone(), id.to_owned()))?;
        let started = calls.iter().any(|call| call.started.load(Ordering::Acquire));
        Some(if started { State::Running } else { State::Acked })
    }

    /// Asks a call of this process to stop; whether there is one.
    pub fn cancel(&self, tenant: &Tenant, id: &str) -> bool {
        let live = self.live.lock();
        let Some(calls) = live.get(&(tenant.clone(), id.to_owned())) else { return false };
        for call in calls {
            call.cancel.fire(Why::Client);
        }
        true
    }

    /// For whoever begins what waited in a queue, until it is listed and has seen whether it was taken back.
    pub async fn begin(&self) -> RwLockReadGuard<'_, ()> {
        self.queue.read().await
    }

    /// For whoever takes back what waits in a queue, until that is on record: nothing is begun meanwhile.
    pub async fn take_back(&self) -> RwLockWriteGuard<'_, ()> {
        self.queue.write().await
    }
}
