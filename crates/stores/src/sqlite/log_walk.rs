//! Goes through a Merkle log from the store: its rows in their order, and the hashes of those that were deleted for their age.

use std::collections::VecDeque;

use orchestr8_contract::merkle::{Frontier, Hash, LeafHasher};
use orchestr8_kernel::ports::store::{Cell, Error};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::errors::store_error;
use super::{cells, limits};
use crate::merkle::{LogPiece, LogSource, PrunedSet};

/// Why a walk ended before the end of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Gap {
    /// The entry is not there, and was not deleted for its age. The next one that is there, if any.
    Missing { number: u64, next: Option<u64> },
    /// There is an entry where the log has none.
    Unexpected { number: u64 },
}

/// What comes next in a log.
pub(super) enum Visited<'a> {
    Entry { number: u64, leaf: Hash, row: &'a Row<'a> },
    Pruned { number: u64, level: u32, hash: Hash },
}

impl Visited<'_> {
    pub fn piece(&self) -> Result<LogPiece, Error> {
        Ok(match self {
            Visited::Entry { number, leaf, row } => {
                LogPiece::Entry { number: *number, values: values(row)?, leaf: *leaf }
            }
            Visited::Pruned { number, level, hash } => {
                LogPiece::Pruned { number: *number, level: *level, hash: *hash }
            }
        })
    }
}

/// The values of a leaf; the first column is the number.
pub(super) fn values(row: &Row<'_>) -> Result<Vec<Cell>, Error> {
    let columns = row.as_ref().column_count();
    (1..columns).map(|column| cells::cell(row.get_ref(column).map_err(store_error)?)).collect()
}

/// Goes on from a frontier to the end of the log, or until it has this size. Every entry and every deleted subtree is shown
/// together with the frontier after it.
pub(super) fn walk(
    connection: &Connection,
    source: &LogSource,
    frontier: &mut Frontier,
    until: u64,
    visit: &mut dyn FnMut(&Frontier, Visited<'_>) -> Result<(), Error>,
) -> Result<Option<Gap>, Error> {
    let mut pruned = nodes(connection, source, frontier.size())?;
    let mut rows_sql = connection.prepare_cached(source.rows_sql).map_err(store_error)?;
    loop {
        let after = frontier.size().cast_signed();
        let mut rows = rows_sql.query(params![after, limits::VERIFY_SLICE]).map_err(store_error)?;
        let mut taken = 0;
        while let Some(row) = rows.next().map_err(store_error)? {
            let number: i64 = row.get(0).map_err(store_error)?;
            let number = number.unsigned_abs();
            skip_pruned(frontier, &mut pruned, until, visit)?;
            if frontier.size() >= until {
                return Ok(None);
            }
            let expected = frontier.size() + 1;
            if number < expected {
                return Ok(Some(Gap::Unexpected { number }));
            }
            if number > expected {
                return Ok(Some(Gap::Missing { number: expected, next: Some(number) }));
            }
            let leaf = leaf(source.name, row)?;
            frontier.push(leaf);
            visit(frontier, Visited::Entry { number, leaf, row })?;
            taken += 1;
        }
        if taken < limits::VERIFY_SLICE {
            break;
        }
    }
    skip_pruned(frontier, &mut pruned, until, visit)?;
    match pruned.front() {
        Some(_) if frontier.size() < until => {
            Ok(Some(Gap::Missing { number: frontier.size() + 1, next: None }))
        }
        Some(_) | None => Ok(None),
    }
}

/// The name that people know an entry by.
pub(super) fn label(connection: &Connection, sql: &str, number: u64) -> Option<String> {
    let find = || {
        let mut statement = connection.prepare_cached(sql)?;
        statement.query_row([number.cast_signed()], |row| row.get::<_, Option<String>>(0)).optional()
    };
    // Damage may well be in the way of a name; the number is named all the same.
    find().ok().flatten().flatten()
}

/// The subtrees that were deleted, from an index on.
pub(super) fn nodes(
    connection: &Connection,
    source: &LogSource,
    from: u64,
) -> Result<VecDeque<(u64, u32, Hash)>, Error> {
    let mut statement = connection.prepare_cached(crate::merkle::NODES).map_err(store_error)?;
    let mut rows = statement.query([source.name]).map_err(store_error)?;
    let mut found = VecDeque::new();
    while let Some(row) = rows.next().map_err(store_error)? {
        let start: i64 = row.get(0).map_err(store_error)?;
        let (start, level) = (start.unsigned_abs(), row.get(1).map_err(store_error)?);
        let hash: Vec<u8> = row.get(2).map_err(store_error)?;
        if start >= from {
            found.push_back((start, crate::merkle::level(level)?, crate::merkle::hash(&hash)?));
        }
    }
    Ok(found)
}

/// All subtrees that were deleted.
pub(super) fn pruned(connection: &Connection, source: &LogSource) -> Result<PrunedSet, Error> {
    Ok(PrunedSet::of(nodes(connection, source, 0)?))
}

fn skip_pruned(
    frontier: &mut Frontier,
    pruned: &mut VecDeque<(u64, u32, Hash)>,
    until: u64,
    visit: &mut dyn FnMut(&Frontier, Visited<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    while let Some((_, level, hash)) =
        pruned.pop_front_if(|(start, level, _)| *start == frontier.size() && *start + (1 << *level) <= until)
    {
        let number = frontier.size() + 1;
        if !frontier.push_subtree(level, hash, &mut |_, _, _| {}) {
            return Err(Error::Corrupt(String::from("a deleted subtree of a log does not fit in its place")));
        }
        visit(frontier, Visited::Pruned { number, level, hash })?;
    }
    Ok(())
}

fn leaf(log: &str, row: &Row<'_>) -> Result<Hash, Error> {
    let mut leaf = LeafHasher::new(log);
    for column in 1..row.as_ref().column_count() {
        leaf = match row.get_ref(column).map_err(store_error)? {
            ValueRef::Null => leaf.null(),
            ValueRef::Integer(int) => leaf.int(int),
            ValueRef::Real(real) => leaf.real(real),
            ValueRef::Text(text) => leaf.text(text),
            ValueRef::Blob(blob) => leaf.blob(blob),
        };
    }
    Ok(leaf.finish())
}
