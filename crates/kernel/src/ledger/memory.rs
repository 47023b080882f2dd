//! The part of the ledger in memory: what is in flight, and what ended lately.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::Slip;
use crate::fingerprint::Fingerprint;
use crate::outcome::Stored;

enum Entry {
    InFlight { action: String, fingerprint: Fingerprint, ended: watch::Sender<Option<Arc<Stored>>> },
    Ended { action: String, fingerprint: Fingerprint, stored: Arc<Stored>, expires_ms: i64 },
}

#[derive(Default)]
struct State {
    entries: HashMap<Slip, Entry>,
    /// Ended ones, oldest first: the order in which they are forgotten.
    order: VecDeque<Slip>,
}

pub struct Memory {
    state: Mutex<State>,
    remembered: usize,
}

pub enum Looked {
    Claimed,
    Conflict { slip: Slip, action: String },
    Done(Arc<Stored>),
    InFlight(watch::Receiver<Option<Arc<Stored>>>),
}

impl Memory {
    pub fn new(remembered: usize) -> Self {
        Self { state: Mutex::default(), remembered }
    }

    /// Claims all keys in one step, or none.
    pub fn claim(&self, slips: &[Slip], action: &str, fingerprint: &Fingerprint, now_ms: i64) -> Looked {
        let mut state = self.state.lock();
        for slip in slips {
            match state.entries.get(slip) {
                Some(Entry::InFlight { action: before, fingerprint: print, ended }) => {
                    return match print == fingerprint {
                        true => Looked::InFlight(ended.subscribe()),
                        false => Looked::Conflict { slip: slip.clone(), action: before.clone() },
                    };
                }
                Some(Entry::Ended { action: before, fingerprint: print, stored, expires_ms })
                    if *expires_ms > now_ms =>
                {
                    return match print == fingerprint {
                        true => Looked::Done(stored.clone()),
                        false => Looked::Conflict { slip: slip.clone(), action: before.clone() },
                    };
                }
                Some(Entry::Ended { .. }) | None => {}
            }
        }
        for slip in slips {
            let (action, fingerprint) = (action.to_owned(), fingerprint.clone());
            state.entries.insert(
                slip.clone(),
                Entry::InFlight { action, fingerprint, ended: watch::Sender::new(None) },
            );
        }
        Looked::Claimed
    }

    pub fn end(
        &self,
        slip: &Slip,
        action: &str,
        fingerprint: &Fingerprint,
        stored: Arc<Stored>,
        expires_ms: i64,
    ) {
        let mut state = self.state.lock();
        let ended = Entry::Ended {
            action: action.to_owned(),
            fingerprint: fingerprint.clone(),
            stored: stored.clone(),
            expires_ms,
        };
        if let Some(Entry::InFlight { ended, .. }) = state.entries.insert(slip.clone(), ended) {
            ended.send_replace(Some(stored));
        }
        state.order.push_back(slip.clone());
        while state.order.len() > self.remembered {
            let Some(oldest) = state.order.pop_front() else { break };
            if matches!(state.entries.get(&oldest), Some(Entry::Ended { .. })) {
                state.entries.remove(&oldest);
            }
        }
    }

    /// Puts what a run gave in the end in place of the outcome that it had.
    pub fn replace(&self, slip: &Slip, by: &Arc<Stored>) {
        if let Some(Entry::Ended { stored, .. }) = self.state.lock().entries.get_mut(slip)
            && stored.run == by.run
        {
            *stored = by.clone();
        }
    }

    /// Gives a key back. Those who joined see the sender gone.
    pub fn release(&self, slip: &Slip) {
        let mut state = self.state.lock();
        if matches!(state.entries.get(slip), Some(Entry::InFlight { .. })) {
            state.entries.remove(slip);
        }
    }

    pub fn ended(&self, slip: &Slip, now_ms: i64) -> Option<Arc<Stored>> {
        match self.state.lock().entries.get(slip) {
            Some(Entry::Ended { stored, expires_ms, .. }) if *expires_ms > now_ms => Some(stored.clone()),
            Some(Entry::Ended { .. } | Entry::InFlight { .. }) | None => None,
        }
    }
}
