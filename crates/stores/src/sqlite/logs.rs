//! The Merkle logs that the writer appends to: the right edge of each tree, in memory, in step with what is committed.
//!
//! Appending a leaf costs its hash and one more on average. Nothing is written for it: the frontier is stored now and then
//! (`merkle_checkpoint`), and a start goes on from there with the rows that came after.

use orchestr8_contract::merkle::{Frontier, Hash, subtrees};
use orchestr8_kernel::ports::store::{Batch, Cell, Error, Statement};
use rusqlite::{Connection, OptionalExtension, params};

use super::errors::{Failure, store_error};
use super::limits;
use super::log_walk::{self, Gap};
use crate::merkle::{Fingerprint, LogSource, LogState, leaf_of, unknown_leaf};

pub(super) struct Logs(Vec<LiveLog>);

struct LiveLog {
    source: LogSource,
    frontier: Frontier,
    /// The size at the newest checkpoint.
    stored: u64,
    fingerprints: Vec<Fingerprint>,
}

/// What to go back to when a transaction is undone.
pub(super) struct LogMark(Vec<(Frontier, usize)>);

impl Logs {
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// Takes the logs up where the store has them. `adopt` starts each from the rows that are there.
    pub fn load(connection: &Connection, sources: &[LogSource], adopt: bool) -> Result<Self, Error> {
        let load = |source: &LogSource| {
            if adopt {
                forget(connection, source).map_err(store_error)?;
            }
            let (stored, frontier) = load(connection, source)?;
            Ok(LiveLog { source: *source, frontier, stored, fingerprints: Vec::new() })
        };
        sources.iter().map(load).collect::<Result<Vec<_>, Error>>().map(Self)
    }

    /// Takes them up again, as a restart does.
    pub fn reload(&mut self, connection: &Connection) -> Result<(), Error> {
        let sources: Vec<LogSource> = self.0.iter().map(|log| log.source).collect();
        *self = Self::load(connection, &sources, false)?;
        Ok(())
    }

    pub fn sources(&self) -> impl Iterator<Item = &LogSource> {
        self.0.iter().map(|log| &log.source)
    }

    /// How many entries all logs have together.
    pub fn entries(&self) -> u64 {
        self.0.iter().map(|live| live.frontier.size()).sum()
    }

    pub fn frontier(&self, log: &str) -> Option<&Frontier> {
        self.0.iter().find(|live| live.source.name == log).map(|live| &live.frontier)
    }

    /// Appends a row that was just inserted. A log that this store does not keep is left alone.
    pub fn append_row(&mut self, log: &str, number: i64, values: &[Cell]) -> Result<(), Failure> {
        match self.0.iter_mut().find(|live| live.source.name == log) {
            Some(live) => live.append(number, leaf_of(log, values)),
            None => Ok(()),
        }
    }

    /// Appends an entry of a hash chain that was just inserted.
    pub fn append_entry(&mut self, chain: &str, number: i64, hash: &str) -> Result<(), Failure> {
        match self.0.iter_mut().find(|live| live.source.chain == Some(chain)) {
            Some(live) => live.append(number, leaf_of(live.source.name, &[hash.into()])),
            None => Ok(()),
        }
    }

    pub fn mark(&self) -> LogMark {
        LogMark(self.0.iter().map(|live| (live.frontier, live.fingerprints.len())).collect())
    }

    pub fn rewind(&mut self, mark: &LogMark) {
        for (live, (frontier, fingerprints)) in self.0.iter_mut().zip(&mark.0) {
            live.frontier = *frontier;
            live.fingerprints.truncate(*fingerprints);
        }
    }

    /// The logs as they are now. Their fingerprints are handed over.
    pub fn take_states(&mut self) -> Vec<LogState> {
        let state = |live: &mut LiveLog| {
            let fingerprints = std::mem::take(&mut live.fingerprints);
            let size = live.frontier.size();
            let from = size - fingerprints.len() as u64;
            LogState {
                log: live.source.name,
                size,
                root: live.frontier.root(),
                fingerprints: (from, fingerprints),
            }
        };
        self.0.iter_mut().map(state).collect()
    }

