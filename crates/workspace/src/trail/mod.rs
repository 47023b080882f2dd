//! The audit trail of a workspace: `audit-log.jsonl`, one line for each call and how it ended.
//!
//! Every line is chained to the one before by its hash (see `orchestr8_contract::chain`). A line is on stable storage
//! before its call is answered; calls that end at the same time share one write and one flush. A file that has grown long
//! is renamed after the number of its first entry, and the next one goes on with the chain. Where the trail ends is in the
//! store of the server, signed (`head.rs`): a file that does not lead there was tampered with.

mod entry;
mod head;
mod read;
mod segments;
mod stage;
mod writer;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use orchestr8_contract::Code;
use tokio::sync::{mpsc, oneshot};

use crate::limits;
use crate::refusal::Refusal;
use crate::root::Root;

pub use entry::{Change, Record};
pub use head::{TrailHead, TrailHeads};
pub use read::{Lines, Proof, bytes, prove, tail};
pub use segments::{LOCK, NAME, is_of_trail};
pub use stage::{OpenWrite, WriteStage, open_writes};
pub use writer::Options;

/// Why an entry was not written.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    #[error("another process holds the audit trail")]
    Locked,
    #[error("the audit trail cannot be written: {0}")]
    Io(String),
    #[error("entry {seq} of the audit trail does not hold: {what}")]
    Broken { seq: i64, what: String },
    #[error("entry {seq} of the audit trail {what}")]
    Tampered { seq: i64, what: String },
    #[error("the audit trail is closed")]
    Closed,
}

impl Error {
    pub fn refusal(&self) -> Refusal {
        match self {
            Error::Locked => Refusal::new(Code::AuditLockFailed, self.to_string()),
            Error::Io(_) | Error::Closed => Refusal::new(Code::AuditLogFailed, self.to_string()),
            Error::Broken { seq, .. } | Error::Tampered { seq, .. } => {
                Refusal::new(Code::SelfAuditFailure, format!("TAMPERED: {self}"))
                    .with("verdict", "TAMPERED")
                    .with("entry", *seq)
                    .with("hint", "compare with a backup; `orchestr8 audit accept --workspace DIR` goes on with the trail as it is")
            }
        }
    }
}

/// An entry that is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    pub seq: i64,
    pub hash: String,
}

/// A wish that an entry be written.
struct Wish {
    body: String,
    at_ms: i64,
    /// Whoever waits may give up; then the entry is not written.
    answer: oneshot::Sender<Result<Sealed, Error>>,
}

/// What the thread of a trail is asked to do.
enum Order {
    Append(Wish),
    /// Compare the end of the file with the end that the server knows.
    Check(oneshot::Sender<Result<Sealed, Error>>),
}

/// The trail of one workspace, for all sessions of this process. Its file is written by a thread of its own.
pub struct Trail {
    orders: mpsc::Sender<Order>,
}

impl Trail {
    /// Opens the trail, and makes it if there is none. Costs the same however long it is. Blocks.
    pub fn open(root: &Arc<Root>, heads: TrailHeads, options: Options) -> Result<Self, Error> {
        let mut writer = writer::Writer::open(root, heads, options)?;
        let (orders, mut queue) = mpsc::channel::<Order>(limits::WISHES);
        let run = move || {
            let mut next = queue.blocking_recv();
            while let Some(order) = next.take() {
                match order {
                    Order::Check(answer) => drop(answer.send(writer.check())),
                    Order::Append(first) => {
                        let mut group = vec![first];
                        while group.len() < limits::GROUP {
                            match queue.try_recv() {
                                Ok(Order::Append(wish)) => group.push(wish),
                                Ok(check @ Order::Check(_)) => {
                                    next = Some(check);
                                    break;
                                }
                                Err(_) => break,
                            }
                        }
                        writer.write(group);
                    }
                }
                if next.is_none() {
                    if queue.is_empty() {
                        writer.confirm();
                    }
                    next = queue.blocking_recv();
                }
            }
        };
        let started = std::thread::Builder::new().name(String::from("audit")).spawn(run);
        started.map_err(|error| Error::Io(error.to_string()))?;
        Ok(Self { orders })
    }

    /// Writes an entry; it is on stable storage when this returns.
    pub async fn append(&self, body: String, at_ms: i64) -> Result<Sealed, Error> {
        if body.len() > limits::ENTRY_BYTES {
            return Err(Error::Io(format!("an entry has at most {} bytes", limits::ENTRY_BYTES)));
        }
        let (answer, answered) = oneshot::channel();
        let order = Order::Append(Wish { body, at_ms, answer });
        self.orders.send(order).await.map_err(|_| Error::Closed)?;
        answered.await.map_err(|_| Error::Closed)?
    }

    /// The end that the server knows, to which the file leads. Fails with `Tampered` if it does not.
    pub async fn check(&self) -> Result<Sealed, Error> {
        let (answer, answered) = oneshot::channel();
        self.orders.send(Order::Check(answer)).await.map_err(|_| Error::Closed)?;
        answered.await.map_err(|_| Error::Closed)?
    }
}

/// Goes on with the trail of a workspace as it is in its files, whatever the server knew of it. It must be whole by itself. Blocks.
pub fn accept(root: &Arc<Root>, heads: &TrailHeads, options: Options) -> Result<TrailHead, Error> {
    let held = writer::hold(root, options)?;
    let mut hashes = Vec::new();
    let each = |entry: &orchestr8_contract::chain::Entry<'_>| {
        hashes.push(String::from_utf8_lossy(entry.entry_hash).into_owned());
    };
    prove(&mut Lines::of(root)?, each)?;
    let head = heads.adopt(&hashes);
    drop(held);
    head
}
