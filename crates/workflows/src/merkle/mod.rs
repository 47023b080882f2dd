//! Journals as leaves of a Merkle log: every entry of every execution, and what an execution was started with.
//!
//! The first row of a journal has the number 0 and is not shown: it says who started which workflow, when and with what, so that
//! the log covers the execution's own row as well. See docs/adr/0040.

pub mod tables;

use orchestr8_contract::canonical;
use orchestr8_kernel::ports::store::{Batch, Error, Row};
use serde::Serialize;

use crate::tables::{JournalRow, NewExecution, execution_insert, journal_append};

/// The log of all journals.
pub const LOG: &str = "journal";

/// Stores a new execution and the row of its journal that covers it.
pub fn insert_execution(batch: &mut Batch, new: NewExecution<'_>) {
    let row = JournalRow {
        execution: new.num,
        seq: 0,
        at_ms: new.created_ms,
        kind: "execution-accepted",
        step: None,
        level: "info",
        data: identity(&Immutable::of(&new)),
        truncated: None,
        record: None,
    };
    batch.then_logged(journal_append(row), LOG);
    batch.then(execution_insert(new));
}

/// What never changes of an execution once it is stored.
struct Immutable<'a> {
    tenant: &'a str,
    id: &'a str,
    workflow: &'a str,
    name: &'a str,
    version: &'a str,
    hash: &'a str,
    priority: i64,
    correlation: &'a str,
    given: &'a str,
    parent: Option<i64>,
    created_ms: i64,
}

impl<'a> Immutable<'a> {
    fn of(new: &'a NewExecution<'_>) -> Self {
        Self {
            tenant: new.tenant,
            id: new.id,
            workflow: new.workflow,
            name: new.name,
            version: new.version,
            hash: new.hash,
            priority: new.priority.into(),
            correlation: new.correlation,
            given: &new.given,
            parent: new.parent,
            created_ms: new.created_ms,
        }
    }

    /// The columns of `tables::ACCEPTED` from the given one on.
    fn read(row: &'a Row, at: usize) -> Result<Self, Error> {
        Ok(Self {
            tenant: row.text(at)?,
            id: row.text(at + 1)?,
            workflow: row.text(at + 2)?,
            name: row.text(at + 3)?,
            version: row.text(at + 4)?,
            hash: row.text(at + 5)?,
            priority: row.int(at + 6)?,
            correlation: row.text(at + 7)?,
            given: row.text(at + 8)?,
            parent: row.int(at + 9).ok(),
            created_ms: row.int(at + 10)?,
        })
    }
}

/// As it stands in the first row of a journal, with the members in the order of their names.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AcceptedEntry<'a> {
    correlation: &'a str,
    created_ms: i64,
    /// The request itself may be large, so its hash stands for it.
    given_sha256: String,
    hash: &'a str,
    id: &'a str,
    name: &'a str,
    parent: Option<i64>,
    priority: i64,
    tenant: &'a str,
    version: &'a str,
    workflow: &'a str,
}

fn identity(of: &Immutable<'_>) -> String {
    canonical::of_sorted(&AcceptedEntry {
        correlation: of.correlation,
        created_ms: of.created_ms,
        given_sha256: canonical::sha256_hex_of(of.given),
        hash: of.hash,
        id: of.id,
        name: of.name,
        parent: of.parent,
        priority: of.priority,
        tenant: of.tenant,
        version: of.version,
        workflow: of.workflow,
    })
}

/// An execution that does not agree with its journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// The number of the entry of the log that it contradicts; 0 if there is none.
    pub number: u64,
    pub execution: String,
    pub what: &'static str,
}

/// Compares a row of `tables::ACCEPTED`.
pub fn check_accepted(row: &Row) -> Result<Option<Contradiction>, Error> {
    let (number, data) = (row.int(0)?.unsigned_abs(), row.text(1)?);
    let known: serde_json::Value = serde_json::from_str(data).unwrap_or_default();
    let execution = known["id"].as_str().unwrap_or("?").to_owned();
    let found = |what| Ok(Some(Contradiction { number, execution, what }));
    if row.int(2).is_err() {
        return found("the execution was deleted, and not for its age");
    }
    if identity(&Immutable::read(row, 3)?) != data {
        return found("the execution's row was changed: who started it, with what, or when");
    }
    Ok(None)
}

/// Compares a row of `tables::accepted_of`: what is wrong with the row of the execution, if anything.
pub fn check_start(row: &Row) -> Result<Option<&'static str>, Error> {
    if row.int(0).is_ok() {
        return Ok(check_accepted(row)?.map(|found| found.what));
    }
    // Executions from before there were such entries have none.
    let is_old = row.int(14).is_err() || row.int(2)? < row.int(14)?;
    Ok((!is_old).then_some("the log has no entry of its start"))
}

/// Compares a row of `tables::UNRECORDED`.
pub fn check_unrecorded(row: &Row) -> Result<Option<Contradiction>, Error> {
    let what = "the execution was put in: the log has no entry of its start";
    Ok(Some(Contradiction { number: 0, execution: row.text(1)?.to_owned(), what }))
}

/// Compares a row of `tables::ENDED`.
pub fn check_ended(row: &Row) -> Result<Option<Contradiction>, Error> {
    let end = row.optional_text(3)?;
    let agrees = match row.text(2)? {
        "completed" => end == Some("execution-complete"),
        "compensated" => end == Some("execution-compensated"),
        _ => !matches!(end, Some("execution-complete" | "execution-compensated")),
    };
    let what = "the status of the execution was changed: its journal says otherwise";
    let number = row.int(4)?.unsigned_abs();
    Ok((!agrees).then_some(Contradiction { number, execution: row.text(1)?.to_owned(), what }))
}
