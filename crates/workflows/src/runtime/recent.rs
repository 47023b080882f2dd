//! What was needed lately and is cheap to keep: executions that have just ended, and who waits for an end.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use orchestr8_contract::id::Tenant;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::engine::state::State;
use crate::engine::view;
use crate::limits;

/// An execution that has ended.
pub struct Ended {
    pub tenant: Tenant,
    pub state: State,
    pub facts: view::Facts,
}

#[derive(Default)]
pub struct Recent {
    ended: Mutex<Kept>,
    /// Executions that have not ended, as far as this process began them or somebody waits for them.
    open: Mutex<HashMap<Arc<str>, Open>>,
    /// Definitions that are known to be stored.
    stored: Mutex<HashSet<(Tenant, Arc<str>)>>,
}

#[derive(Default)]
struct Kept {
    by_id: HashMap<Arc<str>, Arc<Ended>>,
    order: VecDeque<Arc<str>>,
}

struct Open {
    tenant: Tenant,
    /// Dropped at the end, which wakes whoever waits.
    end: watch::Sender<()>,
}

impl Recent {
    /// An execution is under way.
    pub fn open(&self, id: &Arc<str>, tenant: &Tenant) {
        let fresh = || Open { tenant: tenant.clone(), end: watch::Sender::new(()) };
        self.open.lock().entry(id.clone()).or_insert_with(fresh);
    }

    /// Wakes at the end of an execution that is known to be under way.
    pub fn end_of(&self, tenant: &str, id: &str) -> Option<watch::Receiver<()>> {
        let open = self.open.lock();
        open.get(id).filter(|open| open.tenant.as_str() == tenant).map(|open| open.end.subscribe())
    }

    /// Nobody needs to be told of its end any more, unless somebody waits.
    pub fn close_if_unheard(&self, id: &str) {
        let mut open = self.open.lock();
        if open.get(id).is_some_and(|open| open.end.receiver_count() == 0) {
            open.remove(id);
        }
    }

    /// It has ended: whoever waits finds it here.
    pub fn end(&self, id: &Arc<str>, ended: Ended) {
        // A large one would crowd out many small ones.
        const KEPT_BYTES: usize = 65_536;
        if ended.state.outputs_bytes + ended.state.workflow().bytes <= KEPT_BYTES {
            let mut kept = self.ended.lock();
            if kept.by_id.insert(id.clone(), Arc::new(ended)).is_none() {
                kept.order.push_back(id.clone());
            }
            if kept.order.len() > limits::RECENT
                && let Some(oldest) = kept.order.pop_front()
            {
                kept.by_id.remove(&oldest);
            }
        }
        self.open.lock().remove(id);
    }

    pub fn get(&self, tenant: &str, id: &str) -> Option<Arc<Ended>> {
        self.ended.lock().by_id.get(id).filter(|ended| ended.tenant.as_str() == tenant).cloned()
    }

    /// It goes on after all.
    pub fn forget(&self, id: &str) {
        self.ended.lock().by_id.remove(id);
    }

    /// Whether the definition may not be stored yet. Forgetting costs a statement that changes nothing.
    pub fn is_new_definition(&self, tenant: &Tenant, hash: &Arc<str>) -> bool {
        !self.stored.lock().contains(&(tenant.clone(), hash.clone()))
    }

    /// The definition is stored.
    pub fn definition_stored(&self, tenant: &Tenant, hash: &Arc<str>) {
        let mut stored = self.stored.lock();
        if stored.len() >= limits::DEFINITIONS_KEPT {
            stored.clear();
        }
        stored.insert((tenant.clone(), hash.clone()));
    }
}
