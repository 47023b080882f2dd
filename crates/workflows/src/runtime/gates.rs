//! Limits by key: executions with the same key run so many at once, or start so many in a while.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

use orchestr8_contract::Fault;
use parking_lot::Mutex;
use serde_json::Value;

use super::accept::Seed;
use crate::engine::scope::Frame;
use crate::engine::state::State;
use crate::expression::Template;

/// What a seed that waited does when its turn comes.
pub type Open = Arc<dyn Fn(Seed) + Send + Sync>;

#[derive(Default, Clone)]
pub struct Gates(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Only keys that somebody holds or waits for, or that started something within their window.
    keys: Mutex<HashMap<String, Gate>>,
    open: OnceLock<Open>,
}

#[derive(Default)]
struct Gate {
    inside: usize,
    waiting: VecDeque<Seed>,
    /// When executions with this key started, the oldest first, and for how long that counts.
    starts: VecDeque<i64>,
    per_ms: i64,
}

/// One execution inside. Dropped, it lets the next one in.
pub struct Pass {
    key: String,
    gates: Gates,
}

pub enum Entry {
    /// It may go on; with a pass where its key is limited.
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

    /// Lets an execution in if its keys allow it. A fresh one does not pass those that wait.
    pub fn try_enter(&self, seed: &Seed, fresh: bool, now_ms: i64) -> Result<Entry, Fault> {
        let policies = &seed.identity.workflow.policies;
        if policies.concurrency.is_none() && policies.rate.is_none() {
            return Ok(Entry::Open(None));
        }
        let rate = match &policies.rate {
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
        if let Some((key, limit, per_ms)) = &rate {
            let per_ms = i64::try_from(*per_ms).unwrap_or(i64::MAX);
            let gate = keys.entry(key.clone()).or_default();
            gate.per_ms = per_ms;
            while gate.starts.front().is_some_and(|start| now_ms - start >= per_ms) {
                gate.starts.pop_front();
            }
            if gate.starts.len() >= usize::try_from(*limit).unwrap_or(usize::MAX) {
                let first = gate.starts.front().copied().unwrap_or(now_ms);
                return Ok(Entry::Shut {
                    wait_ms: Some(u64::try_from(first + per_ms - now_ms).unwrap_or(1)),
                });
            }
        }
        let mut pass = None;
        if let Some((key, limit)) = limit {
            let gate = keys.entry(key.clone()).or_default();
            if gate.inside >= limit || (fresh && !gate.waiting.is_empty()) {
                return Ok(Entry::Shut { wait_ms: None });
            }
            gate.inside += 1;
            pass = Some(Arc::new(Pass { key, gates: self.clone() }));
        }
        if let Some((key, ..)) = rate {
            keys.entry(key).or_default().starts.push_back(now_ms);
        }
        Ok(Entry::Open(pass))
    }

    /// Lets in an execution that was inside before, be there room or not.
    pub fn enter_again(&self, seed: &Seed) -> Option<Arc<Pass>> {
        let limit = seed.identity.workflow.policies.concurrency.as_ref()?;
        let key = key(seed, 'c', &limit.key).ok()?;
        self.0.keys.lock().entry(key.clone()).or_default().inside += 1;
        Some(Arc::new(Pass { key, gates: self.clone() }))
    }

    /// Waits until another execution with its key ends.
    pub fn wait(&self, seed: Seed) {
        let limit = seed.identity.workflow.policies.concurrency.as_ref();
        let Some(Ok(key)) = limit.map(|limit| key(&seed, 'c', &limit.key)) else { return };
        let mut keys = self.0.keys.lock();
        let gate = keys.entry(key).or_default();
        gate.waiting.push_back(seed);
        // The last one inside may have left since this one was turned away.
        let next = if gate.inside == 0 { gate.waiting.pop_front() } else { None };
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
        let counts = |start: &i64| now_ms - start < self.per_ms;
        self.inside > 0 || !self.waiting.is_empty() || self.starts.back().is_some_and(counts)
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut keys = self.gates.0.keys.lock();
        let Some(gate) = keys.get_mut(&self.key) else { return };
        gate.inside -= 1;
        let next = gate.waiting.pop_front();
        if gate.inside == 0 && gate.waiting.is_empty() && next.is_none() {
            keys.remove(&self.key);
        }
        drop(keys);
        self.gates.let_in(next);
    }
}

/// The key of an execution: within its tenant and its workflow.
fn key(seed: &Seed, kind: char, template: &Template) -> Result<String, Fault> {
    let state = State::new(seed.identity.clone());
    let value = template.resolve(&Frame::of(&state))?;
    let text = match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    Ok(format!("{kind}:{}:{}:{text}", seed.tenant, seed.identity.workflow.id))
}
