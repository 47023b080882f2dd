//! The audit trail of a workspace: `audit-log.jsonl`, one line for each call and how it ended.
//!
//! Every line is chained to the one before by its hash (see `orchestr8_contract::chain`). A line is on stable storage
//! before its call is answered; calls that end at the same time share one write and one flush. A file that has grown long
//! is renamed after the number of its first entry, and the next one goes on with the chain.

mod entry;
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
    #[error("the audit trail is closed")]
    Closed,
}

impl Error {
    pub fn refusal(&self) -> Refusal {
        let code = match self {
            Error::Locked => Code::AuditLockFailed,
            Error::Io(_) | Error::Closed => Code::AuditLogFailed,
            Error::Broken { .. } => Code::SelfAuditFailure,
        };
        Refusal::new(code, self.to_string())
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

/// The trail of one workspace, for all sessions of this process. Its file is written by a thread of its own.
pub struct Trail {
    wishes: mpsc::Sender<Wish>,
}

impl Trail {
    /// Opens the trail, and makes it if there is none. Costs the same however long it is.
    pub fn open(root: &Arc<Root>, options: Options) -> Result<Self, Error> {
        let mut writer = writer::Writer::open(root, options)?;
        let (wishes, mut queue) = mpsc::channel::<Wish>(limits::WISHES);
        let run = move || {
            while let Some(first) = queue.blocking_recv() {
                let mut group = vec![first];
                while group.len() < limits::GROUP
                    && let Ok(wish) = queue.try_recv()
                {
                    group.push(wish);
                }
                writer.write(group);
            }
        };
        let started = std::thread::Builder::new().name(String::from("audit")).spawn(run);
        started.map_err(|error| Error::Io(error.to_string()))?;
        Ok(Self { wishes })
    }

    /// Writes an entry; it is on stable storage when this returns.
    pub async fn append(&self, body: String, at_ms: i64) -> Result<Sealed, Error> {
        if body.len() > limits::ENTRY_BYTES {
            return Err(Error::Io(format!("an entry has at most {} bytes", limits::ENTRY_BYTES)));
        }
        let (answer, answered) = oneshot::channel();
        self.wishes.send(Wish { body, at_ms, answer }).await.map_err(|_| Error::Closed)?;
        answered.await.map_err(|_| Error::Closed)?
    }
}
