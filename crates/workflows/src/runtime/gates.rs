//! Limits by key: executions with the same key run so many at once, or start so many in a while.
//!
//! A place is held from the start that was accepted to the final state, and a start counts once: both are recorded with the start,
//! so that a restart changes neither.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use orchestr8_contract::Fault;
use orchestr8_kernel::ports::store::Statement;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use super::accept::Seed;
use super::{Hub, fault, tables};
use crate::engine::scope::Frame;
use crate::engine::state::State;
use crate::expression::{Fuel, Template};

/// What a seed that waited does when its turn comes.
pub type Open = Arc<dyn Fn(Seed) + Send + Sync>;

#[derive(Default, Clone)]
pub struct Gates(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Only keys that an execution holds or waits for, or that started one within their window.
    keys: Mutex<HashMap<String, Gate>>,
    /// The places of executions that have begun and not ended, by number. One that only waits has no actor to hold it.
    held: Mutex<HashMap<i64, Arc<Pass>>>,
    /// Wakes those that wait for their window when a start that counted did not come about.
    given_back: Arc<Notify>,
    open: OnceLock<Open>,
}

#[derive(Default)]
struct Gate {
    inside: usize,
    waiting: VecDeque<Seed>,
    /// Until when each start with this key counts, the earliest first.
    starts: VecDeque<i64>,
}

/// The place of one execution. Dropped, it lets the next one in; a start that did not come about does not count.
pub struct Pass {
    gates: Gates,
    /// The key within which executions run at once.
    concurrency: Option<String>,
    /// The key within which starts are counted, and until when this one counts.
    start: Option<(String, i64)>,
    has_begun: AtomicBool,
}

pub enum Entry {
    /// It may go on; with a pass where it has a key.
    Open(Option<Arc<Pass>>),
    /// Not now; after so long, or when another one leaves.
    Shut { wait_ms: Option<u64> },
}

/// Keys whose windows are looked at when the map has grown; most are over by then.
const SWEPT_FROM: usize = 4096;

impl Gates {
    pub fn on_open(&self, open: Open) {
        // A second one would be a mistake of ours, and the first one serves.
        let _ = self.0.open.set(open);
    }

    /// Wakes when a start that counted until now does not count any more. It hears what happens after it was asked for.
    pub fn given_back(&self) -> OwnedNotified {
        self.0.given_back.clone().notified_owned()
    }

    /// Lets an execution in if its keys allow it. A fresh one does not pass those that wait.
    pub fn try_enter(&self, seed: &Seed, fresh: bool, now_ms: i64) -> Result<Entry, Fault> {
        let policies = &seed.identity.workflow.policies;
        if policies.concurrency.is_none() && policies.rate.is_none() {
            return Ok(Entry::Open(None));
        }
        let rate = match policies.rate.as_ref().filter(|_| !seed.is_retried) {
            Some(rate) => Some((key(seed, 'r', &rate.key)?, rate.limit, rate.per_ms)),
            None => None,
        };
        let limit = match &policies.concurrency {
            Some(limit) => Some((key(seed, 'c', &limit.key)?, limit.limit)),
            None => None,
        };
        let mut keys = self.0.keys.lock();
        if keys.len() >= SWEPT_FROM {
            keys.retain(|_, gate| gate.is_needed(now_ms));
        }
        if let Some((key, limit, _)) = &rate {
            let gate = keys.entry(key.clone()).or_default();
            while gate.starts.front().is_some_and(|until_ms| *until_ms <= now_ms) {
                gate.starts.pop_front();
            }
            if gate.starts.len() >= usize::try_from(*limit).unwrap_or(usize::MAX) {
                let until_ms = gate.starts.front().copied().unwrap_or(now_ms);
                return Ok(Entry::Shut { wait_ms: Some(u64::try_from(until_ms - now_ms).unwrap_or(1)) });
            }
        }
        if let Some((key, limit)) = &limit {
            let gate = keys.entry(key.clone()).or_default();
            if gate.inside >= *limit || (fresh && !gate.waiting.is_empty()) {
                return Ok(Entry::Shut { wait_ms: None });
            }
            gate.inside += 1;
        }
        let start = rate.map(|(key, _, per_ms)| {
            let until_ms = now_ms.saturating_add(i64::try_from(per_ms).unwrap_or(i64::MAX));
            keys.entry(key.clone()).or_default().count(until_ms);
            (key, until_ms)
        });
        Ok(Entry::Open(Some(self.pass(limit.map(|(key, _)| key), start, false))))
    }

    fn pass(&self, concurrency: Option<String>, start: Option<(String, i64)>, has_begun: bool) -> Arc<Pass> {
        Arc::new(Pass { gates: self.clone(), concurrency, start, has_begun: AtomicBool::new(has_begun) })
    }

    /// Lets in an execution that was inside before, be there room or not.
    pub fn enter_again(&self, seed: &Seed) -> Option<Arc<Pass>> {
        let limit = seed.identity.workflow.policies.concurrency.as_ref()?;
        let key = key(seed, 'c', &limit.key).ok()?;
        Some(self.enter_recorded(key))
    }

