//! What an error of SQLite means for us, told by its code and never by its text.

use orchestr8_kernel::ports::store;
use rusqlite::{ErrorCode, ffi};

/// What went wrong, by what has to be done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// The statement is wrong; others are not concerned.
    Refused(String),
    /// Nothing can be written now; it may work later.
    Full(String),
    /// Stored data is damaged.
    Corrupt(String),
    /// Reading or writing failed. After such a failure nobody knows what is on the disk: a writer must stop and never retry.
    Broken(String),
}

impl Failure {
    pub fn of(error: &rusqlite::Error) -> Self {
        let text = error.to_string();
        let Some(failure) = error.sqlite_error() else {
            return match error {
                rusqlite::Error::Utf8Error(..)
                | rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::InvalidColumnType(..) => Failure::Corrupt(text),
                _ => Failure::Refused(text),
            };
        };
        match failure.code {
            ErrorCode::SystemIoFailure if failure.extended_code == ffi::SQLITE_IOERR_NOMEM => {
                Failure::Full(text)
            }
            ErrorCode::SystemIoFailure | ErrorCode::InternalMalfunction => Failure::Broken(text),
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Failure::Corrupt(text),
            ErrorCode::DiskFull
            | ErrorCode::OutOfMemory
            | ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::FileLockingProtocolFailed
            | ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied
            | ErrorCode::ReadOnly
            | ErrorCode::NoLargeFileSupport
            | ErrorCode::OperationInterrupted => Failure::Full(text),
            // Constraints, types, sizes, unknown tables and columns, wrong SQL.
            _ => Failure::Refused(text),
        }
    }
}

/// For reads and for opening, where a disk that cannot be read is no different from damaged data.
impl From<Failure> for store::Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(text) => store::Error::Refused(text),
            Failure::Full(text) => store::Error::Full(text),
            Failure::Corrupt(text) | Failure::Broken(text) => store::Error::Corrupt(text),
        }
    }
}

pub(super) fn store_error(error: rusqlite::Error) -> store::Error {
    Failure::of(&error).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_decide() {
        let of = |code| {
            Failure::of(&rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some("any text".to_owned())))
        };
        let text = || "any text".to_owned();
        for code in
            [ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR_READ, ffi::SQLITE_INTERNAL]
        {
            assert_eq!(of(code), Failure::Broken(text()), "{code}");
        }
        for code in [
            ffi::SQLITE_FULL,
            ffi::SQLITE_BUSY,
            ffi::SQLITE_NOMEM,
            ffi::SQLITE_IOERR_NOMEM,
            ffi::SQLITE_READONLY,
        ] {
            assert_eq!(of(code), Failure::Full(text()), "{code}");
        }
        for code in [ffi::SQLITE_CORRUPT, ffi::SQLITE_NOTADB, ffi::SQLITE_CORRUPT_INDEX] {
            assert_eq!(of(code), Failure::Corrupt(text()), "{code}");
        }
        for code in
            [ffi::SQLITE_CONSTRAINT_UNIQUE, ffi::SQLITE_ERROR, ffi::SQLITE_TOOBIG, ffi::SQLITE_MISMATCH]
        {
            assert_eq!(of(code), Failure::Refused(text()), "{code}");
        }
    }
}
