//! The tail: what is decided and durable, but not yet filed in the tables where it is looked up.
//!
//! A message touches a dozen pages of those tables, and one that comes alone would have to flush them all. In the tail it is one
//! row at the end of one page; many are filed together, and leave the tail in the same commit. Whoever looks into the tables
//! has the tail filed first.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use orchestr8_contract::id::{MessageId, RequestId, Tenant};
use orchestr8_kernel::ports::Store;
use orchestr8_kernel::ports::store::{Batch, Error, Guard};
use parking_lot::Mutex;

use super::ledger::Entry;
use super::record::Write;
use super::rows;
use crate::limits;
use crate::tables;

/// What others need to know of the tail.
#[derive(Default)]
pub struct Unfiled {
    /// Whether what is said here is so: not before the tail was read, nor after a commit whose end is not known.
    known: AtomicBool,
    any: AtomicBool,
    requests: Mutex<HashMap<(Tenant, RequestId), Entry>>,
}

impl Unfiled {
    /// Whether the tables say everything.
    pub fn is_none(&self) -> bool {
        self.known.load(Ordering::SeqCst) && !self.any.load(Ordering::SeqCst)
    }

    pub fn is_known(&self) -> bool {
        self.known.load(Ordering::SeqCst)
    }

    /// A request as the tail has it; none: as the table has it.
    pub fn request(&self, tenant: &Tenant, id: &RequestId) -> Option<Entry> {
        self.requests.lock().get(&(tenant.clone(), id.clone())).cloned()
    }
}

pub struct Tail {
    unfiled: Arc<Unfiled>,
    /// The number of the last row.
    last: i64,
    writes: Vec<Write>,
    /// How many of them have a place in the tables.
    changes: usize,
    bytes: usize,
    messages: HashSet<(Tenant, MessageId)>,
}

impl Tail {
    pub fn new(unfiled: Arc<Unfiled>) -> Self {
        Self { unfiled, last: 0, writes: Vec::new(), changes: 0, bytes: 0, messages: HashSet::new() }
    }

    pub fn is_known(&self) -> bool {
        self.unfiled.is_known()
    }

    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Whether these are few enough to be kept here.
    pub fn has_room(&self, writes: &[Write]) -> bool {
        let (bytes, changes) = (bytes(writes), changes(writes));
        changes <= limits::TAIL_GROUP_WRITES
            && bytes <= limits::TAIL_GROUP_BYTES
            && self.changes + changes <= limits::TAIL_WRITES
            && self.bytes + bytes <= limits::TAIL_BYTES
    }

    /// What keeps these, unless an id among them was used before.
    pub fn append(&self, writes: &[Write], now_ms: i64) -> Result<Batch, Error> {
        let used = Error::Conflict { step: 0, expected: 0, found: 1 };
        let mut batch = Batch::new();
        let mut seen = HashSet::new();
        let requests = self.unfiled.requests.lock();
        for write in writes {
            match write {
                Write::Message(row) => {
                    let key = (row.tenant.clone(), row.message.clone());
                    if self.messages.contains(&key) || !seen.insert(key) {
                        return Err(used);
                    }
                    let unused = tables::message_used(row.tenant.as_str(), row.message.as_str(), now_ms);
                    batch.steps.push((unused, Guard::Rows(0)));
                }
                Write::Request { tenant, entry, is_new: true } => {
                    if requests.contains_key(&(tenant.clone(), entry.request.clone())) {
                        return Err(used);
                    }
                    let unused = tables::request_used(tenant.as_str(), entry.request.as_str(), now_ms);
                    batch.steps.push((unused, Guard::Rows(0)));
                }
                Write::Request { is_new: false, .. }
                | Write::Release { .. }
                | Write::Repost { .. }
                | Write::Ended { .. }
                | Write::Pair { .. }
                | Write::Inbox { .. }
                | Write::Audit(_) => {}
            }
        }
        let text = serde_json::to_string(writes).map_err(|error| Error::Refused(error.to_string()))?;
        batch.then(tables::tail_append(self.last + 1, text));
        Ok(batch)
    }

    /// They are durable.
    pub fn appended(&mut self, writes: Vec<Write>) {
        self.last += 1;
        self.take(writes);
    }

