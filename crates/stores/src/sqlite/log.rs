//! The write-ahead log: how long it is, when it is moved into the database file, and the room reserved for it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::Connection;
use rusqlite::hooks::Wal;
use rusqlite::wal::CheckpointMode;

use super::errors::Failure;
use super::limits;

pub(super) struct Log {
    /// Pages in the log after the newest commit, as SQLite tells.
    pages: Arc<AtomicU32>,
    room: Option<Room>,
}

impl Log {
    /// A path asks for reserved room; without flushes at each commit there is nothing to gain by it.
    pub fn of(connection: &mut Connection, data: Option<&Path>) -> rusqlite::Result<Self> {
        let pages = Arc::new(AtomicU32::new(0));
        let counted = pages.clone();
        connection.wal_hook(Some(move |_: &mut Wal, pages| {
            counted.store(u32::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self { pages, room: data.map(Room::of) })
    }

    /// To be called after each commit, when everybody has been answered.
    pub fn tend(&mut self, connection: &Connection) -> Result<(), Failure> {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages >= limits::LOG_PAGES {
            return self.empty(connection);
        }
        if let Some(room) = &mut self.room
            && room.reserve(pages).is_err()
        {
            // It only made commits faster. If the disk is the reason, the next commit says so.
            self.room = None;
        }
        Ok(())
    }

    /// Moves the log into the database file. SQLite's own automatism would ignore a failed flush here and try again, after
    /// which the operating system may report success for pages it has dropped.
    fn empty(&self, connection: &Connection) -> Result<(), Failure> {
        match connection
            .wal_checkpoint_v2(Some(c"main"), CheckpointMode::PASSIVE)
            .map_err(|error| Failure::of(&error))
        {
            Err(failure @ Failure::Broken(_)) => Err(failure),
            // The log stays as long as it is and serves as it did; the next commit tries again.
            Ok(_) | Err(Failure::Refused(_) | Failure::Full(_) | Failure::Corrupt(_)) => Ok(()),
        }
    }
}

/// Zeros written ahead of the log's end. A commit that makes the file longer has to flush its new length as well, which
/// costs twice as much; overwriting zeros does not. The log's reader stops at the first page that is not a valid one, so
/// zeros behind the end say nothing.
struct Room {
    path: PathBuf,
    file: Option<File>,
    reserved: u64,
}

impl Room {
    fn of(data: &Path) -> Self {
        let mut name = data.as_os_str().to_owned();
        name.push("-wal");
        Self { path: PathBuf::from(name), file: None, reserved: 0 }
    }

    fn reserve(&mut self, pages: u32) -> io::Result<()> {
        let used = u64::from(pages) * limits::LOG_FRAME_BYTES;
        if pages == 0 || used + limits::ROOM_BYTES / 4 < self.reserved {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(OpenOptions::new().write(true).open(&self.path)?),
        };
        let length = file.metadata()?.len();
        self.reserved = length;
        if used + limits::ROOM_BYTES / 4 >= length && length < limits::LOG_BYTES_KEPT {
            let zeros = vec![0; usize::try_from(limits::ROOM_BYTES).unwrap_or(0)];
            file.write_all_at(&zeros, length)?;
            self.reserved += limits::ROOM_BYTES;
        }
        Ok(())
    }
}
