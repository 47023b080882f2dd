//! Merkle logs over stored rows: which rows are the leaves, what a check of them found, and which old ones were deleted.
//!
//! The leaves of a log are rows that are numbered 1, 2, 3, … in the order of their commits. Nothing is stored for them: the
//! tree is computed from the rows, and the writer keeps its right edge in memory. Old rows that were deleted leave the hash
//! of their subtree behind (`merkle_pruned`), so that the root of the rest stays the same.

mod pruned;

pub use pruned::PrunedSet;
pub(crate) use pruned::{NODES, hash, level};

use orchestr8_contract::merkle::{Hash, LeafHasher};
use orchestr8_kernel::audit::CHAIN;
use orchestr8_kernel::ports::store::{Cell, Error, Row};

/// The rows that are the leaves of a log, and how they are called in reports.
#[derive(Debug, Clone, Copy)]
pub struct LogSource {
    pub name: &'static str,
    /// The hash chain whose entries are the leaves. None: the rows that batches append with `Batch::then_logged`.
    pub chain: Option<&'static str>,
    /// Columns: the number of an entry, then the values of its leaf in the order in which they were inserted. `?1`: after this
    /// number. `?2`: at most so many. In the order of the numbers.
    pub rows_sql: &'static str,
    /// Column: how people call the entry with the number `?1`.
    pub label_sql: &'static str,
    /// Column: how people call the entry with the number `?1`, which is missing, as far as its neighbours show. No row: nothing
    /// is known.
    pub missing_sql: &'static str,
    /// Other rows that must agree with the leaves.
    pub checks: &'static [RowCheck],
}

/// Compares rows that are no leaves themselves with what the leaves say about them.
#[derive(Debug, Clone, Copy)]
pub struct RowCheck {
    /// First column: a number to go on after. `?1`: after this number. `?2`: at most so many. In the order of the numbers.
    pub sql: &'static str,
    /// What is wrong with a row, if anything.
    pub problem: fn(&Row) -> Result<Option<RowProblem>, Error>,
}

/// A row that does not agree with the leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowProblem {
    /// The entry of the log that it contradicts; 0 if there is none.
    pub number: u64,
    pub label: String,
    pub what: &'static str,
}

/// The log over the audit chain. A leaf has one value: the hash of the entry, which covers all of it.
pub const AUDIT_LOG: LogSource = LogSource {
    name: "audit",
    chain: Some(CHAIN),
    rows_sql: "SELECT seq, entry_hash FROM chain WHERE name = 'actions' AND seq > ?1 ORDER BY seq LIMIT ?2",
    label_sql: "SELECT json_extract(body, '$.action') || ' by ' || json_extract(body, '$.principal')
        FROM chain WHERE name = 'actions' AND seq = ?1 AND json_valid(body)",
    missing_sql: "SELECT NULL WHERE ?1 < 0",
    checks: &[],
};

/// A signed size and root that a log must agree with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownHead {
    pub size: u64,
    pub root: Hash,
    pub at_ms: i64,
}

/// The first bytes of a leaf hash: enough to find which leaf was changed once a root says that one was.
pub type Fingerprint = [u8; 8];

/// The first entry at which a log is not what it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("entry {number} of the log `{log}`{}: {what}", label.as_ref().map(|label| format!(" ({label})")).unwrap_or_default())]
pub struct LogDifference {
    pub log: &'static str,
    /// From 1 on.
    pub number: u64,
    pub label: Option<String>,
    pub what: String,
}

/// What a check of a whole log found.
#[derive(Debug, Clone)]
pub struct LogReport {
    pub log: &'static str,
    pub size: u64,
    pub root: Hash,
    /// How many of the entries were deleted for their age.
    pub pruned: u64,
    /// What is signed about the deleted entries, and the digest that must be in it. None: none were deleted.
    pub pruned_note: Option<(String, Hash)>,
    /// How many signed heads it agrees with.
    pub heads: usize,
    pub difference: Option<LogDifference>,
}

/// A log at one moment.
#[derive(Debug, Clone)]
pub struct LogState {
    pub log: &'static str,
    pub size: u64,
    pub root: Hash,
    /// The fingerprints of the leaves that were appended since they were last asked for, and the index of the first of them.
    pub fingerprints: (u64, Vec<Fingerprint>),
}

/// An entry with its inclusion proof.
#[derive(Debug, Clone)]
pub struct ProvenEntry {
    pub number: u64,
    /// The values of its leaf.
    pub values: Vec<Cell>,
    pub leaf: Hash,
    pub path: Vec<Hash>,
}

/// A piece of a log as it is exported.
#[derive(Debug, Clone)]
pub enum LogPiece {
    Entry { number: u64, values: Vec<Cell>, leaf: Hash },
    Pruned { number: u64, level: u32, hash: Hash },
}

/// The hash of a leaf with these values.
pub fn leaf_of(log: &str, values: &[Cell]) -> Hash {
    let leaf = values.iter().fold(LeafHasher::new(log), |leaf, cell| match cell {
        Cell::Null => leaf.null(),
        Cell::Int(int) => leaf.int(*int),
        Cell::Real(real) => leaf.real(*real),
        Cell::Text(text) => leaf.text(text.as_bytes()),
        Cell::Blob(blob) => leaf.blob(blob),
    });
    leaf.finish()
}

/// The leaf of an entry that was deleted before its log began: of it only the place is known.
pub fn unknown_leaf(log: &str) -> Hash {
    LeafHasher::new(log).finish()
}
