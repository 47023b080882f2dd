//! Proves that what is stored is sound: the file's structure, its references, its hash chains.

use orchestr8_kernel::ports::store::Error;
use rusqlite::{Connection, params};

use super::errors::{Failure, store_error};
use super::limits;
use crate::chain::{self, Broken, Prover, Verified};

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckReport {
    /// Damaged pages and indexes, and references to rows that are not there; at most a hundred.
    pub problems: Vec<String>,
    pub chains: Vec<CheckedChain>,
}

/// One hash chain and whether it is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedChain {
    pub name: String,
    pub state: Result<Verified, Broken>,
}

impl CheckReport {
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty() && self.chains.iter().all(|chain| chain.state.is_ok())
    }
}

pub(super) fn run(connection: &Connection) -> CheckReport {
    let mut report = CheckReport::default();
    match integrity(connection).and_then(|mut problems| {
        problems.extend(references(connection)?);
        Ok(problems)
    }) {
        Ok(problems) => report.problems = problems,
        // A file damaged enough stops the check itself; that is a finding too.
        Err(error) => report.problems.push(error.to_string()),
    }
    match chains(connection) {
        Ok(chains) => report.chains = chains,
        Err(error) => report.problems.push(error.to_string()),
    }
    report.problems.truncate(limits::PROBLEMS_MAX);
    report
}

/// Damage to the structure of the file.
pub(super) fn integrity(connection: &Connection) -> Result<Vec<String>, Error> {
    let run = || {
        let mut statement =
            connection.prepare(&format!("PRAGMA integrity_check({})", limits::PROBLEMS_MAX))?;
        let found = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
        Ok(if found == ["ok"] { Vec::new() } else { found })
    };
    run().map_err(store_error)
}

/// Proves one chain whole, in slices, so that a long one does not hold back the log.
pub(super) fn verify(connection: &Connection, name: &str) -> Result<Verified, chain::Error> {
    /// Before every entry.
    const BEGINNING: i64 = i64::MIN;
    let mut prover = Prover::new();
    let mut after = BEGINNING;
    loop {
        match verify_slice(connection, name, &mut after, &mut prover) {
            Ok(taken) if taken < limits::VERIFY_SLICE => return Ok(prover.finish()?),
            Ok(_) => {}
            // What came next was deleted for its age between two slices: what is left is proved from where it begins.
            Err(chain::Error::Broken(_)) if after != BEGINNING && begins_after(connection, name, after)? => {
                prover = Prover::new();
                after = BEGINNING;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Whether nothing is left of a chain up to the entry after this one.
fn begins_after(connection: &Connection, name: &str, seq: i64) -> Result<bool, Error> {
    let first = connection
        .prepare_cached("SELECT MIN(seq) FROM chain WHERE name = ?1")
        .and_then(|mut statement| statement.query_row([name], |row| row.get::<_, Option<i64>>(0)));
    let first = first.map_err(store_error)?;
    Ok(first.is_some_and(|first| first > seq.saturating_add(1)))
}

fn verify_slice(
    connection: &Connection,
    name: &str,
    after: &mut i64,
    prover: &mut Prover,
) -> Result<i64, chain::Error> {
    let mut statement = connection
        .prepare_cached(
            "SELECT seq, at_ms, body, prev_hash, entry_hash FROM chain
             WHERE name = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
        )
        .map_err(store_error)?;
    let mut rows = statement.query(params![name, *after, limits::VERIFY_SLICE]).map_err(store_error)?;
    let mut taken = 0;
    while let Some(row) = rows.next().map_err(store_error)? {
        let column = |index| row.get_ref(index).map_err(store_error);
        let damaged = |_| Broken { seq: prover.seq() + 1, what: "a column holds another type" };
        let entry = chain::Entry {
            seq: column(0)?.as_i64().map_err(damaged)?,
            at_ms: column(1)?.as_i64().map_err(damaged)?,
            body: column(2)?.as_bytes().map_err(damaged)?,
            prev_hash: column(3)?.as_bytes().map_err(damaged)?,
            entry_hash: column(4)?.as_bytes().map_err(damaged)?,
        };
        prover.take(entry)?;
        *after = entry.seq;
        taken += 1;
    }
    Ok(taken)
}

fn references(connection: &Connection) -> Result<Vec<String>, Error> {
    let run = || {
        let mut statement = connection.prepare(&format!(
            "SELECT \"table\", rowid, parent FROM pragma_foreign_key_check LIMIT {}",
            limits::PROBLEMS_MAX
        ))?;
        let rows = statement.query_map([], |row| {
            let (table, row_id, parent): (String, Option<i64>, String) =
                (row.get(0)?, row.get(1)?, row.get(2)?);
            let row_id = row_id.map_or_else(String::new, |row_id| format!(" {row_id}"));
            Ok(format!("row{row_id} of `{table}` refers to a row of `{parent}` that is not there"))
        })?;
        rows.collect::<Result<Vec<_>, _>>()
    };
    run().map_err(store_error)
}

fn chains(connection: &Connection) -> Result<Vec<CheckedChain>, Error> {
    let mut chains = Vec::new();
    let mut before = None;
    while let Some(name) = next_chain(connection, before.as_deref()).map_err(|error| Failure::of(&error))? {
        let state = match verify(connection, &name) {
            Ok(verified) => Ok(verified),
            Err(chain::Error::Broken(broken)) => Err(broken),
            Err(chain::Error::Store(error)) => return Err(error),
        };
        chains.push(CheckedChain { name: name.clone(), state });
        before = Some(name);
    }
    Ok(chains)
}

/// One look into the index for each name, however long the chains are.
fn next_chain(connection: &Connection, after: Option<&str>) -> rusqlite::Result<Option<String>> {
    // No name comes before the empty one, so it is looked for by itself.
    let sql = "SELECT MIN(name) FROM chain WHERE name > ?1 OR (?2 AND name = ?1)";
    connection.prepare_cached(sql)?.query_row(params![after.unwrap_or(""), after.is_none()], |row| row.get(0))
}
