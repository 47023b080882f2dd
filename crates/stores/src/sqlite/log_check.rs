//! Checks Merkle logs against signed heads, and gives inclusion and consistency proofs and exports of them.

use orchestr8_contract::merkle::{Frontier, Hash, PathCollector};
use orchestr8_kernel::ports::store::{Error, Row};
use rusqlite::{Connection, OptionalExtension, params};

use super::errors::store_error;
use super::log_walk::{self, Gap, Visited};
use super::{cells, limits, logs};
use crate::merkle::{
    Fingerprint, KnownHead, LogDifference, LogPiece, LogReport, LogSource, ProvenEntry, RowCheck,
};

/// The fingerprint that the leaf with an index had when it was appended, if that is known.
pub type Fingerprints<'a> = &'a dyn Fn(u64) -> Option<Fingerprint>;

/// The root of a log when it had a size, and its frontier now. Rows before the newest checkpoint of at most that size are not
/// read.
pub(super) fn replay(
    connection: &Connection,
    source: &LogSource,
    size: u64,
) -> Result<Result<(Hash, Frontier), LogDifference>, Error> {
    in_snapshot(connection, || {
        let from = logs::checkpoint_before(connection, source.name, size)?.unwrap_or_default();
        let first = replay_from(connection, source, from, size)?;
        match first {
            // Rows around the checkpoint may have been deleted for their age since.
            Err(_) if from.size() > 0 => replay_from(connection, source, Frontier::new(), size),
            Ok(_) | Err(_) => Ok(first),
        }
    })
}

fn replay_from(
    connection: &Connection,
    source: &LogSource,
    mut frontier: Frontier,
    size: u64,
) -> Result<Result<(Hash, Frontier), LogDifference>, Error> {
    let walked = log_walk::walk(connection, source, &mut frontier, size, &mut |_, _| Ok(()))?;
    if let Some(gap) = walked {
        return Ok(Err(difference(connection, source, &gap)));
    }
    if frontier.size() != size {
        return Ok(Err(truncated(source, frontier.size(), size)));
    }
    let root = frontier.root();
    let rest = log_walk::walk(connection, source, &mut frontier, u64::MAX, &mut |_, _| Ok(()))?;
    Ok(match rest {
        Some(gap) => Err(difference(connection, source, &gap)),
        None => Ok((root, frontier)),
    })
}

/// Computes the whole log from its rows, and compares it with the heads, which are in the order of their sizes.
pub(super) fn verify(
    connection: &Connection,
    source: &LogSource,
    heads: &[KnownHead],
    fingerprints: Fingerprints<'_>,
) -> Result<LogReport, Error> {
    in_snapshot(connection, || {
        let mut comparison = Comparison { heads, at: 0, agreed: 0, wrong_head: None, changed: None };
        let (mut frontier, mut pruned) = (Frontier::new(), 0);
        let gap = log_walk::walk(connection, source, &mut frontier, u64::MAX, &mut |frontier, visited| {
            match visited {
                Visited::Entry { number, leaf, .. } => comparison.leaf(number, &leaf, fingerprints),
                Visited::Pruned { level, .. } => pruned += 1 << level,
            }
            comparison.frontier(frontier);
            Ok(())
        })?;
        let set = log_walk::pruned(connection, source)?;
        let note = (!set.is_empty()).then(|| note(connection, source)).transpose()?;
        let mut difference = comparison.difference(connection, source, frontier.size(), gap.as_ref());
        if difference.is_none() {
            difference = contradiction(connection, source)?;
        }
        Ok(LogReport {
            log: source.name,
            size: frontier.size(),
            root: frontier.root(),
            pruned,
            pruned_note: note.map(|note| (note.unwrap_or_default(), set.digest())),
            heads: comparison.agreed,
            difference,
        })
    })
}

