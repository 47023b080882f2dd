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
    pages_max: u32,
    room: Option<Room>,
}

impl Log {
    /// A path, with what a page takes in the log file, asks for reserved room; without flushes at each commit there is nothing to gain by it.
    pub fn of(connection: &mut Connection, data: Option<(&Path, u64)>) -> rusqlite::Result<Self> {
        let pages = Arc::new(AtomicU32::new(0));
        let counted = pages.clone();
        connection.wal_hook(Some(move |_: &mut Wal, pages| {
            counted.store(u32::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self {
            pages,
            pages_max: limits::LOG_PAGES,
            room: data.map(|(path, frame_bytes)| Room::of(path, frame_bytes)),
        })
    }

    /// Whether there is anything to tend.
    pub fn is_due(&self) -> bool {
        let pages = self.pages.load(Ordering::Relaxed);
        pages >= self.pages_max || self.room.as_ref().is_some_and(|room| room.is_due(pages))
    }

    /// To be called after each commit, when everybody has been answered.
    pub fn tend(&mut self, connection: &Connection) -> Result<(), Failure> {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages >= self.pages_max {
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
    frame_bytes: u64,
}

impl Room {
    fn of(data: &Path, frame_bytes: u64) -> Self {
        let mut name = data.as_os_str().to_owned();
        name.push("-wal");
        Self { path: PathBuf::from(name), file: None, reserved: 0, frame_bytes }
    }

    fn is_due(&self, pages: u32) -> bool {
        pages > 0 && self.used(pages) + limits::ROOM_BYTES / 4 >= self.reserved
    }

    /// Bytes of the log that these pages take.
    fn used(&self, pages: u32) -> u64 {
        u64::from(pages) * self.frame_bytes
    }

    fn reserve(&mut self, pages: u32) -> io::Result<()> {
        if !self.is_due(pages) {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(OpenOptions::new().write(true).open(&self.path)?),
        };
        let length = file.metadata()?.len();
        self.reserved = length;
        if u64::from(pages) * self.frame_bytes + limits::ROOM_BYTES / 4 >= length
            && length < limits::LOG_BYTES_KEPT
        {
            let zeros = vec![0; limits::ROOM_PIECE_BYTES];
            for _ in 0..limits::ROOM_BYTES / limits::ROOM_PIECE_BYTES as u64 {
                file.write_all_at(&zeros, self.reserved)?;
                self.reserved += limits::ROOM_PIECE_BYTES as u64;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixture {
        folder: tempfile::TempDir,
        connection: Connection,
        log: Log,
    }

    impl Fixture {
        fn new(pages_max: u32, room: bool) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let data = folder.path().join("data");
            let mut connection = Connection::open(&data).unwrap();
            connection
                .execute_batch(
                    "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;
                     CREATE TABLE t (body BLOB NOT NULL) STRICT",
                )
                .unwrap();
            let mut log =
                Log::of(&mut connection, room.then_some((data.as_path(), limits::LOG_FRAME_BYTES))).unwrap();
            log.pages_max = pages_max;
            Self { folder, connection, log }
        }

        fn commit(&mut self, pages: u32) {
            self.connection.execute("INSERT INTO t VALUES (zeroblob(?1))", [pages * 8192]).unwrap();
            self.log.tend(&self.connection).unwrap();
        }

        fn bytes(&self) -> u64 {
            self.folder.path().join("data-wal").metadata().unwrap().len()
        }
    }

    #[test]
    fn a_long_log_is_moved_and_starts_anew() {
        let mut fixture = Fixture::new(50, false);
        for _ in 0..100 {
            fixture.commit(3);
        }
        assert!(fixture.bytes() < 60 * limits::LOG_FRAME_BYTES, "{} bytes", fixture.bytes());
        let main = fixture.folder.path().join("data").metadata().unwrap().len();
        assert!(main > 200 * 8192, "{main} bytes");
    }

    #[test]
    fn a_reader_holds_the_log_back_and_it_is_moved_once_he_is_gone() {
        let mut fixture = Fixture::new(20, false);
        fixture.commit(1);
        let reader = Connection::open(fixture.folder.path().join("data")).unwrap();
        reader.execute_batch("BEGIN; SELECT COUNT(*) FROM t").unwrap();
        let count = |reader: &Connection| {
            reader.query_row("SELECT COUNT(*) FROM t", [], |row| row.get::<_, i64>(0)).unwrap()
        };
        assert_eq!(count(&reader), 1);
        for _ in 0..30 {
            fixture.commit(3);
        }
        assert_eq!(count(&reader), 1, "he sees one moment");
        let held = fixture.bytes();
        assert!(held > 90 * limits::LOG_FRAME_BYTES);
        drop(reader);
        for _ in 0..30 {
            fixture.commit(3);
        }
        assert!(fixture.bytes() < held + 30 * limits::LOG_FRAME_BYTES, "it grows no further");
    }

    #[test]
    fn room_is_reserved_ahead_and_commits_do_not_make_the_file_longer() {
        let mut fixture = Fixture::new(1_000_000, true);
        fixture.commit(1);
        let reserved = fixture.bytes();
        assert!(reserved >= limits::ROOM_BYTES);
        for _ in 0..40 {
            fixture.commit(1);
        }
        assert_eq!(fixture.bytes(), reserved);
        for _ in 0..300 {
            fixture.commit(1);
        }
        assert!(fixture.bytes() > reserved);
    }

    #[test]
    fn room_that_cannot_be_reserved_is_done_without() {
        let mut fixture = Fixture::new(1_000_000, true);
        fixture.log.room = Some(Room::of(Path::new("/nowhere/at/all"), limits::LOG_FRAME_BYTES));
        fixture.commit(1);
        assert!(fixture.log.room.is_none());
        fixture.commit(1);
    }
}
