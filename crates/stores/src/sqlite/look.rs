//! A look at a data file from outside: for backups and checks beside a server that runs, or when none does.
//!
//! It takes no lock and changes nothing, so it may be used whoever owns the file.

use std::path::Path;

use orchestr8_contract::merkle::Hash;
use orchestr8_kernel::ports::store;
use orchestr8_sqlite_vfs::EncryptionKey;
use rusqlite::{Connection, OptionalExtension, params};

use super::access::DataAccess;
use super::backup::{self, BackupReport};
use super::cells;
use super::check::{self, CheckReport};
use super::errors::store_error;
use super::log_check::{self, Fingerprints};
use super::open::{self, Error};
use crate::chain::{self, Entry, Verified, line};
use crate::merkle::{KnownHead, LogDifference, LogPiece, LogReport, LogSource, ProvenEntry};

/// Blocks while it works: use it from a command, not from a server.
pub struct Look {
    connection: Connection,
    access: DataAccess,
}

impl Look {
    /// The file must be there and be ours. An encrypted one needs its key.
    pub fn at(path: &Path, key: Option<&EncryptionKey>) -> Result<Self, Error> {
        let io = |cause| Error::Io { path: path.to_owned(), cause };
        let path = path.canonicalize().map_err(io)?;
        let access = DataAccess::again(&path, key)?;
        access.check_idle_log()?;
        let connection = open::reader(&access).map_err(store_error)?;
        match open::is_ours(&connection).map_err(store_error)? {
            true => Ok(Self { connection, access }),
            false => Err(Error::Foreign { path }),
        }
    }

    pub fn backup(&self, to: &Path) -> Result<BackupReport, backup::Error> {
        backup::run(&self.connection, to, self.access.key())
    }

    pub fn check(&self) -> CheckReport {
        check::run(&self.connection)
    }

    pub fn verify_chain(&self, name: &str) -> Result<Verified, chain::Error> {
        check::verify(&self.connection, name)
    }

    /// The entries of a chain after this number, as lines; at most this many.
    pub fn lines(&self, chain: &str, after: i64, limit: i64) -> Result<Vec<(i64, Vec<u8>)>, store::Error> {
        let sql = "SELECT seq, at_ms, body, prev_hash, entry_hash FROM chain
                   WHERE name = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
        let read = || {
            let mut statement = self.connection.prepare_cached(sql)?;
            let rows = statement.query_map(params![chain, after, limit], |row| {
                let (body, prev_hash, entry_hash): (String, String, String) =
                    (row.get(2)?, row.get(3)?, row.get(4)?);
                let entry = Entry {
                    seq: row.get(0)?,
                    at_ms: row.get(1)?,
                    body: body.as_bytes(),
                    prev_hash: prev_hash.as_bytes(),
                    entry_hash: entry_hash.as_bytes(),
                };
                Ok((entry.seq, line::write(&entry)))
            })?;
            rows.collect::<Result<Vec<_>, _>>()
        };
        read().map_err(store_error)
    }

    /// Computes a whole Merkle log from its rows and compares it with signed heads, in the order of their sizes.
    pub fn verify_log(
        &self,
        source: &LogSource,
        heads: &[KnownHead],
        fingerprints: Fingerprints<'_>,
    ) -> Result<LogReport, store::Error> {
        log_check::verify(&self.connection, source, heads, fingerprints)
    }

    /// Proves entries in a log as it was when it had a size, and gives its root. None: it does not have one of the entries.
    pub fn prove(
        &self,
        source: &LogSource,
        numbers: &[u64],
        size: u64,
    ) -> Result<Option<(Hash, Vec<ProvenEntry>)>, store::Error> {
        log_check::prove(&self.connection, source, numbers, size)
    }

    /// Proves that a log has grown from one size to another. None: it cannot be proven from what is stored.
    pub fn prove_growth(
        &self,
        source: &LogSource,
        sizes: (u64, u64),
    ) -> Result<Option<Vec<Hash>>, store::Error> {
        log_check::prove_growth(&self.connection, source, sizes)
    }

    /// Shows every entry of a log and every subtree of it that was deleted, until the first entry that is missing.
    pub fn export_log(
        &self,
        source: &LogSource,
        piece: &mut dyn FnMut(LogPiece) -> Result<(), store::Error>,
    ) -> Result<Option<LogDifference>, store::Error> {
        log_check::export(&self.connection, source, piece)
    }

    /// What is signed about the entries of a log that were deleted.
    pub fn pruned_note(&self, source: &LogSource) -> Result<Option<String>, store::Error> {
        log_check::note(&self.connection, source)
    }

    /// The rows of a statement that changes nothing.
    pub fn query(&self, statement: &store::Statement) -> Result<Vec<store::Row>, store::Error> {
        cells::read(&self.connection, statement)
    }

    /// The number that a statement without parameters gives, such as a count.
    pub fn number(&self, sql: &'static str) -> Result<i64, store::Error> {
        self.connection.query_row(sql, [], |row| row.get(0)).map_err(store_error)
    }

    /// The number of the newest entry of a chain; 0 when there is none.
    pub fn newest(&self, chain: &str) -> Result<i64, store::Error> {
        let sql = "SELECT COALESCE(MAX(seq), 0) FROM chain WHERE name = ?1";
        self.connection.query_row(sql, [chain], |row| row.get(0)).map_err(store_error)
    }

    /// The number of the entry with this hash: a head noted earlier shows whether newer entries were cut off since.
    pub fn entry_of(&self, chain: &str, entry_hash: &str) -> Result<Option<i64>, store::Error> {
        let sql = "SELECT seq FROM chain WHERE name = ?1 AND entry_hash = ?2";
        self.connection.query_row(sql, [chain, entry_hash], |row| row.get(0)).optional().map_err(store_error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{Options, Place, open};

    #[tokio::test]
    async fn a_file_in_use_is_checked_and_copied_and_stays_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let (data, copy) = (folder.path().join("data.sqlite3"), folder.path().join("copy.sqlite3"));
        assert!(matches!(Look::at(&data, None), Err(Error::Io { .. })));
        let store = open(Options::new(Place::File(data.clone()), vec![])).unwrap();
        let look = Look::at(&data, None).unwrap();
        assert!(look.check().is_sound());
        assert_eq!(look.verify_chain("audit").unwrap().entries, 0);
        let mut batch = store::Batch::new();
        batch.link(store::Link { chain: "audit".into(), at_ms: 1, body: "{}".into() });
        store::Store::commit(&store, batch).await.unwrap();
        let head = look.verify_chain("audit").unwrap().head;
        assert_eq!(look.entry_of("audit", &head).unwrap(), Some(1));
        assert_eq!(look.entry_of("audit", "cut off").unwrap(), None);
        look.backup(&copy).unwrap();
        assert!(Look::at(&copy, None).unwrap().check().is_sound());
        assert!(matches!(open(Options::new(Place::File(data), vec![])), Err(Error::Held { .. })));
        drop(store);
    }

    #[test]
    fn what_is_not_ours_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("other.sqlite3");
        Connection::open(&data).unwrap().execute_batch("CREATE TABLE a (b TEXT)").unwrap();
        assert!(matches!(Look::at(&data, None), Err(Error::Foreign { .. })));
    }
}
