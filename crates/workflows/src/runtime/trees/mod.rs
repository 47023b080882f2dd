//! Limits of execution trees. A tree is a root execution with its children, their children, and so on.
//!
//! Each level below the root has so many places, and a child holds one from its start to its final state. An execution waits only
//! for places one level below its own, and the lowest level waits for none, so that a tree of any shape comes to its end. One limit
//! for all levels together could be used up by parents that wait for their children. See ADR 53.

pub mod tables;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::accept::Seed;
use super::fair_queue::{Waiters, WaitingLine};
use super::{Hub, fault};

/// The execution at the top of a tree: what a child waits under for its turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeRoot {
    pub num: i64,
    pub workflow: Arc<str>,
}

/// One level of one tree. Level 0 is the root itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TreeLevel {
    pub root: i64,
    pub level: usize,
}

/// The places of all trees with executions under way. Cheap to clone.
#[derive(Clone)]
pub struct TreeLimits(Arc<Shared>);

struct Shared {
    per_level: usize,
    per_tree: usize,
    trees: Mutex<Trees>,
    /// The places of children that have not ended, by number. One that only waits has no actor to hold it.
    held: Mutex<HashMap<i64, TreePlace>>,
    /// Entries of `Trees::throttled`, so that looking costs no lock.
    throttled: AtomicUsize,
}

#[derive(Default)]
struct Trees {
    trees: HashMap<i64, Tree>,
    /// Levels with children that wait because their tenant has as many executions as it may have.
    throttled: HashMap<Tenant, VecDeque<TreeLevel>>,
}

#[derive(Default)]
struct Tree {
    /// Executions that were ever started below the root, once that is known.
    started: Option<usize>,
    /// The root starts children, so the count is kept. Otherwise nothing of a tree without places in use stays in memory.
    is_root_active: bool,
    /// Only levels with places in use.
    levels: BTreeMap<usize, LevelPlaces>,
}

#[derive(Default)]
struct LevelPlaces {
    taken: usize,
    waiting: Waiters<TreePlace>,
}

/// The place of one child in its tree. Dropped, it goes to the next that waits for one at its level.
pub struct TreePlace {
    limits: TreeLimits,
    at: TreeLevel,
}

impl TreeLimits {
    pub fn new(per_level: usize, per_tree: usize) -> Self {
        Self(Arc::new(Shared {
            per_level: per_level.max(1),
            per_tree,
            trees: Mutex::default(),
            held: Mutex::default(),
            throttled: AtomicUsize::new(0),
        }))
    }

    /// A place at a level: at once, or later by the receiver. A tenant with as many executions as it may have gets the first place
    /// of a level, so that each of its trees goes on, and waits for any other.
    pub fn take(
        &self,
        at: TreeLevel,
        throttled: Option<&Tenant>,
    ) -> Result<TreePlace, oneshot::Receiver<TreePlace>> {
        let mut trees = self.0.trees.lock();
        let tree = trees.trees.entry(at.root).or_default();
        let level = tree.levels.entry(at.level).or_default();
        let limit = if throttled.is_some() { 1 } else { self.0.per_level };
        if level.taken < limit && level.waiting.is_empty() {
            level.taken += 1;
            drop(trees);
            return Ok(self.place(at));
        }
        let (sender, receiver) = oneshot::channel();
        level.waiting.push((), sender);
        if let Some(tenant) = throttled {
            trees.throttled.entry(tenant.clone()).or_default().push_back(at);
            self.0.throttled.fetch_add(1, Ordering::Relaxed);
        }
        Err(receiver)
    }

    /// An execution of this tenant is gone, so one child that waited for that may begin.
    pub fn admit_throttled(&self, tenant: &Tenant) {
        if self.0.throttled.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut admitted = None;
        let mut trees = self.0.trees.lock();
        while admitted.is_none()
            && let Some(at) = self.next_throttled(&mut trees, tenant)
        {
            let level = trees.trees.get_mut(&at.root).and_then(|tree| tree.levels.get_mut(&at.level));
            let Some(level) = level.filter(|level| level.taken < self.0.per_level) else { continue };
            if let Some(sender) = level.waiting.pop() {
                level.taken += 1;
                admitted = Some((at, sender));
            }
        }
        drop(trees);
        if let Some((at, sender)) = admitted {
            // If it has stopped waiting in this very moment, the place comes back and goes to the next one.
            let _ = sender.send(self.place(at));
        }
    }

    fn next_throttled(&self, trees: &mut Trees, tenant: &Tenant) -> Option<TreeLevel> {
        let levels = trees.throttled.get_mut(tenant)?;
        let next = levels.pop_front();
        if levels.is_empty() {
            trees.throttled.remove(tenant);
        }
        if next.is_some() {
            self.0.throttled.fetch_sub(1, Ordering::Relaxed);
        }
        next
    }

    fn place(&self, at: TreeLevel) -> TreePlace {
        TreePlace { limits: self.clone(), at }
    }

