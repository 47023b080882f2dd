//! The turn to write in a workspace, its commands included: one call at a time in this process, and by a lock on the folder one at
//! a time in all processes of the machine.

use std::fs::File;
use std::time::Duration;

use orchestr8_contract::Code;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, openat};
use rustix::io::Errno;
use tokio::sync::OwnedSemaphorePermit;

use crate::hub::Hub;
use crate::refusal::Refusal;
use crate::root::Root;
use crate::session::Session;

/// Between two looks whether another process has finished.
const LOOK: Duration = Duration::from_millis(10);

/// Dropping it lets the next writer in.
pub struct WriteTurn {
    _permit: OwnedSemaphorePermit,
    /// Closing it gives the lock back.
    _folder: File,
}

impl WriteTurn {
    /// Waits as long as the call may take.
    pub async fn wait(hub: &Hub, session: &Session) -> Result<Self, Refusal> {
        let closed = |_| Refusal::new(Code::UnknownToolFailure, "the workspace is closed");
        let permit = session.turn.clone().acquire_owned().await.map_err(closed)?;
        let folder = open_folder(&session.root)?;
        loop {
            match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { _permit: permit, _folder: folder }),
                Err(Errno::WOULDBLOCK | Errno::INTR) => hub.ports().clock.sleep(LOOK).await,
                Err(error) => return Err(failed(error)),
            }
        }
    }
}

/// A handle of its own, since a lock belongs to the handle.
fn open_folder(root: &Root) -> Result<File, Refusal> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(root.handle(), ".", flags, Mode::empty()).map(File::from).map_err(failed)
}

fn failed(error: Errno) -> Refusal {
    Refusal::new(Code::FileWriteFailed, "the workspace cannot be locked for a write").because_of(error)
}
