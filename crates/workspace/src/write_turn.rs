//! The turn to write in a workspace: one write at a time, its gates included, in all processes. It is held until the outcome
//! of the write is on record, so that a write that is on record as begun and whose turn is free was interrupted.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::Code;
use orchestr8_kernel::ports::Clock;
use parking_lot::Mutex;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, openat};
use rustix::io::Errno;
use tokio::sync::OwnedSemaphorePermit;

use crate::limits;
use crate::refusal::Refusal;
use crate::root::Root;
use crate::session::Session;

/// Dropped, the next write may begin.
#[derive(Debug)]
pub struct WriteTurn {
    _folder: File,
    _permit: OwnedSemaphorePermit,
}

/// Where a call keeps its turn until its outcome is on record.
pub type TurnSlot = Arc<Mutex<Option<WriteTurn>>>;

impl WriteTurn {
    /// Waits until no other write is going on. The time limit of the call bounds the wait.
    pub async fn take(session: &Session, clock: &Arc<dyn Clock>) -> Result<Self, Refusal> {
        let closed = |_| Refusal::new(Code::UnknownToolFailure, "the workspace is closed");
        let permit = session.turn.clone().acquire_owned().await.map_err(closed)?;
        loop {
            if let Some(folder) = lock(&session.root)? {
                return Ok(Self { _folder: folder, _permit: permit });
            }
            clock.sleep(Duration::from_millis(limits::TURN_LOOK_MS)).await;
        }
    }

    /// None: a write is going on.
    pub fn try_take(session: &Session) -> Result<Option<Self>, Refusal> {
        let Ok(permit) = session.turn.clone().try_acquire_owned() else { return Ok(None) };
        Ok(lock(&session.root)?.map(|folder| Self { _folder: folder, _permit: permit }))
    }
}

/// The folder itself, opened once more and locked, against other processes. The machine unlocks it with the end of the process.
fn lock(root: &Root) -> Result<Option<File>, Refusal> {
    let failed = |error: Errno| {
        Refusal::new(Code::AuditLockFailed, "the workspace cannot be locked for a write").because_of(error)
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(root.handle(), ".", flags, Mode::empty()).map_err(failed)?;
    match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(File::from(folder))),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
        Err(error) => Err(failed(error)),
    }
}