    /// Keeps the place of a child until it has ended.
    pub fn hold(&self, execution: i64, place: TreePlace) {
        let before = self.0.held.lock().insert(execution, place);
        drop(before);
    }

    /// Gives an execution that was in its tree before its place again, be there room or not.
    pub fn enter_again(&self, execution: i64, at: TreeLevel) {
        if at.level == 0 || self.0.held.lock().contains_key(&execution) {
            return;
        }
        self.0.trees.lock().trees.entry(at.root).or_default().levels.entry(at.level).or_default().taken += 1;
        self.hold(execution, self.place(at));
    }

    /// An execution has ended or only waits from now on. Of the end of a child its place is left, which others may wait for.
    pub fn leave(&self, execution: i64, at: TreeLevel, has_ended: bool) {
        let place = if has_ended { self.0.held.lock().remove(&execution) } else { None };
        drop(place);
        if at.level > 0 {
            return;
        }
        let mut trees = self.0.trees.lock();
        if let Some(tree) = trees.trees.get_mut(&at.root) {
            tree.is_root_active = false;
            if tree.levels.is_empty() {
                trees.trees.remove(&at.root);
            }
        }
    }

    fn release(&self, at: TreeLevel) {
        let mut trees = self.0.trees.lock();
        let Some(tree) = trees.trees.get_mut(&at.root) else { return };
        let Some(level) = tree.levels.get_mut(&at.level) else { return };
        // After a retry there may be more than there are places.
        let next = if level.taken <= self.0.per_level { level.waiting.pop() } else { None };
        if next.is_none() {
            level.taken -= 1;
            if level.taken == 0 {
                tree.levels.remove(&at.level);
            }
            if !tree.is_root_active && tree.levels.is_empty() {
                trees.trees.remove(&at.root);
            }
        }
        drop(trees);
        if let Some(sender) = next {
            // If it has stopped waiting in this very moment, the place that comes back is given on in the same way.
            let _ = sender.send(self.place(at));
        }
    }

    /// How many executions were started below a root, if that is known.
    fn started(&self, root: i64) -> Option<usize> {
        self.0.trees.lock().trees.get(&root).and_then(|tree| tree.started)
    }

    fn set_started(&self, root: i64, started: usize) -> usize {
        *self.0.trees.lock().trees.entry(root).or_default().started.get_or_insert(started)
    }

    /// The root starts children from now on, until it leaves.
    pub fn activate(&self, root: i64) {
        self.0.trees.lock().trees.entry(root).or_default().is_root_active = true;
    }

    /// One more execution was started below a root.
    pub fn count_started(&self, root: i64) {
        if let Some(Tree { started: Some(started), .. }) = self.0.trees.lock().trees.get_mut(&root) {
            *started += 1;
        }
    }
}

impl Drop for TreePlace {
    fn drop(&mut self) {
        self.limits.release(self.at);
    }
}

/// Fails if a tree has had as many executions as it may have.
pub async fn check_size(hub: &Hub, root: i64) -> Result<(), Fault> {
    let limits = &hub.0.trees;
    let started = match limits.started(root) {
        Some(started) => started,
        None => {
            let rows = hub.0.ports.store.query(tables::tree_size(root)).await.map_err(fault)?;
            let stored = rows.first().map_or(Ok(0), |row| row.int(0)).map_err(fault)?;
            limits.set_started(root, usize::try_from(stored).unwrap_or(usize::MAX))
        }
    };
    let limit = limits.0.per_tree;
    if started < limit {
        return Ok(());
    }
    let text = format!(
        "the execution has started {limit} others, with those that they started, and may start no more"
    );
    Err(Fault::new(Code::LimitExceeded, text).with("reason", "tree_size").with("limit", limit))
}

/// Takes up the places of children that had not ended when an earlier process did.
pub async fn restore(hub: &Hub) -> Result<(), Fault> {
    let rows = hub.0.ports.store.query(tables::live_children()).await.map_err(fault)?;
    for row in &rows {
        let number = |column| row.int(column).map_err(fault);
        let level = usize::try_from(number(2)?).unwrap_or(usize::MAX);
        hub.0.trees.enter_again(number(0)?, TreeLevel { root: number(1)?, level });
    }
    Ok(())
}

impl Seed {
    /// The root of its tree. Executions of earlier versions did not record theirs and count as roots.
    pub fn tree_root(&self) -> TreeRoot {
        let recorded = self.given.parent.as_ref().and_then(|parent| parent.root.clone());
        recorded.unwrap_or_else(|| TreeRoot { num: self.num, workflow: self.identity.workflow.id.clone() })
    }

    /// Where it is in its tree.
    pub fn tree_level(&self) -> TreeLevel {
        let recorded =
            self.given.parent.as_ref().and_then(|parent| Some((parent.root.as_ref()?.num, parent.depth)));
        let (root, level) = recorded.unwrap_or((self.num, 0));
        TreeLevel { root, level }
    }
}

#[cfg(test)]
mod tests;
