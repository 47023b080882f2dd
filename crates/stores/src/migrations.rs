//! Migrations: the steps that bring a database to the shape the program needs, and what to refuse before touching it.
//!
//! Each crate that persists contributes a list; the app joins them. A migration is never changed once released: a new one is
//! added after it. They are written in SQLite's words with `STRICT` tables; a PostgreSQL store reads `INTEGER` as `BIGINT`,
//! `BLOB` as `BYTEA`, `REAL` as `DOUBLE PRECISION`, and leaves out `STRICT` and `WITHOUT ROWID`.

use std::collections::{HashMap, HashSet};

use sha2::{Digest, Sha256};

use crate::chain::hex;

/// One step. Names are unique over all lists: `kernel/0001-journal`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migration {
    pub name: &'static str,
    pub sql: &'static str,
}

impl Migration {
    /// The SHA-256 of its SQL, kept in the database to notice a changed one.
    pub fn checksum(&self) -> String {
        hex(&Sha256::digest(self.sql.as_bytes()))
    }
}

/// What the stores themselves need; always applied first.
pub const OWN: &[Migration] = &[CHAIN, MERKLE];

const CHAIN: Migration = Migration {
    name: "stores/0001-chain",
    sql: "CREATE TABLE chain (
        name TEXT NOT NULL,
        seq INTEGER NOT NULL,
        at_ms INTEGER NOT NULL,
        body TEXT NOT NULL,
        prev_hash TEXT NOT NULL,
        entry_hash TEXT NOT NULL,
        PRIMARY KEY (name, seq)
    ) STRICT, WITHOUT ROWID;",
};

/// Merkle logs: frontiers to go on from, the hashes of entries that were deleted for their age, and what is signed about them.
const MERKLE: Migration = Migration {
    name: "stores/0002-merkle",
    sql: "CREATE TABLE merkle_checkpoint (
        log TEXT NOT NULL,
        size INTEGER NOT NULL,
        frontier BLOB NOT NULL,
        PRIMARY KEY (log, size)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE merkle_pruned (
        log TEXT NOT NULL,
        start INTEGER NOT NULL,
        level INTEGER NOT NULL,
        hash BLOB NOT NULL,
        PRIMARY KEY (log, start)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE merkle_note (log TEXT NOT NULL PRIMARY KEY, note TEXT NOT NULL) STRICT, WITHOUT ROWID;",
};

/// A migration the database says it has had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    pub name: String,
    pub checksum: String,
}

/// Why a database is not opened. Nothing of it was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(
        "the database is newer than this program: it has had the migration `{0}`, which this program does not know; run the \
         newer program, or restore a backup made by this one"
    )]
    Newer(String),
    #[error(
        "the migration `{0}` of this program is not the one the database has had; a released migration must not change"
    )]
    Changed(String),
    #[error("two migrations are named `{0}`")]
    Twice(&'static str),
}

/// What is still to be applied, in order.
pub fn outstanding(lists: &[Migration], applied: &[Applied]) -> Result<Vec<Migration>, Error> {
    let all: Vec<Migration> = OWN.iter().chain(lists).copied().collect();
    let mut names = HashSet::new();
    if let Some(twice) = all.iter().find(|migration| !names.insert(migration.name)) {
        return Err(Error::Twice(twice.name));
    }
    if let Some(unknown) = applied.iter().find(|entry| !names.contains(entry.name.as_str())) {
        return Err(Error::Newer(unknown.name.clone()));
    }
    let had: HashMap<&str, &str> =
        applied.iter().map(|entry| (entry.name.as_str(), entry.checksum.as_str())).collect();
    let mut outstanding = Vec::new();
    for migration in all {
        match had.get(migration.name) {
            None => outstanding.push(migration),
            Some(checksum) if *checksum == migration.checksum() => {}
            Some(_) => return Err(Error::Changed(migration.name.to_owned())),
        }
    }
    Ok(outstanding)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Migration = Migration { name: "a/1", sql: "CREATE TABLE a (x TEXT) STRICT" };
    const B: Migration = Migration { name: "b/1", sql: "CREATE TABLE b (x TEXT) STRICT" };

    fn applied(migrations: &[Migration]) -> Vec<Applied> {
        let entry = |m: &Migration| Applied { name: m.name.to_owned(), checksum: m.checksum() };
        OWN.iter().chain(migrations).map(entry).collect()
    }

    #[test]
    fn a_fresh_database_gets_all_in_order() {
        assert_eq!(outstanding(&[A, B], &[]).unwrap(), [OWN[0], OWN[1], A, B]);
    }

    #[test]
    fn what_was_applied_is_not_applied_again_whatever_its_place() {
        assert_eq!(outstanding(&[A, B], &applied(&[B])).unwrap(), [A]);
        assert_eq!(outstanding(&[A, B], &applied(&[A, B])).unwrap(), []);
    }

    #[test]
    fn a_newer_database_a_changed_migration_and_a_name_used_twice_are_refused() {
        assert_eq!(outstanding(&[A], &applied(&[A, B])), Err(Error::Newer("b/1".to_owned())));
        let changed = Migration { sql: "CREATE TABLE a (y TEXT) STRICT", ..A };
        assert_eq!(outstanding(&[changed], &applied(&[A])), Err(Error::Changed("a/1".to_owned())));
        assert_eq!(outstanding(&[A, A], &[]), Err(Error::Twice("a/1")));
    }
}