    fn take(&mut self, writes: Vec<Write>) {
        let mut requests = self.unfiled.requests.lock();
        for write in &writes {
            match write {
                Write::Message(row) => {
                    self.messages.insert((row.tenant.clone(), row.message.clone()));
                }
                Write::Request { tenant, entry, .. } => {
                    requests.insert((tenant.clone(), entry.request.clone()), entry.clone());
                }
                Write::Release { .. }
                | Write::Repost { .. }
                | Write::Ended { .. }
                | Write::Pair { .. }
                | Write::Inbox { .. }
                | Write::Audit(_) => {}
            }
        }
        self.bytes += bytes(&writes);
        self.changes += changes(&writes);
        self.writes.extend(writes);
        self.unfiled.any.store(true, Ordering::SeqCst);
    }

    /// What files everything here, and ends it here; the audit records of further changes go with those of the tail.
    pub fn filing(&self, more: &[Write], now_ms: i64) -> Batch {
        let mut batch = Batch::new();
        rows::put_audit(&mut batch, self.writes.iter().chain(more), now_ms);
        if self.writes.is_empty() {
            return batch;
        }
        // Of pairs, inboxes and requests the last word counts; of a request also whether the tables have it.
        let (mut pairs, mut inboxes, mut requests) = (HashSet::new(), HashSet::new(), HashSet::new());
        let mut kept: Vec<&Write> = Vec::with_capacity(self.writes.len());
        for write in self.writes.iter().rev() {
            let is_last = match write {
                Write::Pair { pair, .. } => pairs.insert(pair),
                Write::Inbox { address, .. } => inboxes.insert(address),
                Write::Request { tenant, entry, .. } => requests.insert((tenant, &entry.request)),
                Write::Message(_) | Write::Release { .. } | Write::Repost { .. } | Write::Ended { .. } => {
                    true
                }
                Write::Audit(_) => false,
            };
            if is_last {
                kept.push(write);
            }
        }
        let unknown: HashSet<_> = self.writes.iter().filter_map(new_request).collect();
        for write in kept.into_iter().rev() {
            let mut write = write.clone();
            if let Write::Request { tenant, entry, is_new } = &mut write {
                *is_new = unknown.contains(&(&*tenant, &entry.request));
            }
            rows::put(&mut batch, write);
        }
        batch.then(tables::tail_clear(self.last));
        batch
    }

    /// Everything is in the tables.
    pub fn filed(&mut self) {
        self.writes.clear();
        (self.changes, self.bytes) = (0, 0);
        self.messages.clear();
        self.unfiled.requests.lock().clear();
        self.unfiled.any.store(false, Ordering::SeqCst);
    }

    /// Nobody knows what the last commit did: the store is asked before anything else.
    pub fn doubt(&mut self) {
        self.unfiled.known.store(false, Ordering::SeqCst);
        self.filed();
        self.last = 0;
    }

    /// Reads what an earlier process, or a commit whose end was not known, has left.
    pub async fn recall(&mut self, store: &Arc<dyn Store>) -> Result<(), Error> {
        let mut left = Vec::new();
        loop {
            let rows = store.query(tables::tail_after(self.last, limits::TAIL_ROWS)).await?;
            for row in &rows {
                self.last = row.int(0)?;
                let writes: Vec<Write> = serde_json::from_str(row.text(1)?)
                    .map_err(|error| Error::Corrupt(format!("row {} of the tail: {error}", self.last)))?;
                left.extend(writes);
            }
            if rows.is_empty() {
                break;
            }
        }
        if !left.is_empty() {
            self.take(left);
        }
        self.unfiled.known.store(true, Ordering::SeqCst);
        Ok(())
    }
}

/// The request that this one puts on record first.
fn new_request(write: &Write) -> Option<(&Tenant, &RequestId)> {
    match write {
        Write::Request { tenant, entry, is_new: true } => Some((tenant, &entry.request)),
        Write::Request { is_new: false, .. }
        | Write::Message(_)
        | Write::Release { .. }
        | Write::Repost { .. }
        | Write::Ended { .. }
        | Write::Pair { .. }
        | Write::Inbox { .. }
        | Write::Audit(_) => None,
    }
}

/// What the messages among these take.
fn bytes(writes: &[Write]) -> usize {
    let of = |write: &Write| match write {
        Write::Message(row) => row.text.len(),
        Write::Request { .. }
        | Write::Release { .. }
        | Write::Repost { .. }
        | Write::Ended { .. }
        | Write::Pair { .. }
        | Write::Inbox { .. }
        | Write::Audit(_) => 0,
    };
    writes.iter().map(of).sum()
}

/// How many of these have a place in the tables.
fn changes(writes: &[Write]) -> usize {
    writes.iter().filter(|write| !matches!(write, Write::Audit(_))).count()
}