    /// What stores the frontiers that have changed since the last time.
    pub fn checkpoint(&self) -> Batch {
        let mut batch = Batch::new();
        for live in self.0.iter().filter(|live| live.frontier.size() != live.stored) {
            let name = || Cell::from(live.source.name);
            batch.then(Statement::new(
                "INSERT OR REPLACE INTO merkle_checkpoint (log, size, frontier) VALUES (?1, ?2, ?3)",
                vec![name(), live.frontier.size().cast_signed().into(), live.frontier.to_bytes().into()],
            ));
            batch.then(Statement::new(
                "DELETE FROM merkle_checkpoint WHERE log = ?1 AND size <
                    (SELECT size FROM merkle_checkpoint WHERE log = ?1 ORDER BY size DESC LIMIT 1 OFFSET ?2)",
                vec![name(), limits::CHECKPOINTS_KEPT.into()],
            ));
        }
        batch
    }

    /// The checkpoint is durable.
    pub fn checkpointed(&mut self) {
        self.0.iter_mut().for_each(|live| live.stored = live.frontier.size());
    }
}

impl LiveLog {
    fn append(&mut self, number: i64, leaf: Hash) -> Result<(), Failure> {
        let (log, expected) = (self.source.name, self.frontier.size() + 1);
        if number.unsigned_abs() != expected {
            return Err(Failure::Corrupt(format!(
                "the log `{log}` was changed from outside: its next entry is {expected}, and the row got the number {number}"
            )));
        }
        self.frontier.push(leaf);
        if self.fingerprints.len() >= limits::FINGERPRINTS_MAX {
            self.fingerprints.clear();
        }
        self.fingerprints.extend(leaf.first_chunk::<8>().copied());
        Ok(())
    }
}

/// The newest checkpoint of a log that has at most this size.
pub(super) fn checkpoint_before(
    connection: &Connection,
    log: &str,
    size: u64,
) -> Result<Option<Frontier>, Error> {
    let sql =
        "SELECT frontier FROM merkle_checkpoint WHERE log = ?1 AND size <= ?2 ORDER BY size DESC LIMIT 1";
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    let stored = connection.query_row(sql, params![log, size], |row| row.get::<_, Vec<u8>>(0)).optional();
    let unreadable = || Error::Corrupt(format!("the checkpoint of the log `{log}` cannot be read"));
    stored.map_err(store_error)?.map(|bytes| Frontier::from_bytes(&bytes).ok_or_else(unreadable)).transpose()
}

/// The size at the newest checkpoint, and the frontier at the end.
fn load(connection: &Connection, source: &LogSource) -> Result<(u64, Frontier), Error> {
    let stored = checkpoint_before(connection, source.name, u64::MAX)?;
    let mut frontier = stored.unwrap_or_default();
    let at = frontier.size();
    loop {
        let gap = log_walk::walk(connection, source, &mut frontier, u64::MAX, &mut |_, _| Ok(()))?;
        match gap {
            None => return Ok((at, frontier)),
            // A log that is new takes the rows that are there. Those that are not were deleted before it began.
            Some(Gap::Missing { number, next: Some(next) }) if stored.is_none() => {
                adopt(connection, source, &mut frontier, number, next)?;
            }
            Some(Gap::Missing { number, .. } | Gap::Unexpected { number }) => {
                let log = source.name;
                return Err(Error::Corrupt(format!(
                    "the log `{log}` was changed from outside: entry {number} is missing or was put in"
                )));
            }
        }
    }
}

/// Notes that the entries from one number up to another are not known.
fn adopt(
    connection: &Connection,
    source: &LogSource,
    frontier: &mut Frontier,
    number: u64,
    next: u64,
) -> Result<(), Error> {
    let sql = "INSERT OR REPLACE INTO merkle_pruned (log, start, level, hash) VALUES (?1, ?2, ?3, ?4)";
    for (start, level) in subtrees(number - 1, next - 1) {
        let mut hash = unknown_leaf(source.name);
        for _ in 0..level {
            hash = orchestr8_contract::merkle::node_hash(&hash, &hash);
        }
        connection
            .execute(sql, params![source.name, start.cast_signed(), level, hash])
            .map_err(store_error)?;
        frontier.push_subtree(level, hash, &mut |_, _, _| {});
    }
    Ok(())
}

fn forget(connection: &Connection, source: &LogSource) -> rusqlite::Result<()> {
    for table in ["merkle_checkpoint", "merkle_pruned", "merkle_note"] {
        connection.execute(&format!("DELETE FROM {table} WHERE log = ?1"), [source.name])?;
    }
    Ok(())
}
