//! The ledger remembers what was asked under a key and how it ended, so that a repeat is answered and never run again.
//!
//! What is in flight and what ended lately is in memory; everything that ended, and everything that began an effect
//! outside, is in the store. A claim is a guard: dropped unsettled, it gives the key back, unless its work may have happened.

mod cut_off;
mod late;
mod memory;
mod rows;

use std::sync::Arc;

use orchestr8_contract::id::{RunId, Tenant};
use orchestr8_contract::{Code, Fault};
use tokio::sync::watch;

use crate::action::{Effect, OnUnknown};
use crate::fingerprint::Fingerprint;
use crate::outcome::Stored;
use crate::ports::store::{Batch, Store};
use crate::submission::Identity;
pub use cut_off::CutOff;
pub use late::LateKeys;
use memory::{Looked, Memory};
pub use rows::Found;

/// So many ended outcomes are kept in memory; older ones are read from the store.
const REMEMBERED: usize = 10_000;

/// A key with everything that tells it from others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Slip {
    pub tenant: Tenant,
    pub scope: Arc<str>,
    pub key: Arc<str>,
}

/// What a claim is for.
pub struct Wish<'a> {
    pub tenant: &'a Tenant,
    pub identities: &'a [Identity],
    pub action: &'a str,
    pub fingerprint: Fingerprint,
    pub run: RunId,
    pub now_ms: i64,
}

/// What came of a claim.
pub enum Claimed {
    /// The key is ours: run, then settle.
    Mine(Claim),
    /// It ended before; this is how.
    Replay(Arc<Stored>),
    /// It is running; wait for the same end.
    Join(watch::Receiver<Option<Arc<Stored>>>),
}

pub struct Ledger {
    memory: Memory,
    store: Arc<dyn Store>,
}

/// The right to run under some keys.
pub struct Claim {
    ledger: Arc<Ledger>,
    slips: Vec<(Slip, u64)>,
    action: String,
    fingerprint: Fingerprint,
    run: RunId,
    /// Runs that were cut off while they held one of the keys.
    died: Vec<(Slip, String)>,
    /// Rows say "running" in the store, because the effect happens outside it.
    began: bool,
    settled: bool,
    /// Dropped with the claim, which tells work that outlived its answer.
    held: Option<watch::Sender<()>>,
}

impl Ledger {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { memory: Memory::new(REMEMBERED), store }
    }

    /// Claims every key of a wish, or tells why there is nothing to run.
    pub async fn claim(self: &Arc<Self>, wish: Wish<'_>) -> Result<Claimed, Fault> {
        let slips: Vec<(Slip, u64)> =
            wish.identities.iter().map(|identity| (slip(wish.tenant, identity), identity.ttl_ms)).collect();
        let keys: Vec<Slip> = slips.iter().map(|(slip, _)| slip.clone()).collect();
        match self.memory.claim(&keys, wish.action, &wish.fingerprint, wish.now_ms) {
            Looked::Conflict { slip, action } => return Err(conflict(&slip, wish.action, &action)),
            Looked::Done(stored) => return Ok(Claimed::Replay(stored)),
            Looked::InFlight(ended) => return Ok(Claimed::Join(ended)),
            Looked::Claimed => {}
        }
        let mut claim = Claim {
            ledger: self.clone(),
            slips,
            action: wish.action.to_owned(),
            fingerprint: wish.fingerprint.clone(),
            run: wish.run,
            died: Vec::new(),
            began: false,
            settled: false,
            held: None,
        };
        for slip in &keys {
            match rows::find(&*self.store, slip, wish.now_ms).await? {
                Found::Nothing => {}
                Found::Other { action, fingerprint, .. } if fingerprint != wish.fingerprint => {
                    return Err(conflict(slip, wish.action, &action));
                }
                Found::Other { outcome: Some(stored), .. } => {
                    claim.remember(&stored, wish.now_ms);
                    return Ok(Claimed::Replay(stored));
                }
                Found::Other { outcome: None, run, .. } => claim.died.push((slip.clone(), run)),
            }
        }
        Ok(Claimed::Mine(claim))
    }

    /// How an earlier submission ended, if it is remembered.
    pub async fn look_up(
        &self,
        tenant: &Tenant,
        identity: &Identity,
        now_ms: i64,
    ) -> Result<Option<Arc<Stored>>, Fault> {
        let slip = slip(tenant, identity);
        if let Some(stored) = self.memory.ended(&slip, now_ms) {
            return Ok(Some(stored));
        }
        match rows::find(&*self.store, &slip, now_ms).await? {
            Found::Other { outcome, .. } => Ok(outcome),
            Found::Nothing => Ok(None),
        }
    }
}