    fn enter_recorded(&self, key: String) -> Arc<Pass> {
        self.0.keys.lock().entry(key.clone()).or_default().inside += 1;
        self.pass(Some(key), None, true)
    }

    /// Keeps the place of an execution that has begun until it has ended.
    pub fn hold(&self, execution: i64, pass: Option<Arc<Pass>>) {
        if let Some(pass) = pass.filter(|pass| pass.concurrency.is_some()) {
            let before = self.0.held.lock().insert(execution, pass);
            drop(before);
        }
    }

    pub fn holds(&self, execution: i64) -> bool {
        self.0.held.lock().contains_key(&execution)
    }

    /// The execution has ended.
    pub fn release(&self, execution: i64) {
        let pass = self.0.held.lock().remove(&execution);
        drop(pass);
    }

    /// Takes up what earlier processes recorded: key, execution, and until when a start counts, the earliest first.
    fn restore(&self, recorded: impl IntoIterator<Item = (String, i64, Option<i64>)>) {
        for (key, execution, until_ms) in recorded {
            match until_ms {
                Some(until_ms) => self.0.keys.lock().entry(key).or_default().count(until_ms),
                None => self.hold(execution, Some(self.enter_recorded(key))),
            }
        }
    }

    /// Waits until another execution with its key ends.
    pub fn wait(&self, seed: Seed) {
        let limit = seed.identity.workflow.policies.concurrency.as_ref();
        let Some((Ok(key), limit)) = limit.map(|limit| (key(&seed, 'c', &limit.key), limit.limit)) else {
            return;
        };
        let mut keys = self.0.keys.lock();
        let gate = keys.entry(key).or_default();
        gate.waiting.push_back(seed);
        // One of those inside may have left since this one was turned away.
        let next = if gate.inside < limit { gate.waiting.pop_front() } else { None };
        drop(keys);
        self.let_in(next);
    }

    fn let_in(&self, seed: Option<Seed>) {
        if let (Some(seed), Some(open)) = (seed, self.0.open.get()) {
            open(seed);
        }
    }
}

impl Gate {
    fn is_needed(&self, now_ms: i64) -> bool {
        let counts = |until_ms: &i64| *until_ms > now_ms;
        self.inside > 0 || !self.waiting.is_empty() || self.starts.back().is_some_and(counts)
    }

    fn count(&mut self, until_ms: i64) {
        let at = self.starts.partition_point(|one| *one <= until_ms);
        self.starts.insert(at, until_ms);
    }
}

impl Pass {
    /// The execution begins: what records its place and its start, in the commit of its beginning.
    pub fn begin(&self, execution: i64, now_ms: i64) -> Vec<Statement> {
        self.has_begun.store(true, Ordering::Release);
        let mut statements = Vec::new();
        if let Some((key, until_ms)) = &self.start {
            statements.push(tables::limits_expire(now_ms));
            statements.push(tables::limit_record(key, execution, Some(*until_ms)));
        }
        statements.extend(self.concurrency.iter().map(|key| tables::limit_record(key, execution, None)));
        statements
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut keys = self.gates.0.keys.lock();
        if let Some((key, until_ms)) = self.start.as_ref().filter(|_| !self.has_begun.load(Ordering::Acquire))
            && let Some(gate) = keys.get_mut(key)
            && let Some(at) = gate.starts.iter().position(|one| one == until_ms)
        {
            gate.starts.remove(at);
            self.gates.0.given_back.notify_waiters();
        }
        let Some(key) = &self.concurrency else { return };
        let Some(gate) = keys.get_mut(key) else { return };
        gate.inside -= 1;
        let next = gate.waiting.pop_front();
        if gate.inside == 0 && gate.waiting.is_empty() && next.is_none() {
            keys.remove(key);
        }
        drop(keys);
        self.gates.let_in(next);
    }
}

/// Takes up the places and starts that were recorded.
pub async fn restore(shared: &super::Shared) -> Result<(), Fault> {
    let rows = shared.ports.store.query(tables::limits_recorded(shared.now_ms())).await.map_err(fault)?;
    let mut recorded = Vec::with_capacity(rows.len());
    for row in &rows {
        let key = row.text(0).map_err(fault)?.to_owned();
        recorded.push((key, row.int(1).map_err(fault)?, row.int(2).ok()));
    }
    shared.gates.restore(recorded);
    Ok(())
}

impl Hub {
    /// Whether an execution that is retried has its place at once.
    pub(crate) fn has_place(&self, seed: &Seed) -> bool {
        let Some(limit) = &seed.identity.workflow.policies.concurrency else { return true };
        let Ok(key) = key(seed, 'c', &limit.key) else { return true };
        let keys = self.0.gates.0.keys.lock();
        keys.get(&key).is_none_or(|gate| gate.inside < limit.limit && gate.waiting.is_empty())
    }
}

/// The key of an execution: within its tenant and its workflow.
fn key(seed: &Seed, kind: char, template: &Template) -> Result<String, Fault> {
    let state = State::new(seed.identity.clone());
    let value = template.resolve(&Frame::of(&state), &mut Fuel::inline())?;
    let text = match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    Ok(format!("{kind}:{}:{}:{text}", seed.tenant, seed.identity.workflow.id))
}
