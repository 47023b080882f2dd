//! Versions count the changes of a thing, so that nobody overwrites what they have not seen (SES-10).
//!
//! The store has them; memory has those in use, so that a read need not ask the store. Whoever changes one holds its turn until
//! the change is durable: two commands on one session, in different lanes, get different numbers and leave no gap.

use std::collections::HashMap;
use std::sync::Arc;

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};
use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

use crate::action::Versioning;
use crate::ledger::store_fault;
use crate::ports::Store;
use crate::ports::store::Batch;
use crate::submission::Version;
use crate::tables;

/// So many versions are kept in memory; beyond it those nobody is changing are read from the store again.
const REMEMBERED: usize = 10_000;

type Subject = (Tenant, Arc<str>);

pub struct Versions {
    store: Arc<dyn Store>,
    known: Mutex<HashMap<Subject, Arc<Count>>>,
}

/// The version of one thing, as far as it has been asked for.
#[derive(Default)]
struct Count {
    /// None: not asked for yet, or gone; the store is asked.
    seen: Mutex<Option<u64>>,
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// The right to change one version, until it is dropped.
pub struct Turn {
    count: Arc<Count>,
    /// The version after the change; none: the thing is gone, or was never there.
    pub after: Option<u64>,
    _turn: OwnedMutexGuard<()>,
}

impl Versions {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, known: Mutex::default() }
    }

    /// The current version; an error when the thing is unknown, or not at the version the submitter has seen.
    pub async fn guard(&self, tenant: &Tenant, version: &Version) -> Result<Option<u64>, Fault> {
        let count = self.count(tenant, &version.subject);
        let found = self.current(&count, tenant, &version.subject).await?;
        match (version.expected, found) {
            (None, found) => Ok(found),
            (Some(expected), None) => Err(Fault::new(
                Code::NotFound,
                format!("'{}' is not there, and version {expected} of it was expected", version.subject),
            )
            .with("subject", &*version.subject)
            .with("expected", expected)),
            (Some(expected), Some(found)) if expected == found => Ok(Some(found)),
            (Some(expected), Some(found)) => Err(Fault::new(
                Code::VersionMismatch,
                format!("'{}' is at version {found}, and version {expected} was expected", version.subject),
            )
            .with("subject", &*version.subject)
            .with("expected", expected)
            .with("found", found)),
        }
    }

    /// Takes the turn to change a version and adds the change to a batch.
    pub async fn change(
        &self,
        tenant: &Tenant,
        subject: &Arc<str>,
        how: Versioning,
        batch: &mut Batch,
    ) -> Result<Turn, Fault> {
        let count = self.count(tenant, subject);
        let turn = count.turn.clone().lock_owned().await;
        let seen = self.current(&count, tenant, subject).await?;
        let after = match (how, seen) {
            (Versioning::None, seen) => seen,
            // It was there when the work began, and somebody removed it meanwhile: nothing of the work may stay.
            (Versioning::Bump, None) => {
                return Err(Fault::new(Code::NotFound, format!("'{subject}' is not there any more"))
                    .with("subject", &**subject));
            }
            (Versioning::Bump, Some(seen)) => {
                batch.then_one(tables::version_bump(tenant.as_str(), subject, seen));
                Some(seen + 1)
            }
            (Versioning::Create, _) => {
                batch.then_one(tables::version_create(tenant.as_str(), subject));
                Some(0)
            }
            (Versioning::Remove, _) => {
                batch.then(tables::version_remove(tenant.as_str(), subject));
                None
            }
        };
        Ok(Turn { count, after, _turn: turn })
    }

    fn count(&self, tenant: &Tenant, subject: &Arc<str>) -> Arc<Count> {
        let mut known = self.known.lock();
        if let Some(count) = known.get(&(tenant.clone(), subject.clone())) {
            return count.clone();
        }
        if known.len() >= REMEMBERED {
            known.retain(|_, count| Arc::strong_count(count) > 1);
        }
        known.entry((tenant.clone(), subject.clone())).or_default().clone()
    }

    async fn current(&self, count: &Count, tenant: &Tenant, subject: &str) -> Result<Option<u64>, Fault> {
        if let Some(version) = *count.seen.lock() {
            return Ok(Some(version));
        }
        let rows =
            self.store.query(tables::version_find(tenant.as_str(), subject)).await.map_err(store_fault)?;
        let found = match rows.first() {
            Some(row) => Some(u64::try_from(row.int(0).map_err(store_fault)?).unwrap_or(0)),
            None => None,
        };
        let mut seen = count.seen.lock();
        // A change that was made while the store was asked knows better.
        if seen.is_none() {
            *seen = found;
        }
        Ok(*seen)
    }
}

impl Turn {
    /// The change is durable.
    pub fn made(self) {
        *self.count.seen.lock() = self.after;
    }

    /// The change was not made, or nobody knows: the store is asked next time.
    pub fn not_made(self) {
        *self.count.seen.lock() = None;
    }
}