fn slip(tenant: &Tenant, identity: &Identity) -> Slip {
    Slip { tenant: tenant.clone(), scope: identity.scope.0.clone(), key: identity.key.as_str().into() }
}

fn conflict(slip: &Slip, now: &str, before: &str) -> Fault {
    let used = match now == before {
        true => format!("the key '{}' was used before for '{before}' with other arguments", slip.key),
        false => format!("the key '{}' was used before for '{before}' and is now used for '{now}'", slip.key),
    };
    Fault::new(Code::KeyConflict, used)
        .with("key", &*slip.key)
        .with("scope", &*slip.scope)
        .with("previousAction", before)
        .with("reason", "idempotency_key_conflict")
}

impl Claim {
    /// What to commit before an effect outside the store, so that a crash in the middle is noticed: empty where none is
    /// needed. An error when an earlier run was cut off and its effect must not happen twice.
    pub fn beginning(&self, effect: Effect, now_ms: i64) -> Result<Batch, Fault> {
        let mut batch = Batch::new();
        if let (Effect::Outside(OnUnknown::Fail), Some((_, run))) = (effect, self.died.first()) {
            return Err(Fault::new(
                Code::OutcomeUnknown,
                "an earlier run under this key was cut off in the middle; whether its effect happened is not known",
            )
            .with("reason", "outcome_unknown")
            .with("runId", run.clone()));
        }
        if self.died.is_empty() && !matches!(effect, Effect::Outside(_)) {
            return Ok(batch);
        }
        for (slip, ttl_ms) in &self.slips {
            let dead = self.died.iter().find(|(died, _)| died == slip).map(|(_, run)| run.as_str());
            batch.then_one(rows::begin(slip, self, *ttl_ms, dead, now_ms));
        }
        Ok(batch)
    }

    /// The commit of `beginning` is durable.
    pub fn begun(&mut self) {
        self.began = true;
    }

    /// How many of the first steps of `settling` belong to the ledger.
    pub fn width(&self) -> usize {
        self.slips.len()
    }

    /// Gives the keys back: nothing ran under them. In the store first, so that no repeat takes this for a crash.
    pub async fn give_back(mut self) {
        if self.began {
            let commit = self.ledger.store.commit(self.releasing());
            let _ = commit.await;
            self.began = false;
        }
    }

    fn releasing(&self) -> Batch {
        let mut batch = Batch::new();
        for (slip, _) in &self.slips {
            batch.then(rows::release(slip, self.run));
        }
        batch
    }

    /// What to commit so that this outcome is the one every repeat gets.
    pub fn settling(&self, stored: &Stored, now_ms: i64) -> Result<Batch, Fault> {
        let outcome = serde_json::to_string(stored)
            .map_err(|error| Fault::internal("the outcome cannot be stored").because(error))?;
        let mut batch = Batch::new();
        for (slip, ttl_ms) in &self.slips {
            batch.then_one(rows::settle(slip, self, *ttl_ms, &outcome, now_ms));
        }
        Ok(batch)
    }

    /// The commit of the outcome is durable: answer everybody who waits, and remember.
    pub fn settled(mut self, stored: Arc<Stored>, now_ms: i64) {
        self.remember(&stored, now_ms);
    }

    fn remember(&mut self, stored: &Arc<Stored>, now_ms: i64) {
        self.settled = true;
        for (slip, ttl_ms) in &self.slips {
            let expires_ms = now_ms.saturating_add_unsigned(*ttl_ms);
            self.ledger.memory.end(slip, &self.action, &self.fingerprint, stored.clone(), expires_ms);
        }
    }
}

impl Drop for Claim {
    /// Forgets the claim in memory only. A row that says "running" stays: if nobody gave it back, the work may have
    /// happened, and a repeat must find that out.
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        for (slip, _) in &self.slips {
            self.ledger.memory.release(slip);
        }
    }
}

/// A store error as a caller may see it.
pub fn store_fault(error: crate::ports::store::Error) -> Fault {
    use crate::ports::store::Error;
    let code = match &error {
        Error::Conflict { .. } => Code::VersionMismatch,
        Error::Refused(_) => Code::Internal,
        Error::Full(_) | Error::Closed => Code::StoreFailed,
        Error::Corrupt(_) => Code::StoreCorrupt,
    };
    Fault::new(code, "the record could not be written").because(error)
}