/// Proves entries in the log as it was when it had a size. None: the log does not have one of the entries.
pub(super) fn prove(
    connection: &Connection,
    source: &LogSource,
    numbers: &[u64],
    size: u64,
) -> Result<Option<(Hash, Vec<ProvenEntry>)>, Error> {
    let indexes: Vec<u64> = numbers.iter().map(|number| number.saturating_sub(1)).collect();
    in_snapshot(connection, || {
        let mut collector = PathCollector::new(&indexes, size);
        let mut entries = Vec::new();
        let gap = log_walk::walk(connection, source, &mut Frontier::new(), size, &mut |_, visited| {
            let fits = match &visited {
                Visited::Entry { number, leaf, row } => {
                    if numbers.contains(number) {
                        let values = log_walk::values(row)?;
                        entries.push(ProvenEntry { number: *number, values, leaf: *leaf, path: Vec::new() });
                    }
                    collector.push_subtree(0, *leaf)
                }
                Visited::Pruned { level, hash, .. } => collector.push_subtree(*level, *hash),
            };
            fits.then_some(()).ok_or_else(|| Error::Corrupt(String::from("the log does not fit together")))
        })?;
        if gap.is_some() || entries.len() != numbers.len() || collector.frontier().size() != size {
            return Ok(None);
        }
        for entry in &mut entries {
            entry.path = collector.path(entry.number - 1).unwrap_or_default();
        }
        Ok(Some((collector.frontier().root(), entries)))
    })
}

/// Proves that a log has grown from one size to another. Rows before the newest checkpoint of at most the first size are not read.
/// None: it does not have the second size, or what the proof needs was deleted for its age.
pub(super) fn prove_growth(
    connection: &Connection,
    source: &LogSource,
    (from, to): (u64, u64),
) -> Result<Option<Vec<Hash>>, Error> {
    in_snapshot(connection, || {
        let mut frontier = logs::checkpoint_before(connection, source.name, from)?.unwrap_or_default();
        let mut collector = PathCollector::between(frontier, from, to);
        let gap = log_walk::walk(connection, source, &mut frontier, to, &mut |_, visited| {
            let fits = match visited {
                Visited::Entry { leaf, .. } => collector.push_subtree(0, leaf),
                Visited::Pruned { level, hash, .. } => collector.push_subtree(level, hash),
            };
            fits.then_some(()).ok_or_else(|| Error::Corrupt(String::from("the log does not fit together")))
        })?;
        Ok(collector.consistency(from).filter(|_| gap.is_none()))
    })
}

/// Shows every entry and every deleted subtree of a log.
pub(super) fn export(
    connection: &Connection,
    source: &LogSource,
    piece: &mut dyn FnMut(LogPiece) -> Result<(), Error>,
) -> Result<Option<LogDifference>, Error> {
    in_snapshot(connection, || {
        let walked = log_walk::walk(connection, source, &mut Frontier::new(), u64::MAX, &mut |_, visited| {
            piece(visited.piece()?)
        });
        Ok(walked?.map(|gap| difference(connection, source, &gap)))
    })
}

/// What is signed about the deleted entries of a log.
pub(super) fn note(connection: &Connection, source: &LogSource) -> Result<Option<String>, Error> {
    let sql = "SELECT note FROM merkle_note WHERE log = ?1";
    connection.query_row(sql, [source.name], |row| row.get(0)).optional().map_err(store_error)
}

/// All of it at one moment, whatever is written meanwhile.
fn in_snapshot<T>(connection: &Connection, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let transaction = connection.unchecked_transaction().map_err(store_error)?;
    let done = work()?;
    transaction.finish().map_err(store_error)?;
    Ok(done)
}

struct Comparison<'a> {
    heads: &'a [KnownHead],
    /// The next head to compare with.
    at: usize,
    agreed: usize,
    wrong_head: Option<KnownHead>,
    /// The first entry that is not what it was when it was appended.
    changed: Option<u64>,
}

