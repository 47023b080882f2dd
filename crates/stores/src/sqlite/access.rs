//! How a data file is opened: plain with the default VFS, or encrypted with ours.

use std::path::{Path, PathBuf};

use orchestr8_sqlite_vfs::{
    Attachment, EncryptionKey, FRAME_SLOT_BYTES, FileFormat, PAGE_BYTES, file_format,
};
use rusqlite::{Connection, OpenFlags};

use super::limits;
use super::lock;
use super::open::Error;

// The VFS knows one page size: ours.
const _: () = assert!(PAGE_BYTES == limits::PAGE_BYTES as usize);

/// A data file that connections can be opened to. It must live as long as they do.
#[derive(Clone)]
pub(super) enum DataAccess {
    Plain(PathBuf),
    Encrypted(Attachment),
}

impl DataAccess {
    /// The file must be there, and its path must be the real one.
    ///
    /// An encrypted file must never be opened with the default VFS: SQLite would take its log for an empty one and delete it. So
    /// the format is looked at first, which only a process without a connection to the file may do: closing a file releases the
    /// locks that SQLite holds on it for the whole process.
    pub fn new(path: &Path, key: Option<&EncryptionKey>) -> Result<Self, Error> {
        let Some(key) = key else {
            let format = file_format(path).map_err(|cause| Error::Io { path: path.to_owned(), cause })?;
            return match format {
                FileFormat::Sealed => Err(Error::KeyMissing { path: path.to_owned() }),
                FileFormat::Plain | FileFormat::Empty | FileFormat::Unknown => {
                    Ok(Self::Plain(path.to_owned()))
                }
            };
        };
        Ok(Self::Encrypted(Attachment::open(path, key)?))
    }

    /// The same beside a store that this process may have open.
    pub fn again(path: &Path, key: Option<&EncryptionKey>) -> Result<Self, Error> {
        let is_own = lock::holder(path) == Some(std::process::id()) && lock::is_held(path);
        match key {
            // It was opened without a key, so it is plain.
            None if is_own => Ok(Self::Plain(path.to_owned())),
            None | Some(_) => Self::new(path, key),
        }
    }

    pub fn path(&self) -> &Path {
        match self {
            Self::Plain(path) => path,
            Self::Encrypted(attached) => attached.path(),
        }
    }

    pub fn key(&self) -> Option<&EncryptionKey> {
        match self {
            Self::Plain(_) => None,
            Self::Encrypted(attached) => Some(attached.key()),
        }
    }

    pub fn connect(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        match self {
            Self::Plain(path) => Connection::open_with_flags(path, flags),
            Self::Encrypted(attached) => orchestr8_sqlite_vfs::open_connection(attached, flags),
        }
    }

    /// Whether the log was changed after it was written, as far as that can be told. To be asked before anything opens the file,
    /// because SQLite would drop what follows the change. A process that owns the file writes the log, and has asked itself.
    pub fn check_log(&self, commits_are_flushed: bool) -> Result<(), Error> {
        match self {
            Self::Encrypted(attached) => attached
                .check_log(commits_are_flushed)
                .map_err(|damage| Error::LogDamaged { path: self.path().to_owned(), damage }),
            Self::Plain(_) => Ok(()),
        }
    }

    /// The same for a process that does not own the file. While another one does, the log changes as it is read, and what looks
    /// like damage is none.
    pub fn check_idle_log(&self) -> Result<(), Error> {
        match self.check_log(true) {
            Err(Error::LogDamaged { .. }) if lock::is_held(self.path()) => Ok(()),
            other => other,
        }
    }

    /// What a page takes in the log file.
    pub fn log_frame_bytes(&self) -> u64 {
        match self {
            Self::Plain(_) => limits::LOG_FRAME_BYTES,
            Self::Encrypted(_) => FRAME_SLOT_BYTES as u64,
        }
    }
}

impl From<orchestr8_sqlite_vfs::Error> for Error {
    fn from(error: orchestr8_sqlite_vfs::Error) -> Self {
        use orchestr8_sqlite_vfs::Error as Vfs;
        match error {
            Vfs::Io { path, cause } => Error::Io { path, cause },
            Vfs::NotEncrypted(path) => Error::NotEncrypted { path },
            Vfs::WrongKey(path) => Error::WrongKey { path },
            Vfs::Unknown(path) => Error::Foreign { path },
            error @ (Vfs::NoRandomness | Vfs::TooMany) => {
                Error::Store(orchestr8_kernel::ports::store::Error::Full(error.to_string()))
            }
        }
    }
}