impl Comparison<'_> {
    fn leaf(&mut self, number: u64, leaf: &Hash, fingerprints: Fingerprints<'_>) {
        if self.changed.is_none()
            && let Some(known) = fingerprints(number - 1)
            && leaf.first_chunk::<8>() != Some(&known)
        {
            self.changed = Some(number);
        }
    }

    fn frontier(&mut self, frontier: &Frontier) {
        while let Some(head) = self.heads.get(self.at).filter(|head| head.size <= frontier.size()) {
            self.at += 1;
            // What a head inside a deleted subtree says can no longer be computed; a later head covers it.
            if head.size == frontier.size() && self.wrong_head.is_none() {
                match head.root == frontier.root() {
                    true => self.agreed += 1,
                    false => self.wrong_head = Some(*head),
                }
            }
        }
    }

    fn difference(
        &self,
        connection: &Connection,
        source: &LogSource,
        size: u64,
        gap: Option<&Gap>,
    ) -> Option<LogDifference> {
        let named = |number, what: String| {
            let label = log_walk::label(connection, source.label_sql, number);
            Some(LogDifference { log: source.name, number, label, what })
        };
        let covered = self.heads.last().map_or(0, |head| head.size);
        let missing = gap.map(|gap| difference(connection, source, gap));
        let is_wrong = self.wrong_head.is_some() || gap.is_some() || size < covered;
        if let Some(number) = self.changed.filter(|_| is_wrong)
            && missing.as_ref().is_none_or(|missing| number < missing.number)
        {
            return named(number, String::from("it is not the entry that was recorded under this number"));
        }
        if let Some(head) = self.wrong_head {
            let before =
                self.heads.iter().rev().find(|other| other.size < head.size).map_or(0, |other| other.size);
            let what = format!(
                "it or another entry up to {} is not what a signed head covers; entries up to {before} are",
                head.size
            );
            return named(before + 1, what);
        }
        missing.or_else(|| (size < covered).then(|| truncated(source, size, covered)))
    }
}

fn difference(connection: &Connection, source: &LogSource, gap: &Gap) -> LogDifference {
    let (number, sql, what) = match gap {
        Gap::Missing { number, .. } => {
            (*number, source.missing_sql, "it is missing and was not deleted for its age")
        }
        Gap::Unexpected { number } => (*number, source.label_sql, "it was put in: the log has no such entry"),
    };
    let label = log_walk::label(connection, sql, number);
    LogDifference { log: source.name, number, label, what: what.to_owned() }
}

fn truncated(source: &LogSource, size: u64, covered: u64) -> LogDifference {
    let what = format!("it is missing: the log ends with entry {size}, and a signed head covers {covered}");
    LogDifference { log: source.name, number: size + 1, label: None, what }
}

/// The first row that does not agree with the leaves.
fn contradiction(connection: &Connection, source: &LogSource) -> Result<Option<LogDifference>, Error> {
    for check in source.checks {
        if let Some(found) = problem(connection, check)? {
            return Ok(Some(LogDifference {
                log: source.name,
                number: found.number,
                label: Some(found.label),
                what: found.what.to_owned(),
            }));
        }
    }
    Ok(None)
}

fn problem(connection: &Connection, check: &RowCheck) -> Result<Option<crate::merkle::RowProblem>, Error> {
    let mut statement = connection.prepare_cached(check.sql).map_err(store_error)?;
    let columns = statement.column_count();
    let mut after = i64::MIN;
    loop {
        let mut rows = statement.query(params![after, limits::VERIFY_SLICE]).map_err(store_error)?;
        let mut taken = 0;
        while let Some(row) = rows.next().map_err(store_error)? {
            let cells = (0..columns).map(|column| cells::cell(row.get_ref(column).map_err(store_error)?));
            let row = Row(cells.collect::<Result<_, Error>>()?);
            if let Some(problem) = (check.problem)(&row)? {
                return Ok(Some(problem));
            }
            after = row.int(0)?;
            taken += 1;
        }
        if taken < limits::VERIFY_SLICE {
            return Ok(None);
        }
    }
}
