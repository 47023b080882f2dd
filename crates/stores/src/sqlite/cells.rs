//! Cells in and out of SQLite: binding a statement, reading its rows, and refusing what is not one plain statement.

use orchestr8_kernel::ports::store::{Cell, Error, Row, Statement};
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection};

use super::errors::{Failure, store_error};
use super::limits;

/// Reads all rows of a statement that changes nothing.
pub(super) fn read(connection: &Connection, statement: &Statement) -> Result<Vec<Row>, Error> {
    let mut prepared = prepare(connection, statement, &["SELECT", "WITH", "VALUES"])?;
    if !prepared.readonly() {
        return Err(Error::Refused(String::from("a query must not change anything")));
    }
    let columns = prepared.column_count();
    let mut rows = prepared.raw_query();
    let (mut answer, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next().map_err(store_error)? {
        let mut cells = Vec::with_capacity(columns);
        for column in 0..columns {
            let cell = cell(row.get_ref(column).map_err(store_error)?)?;
            bytes += cell_bytes(&cell);
            cells.push(cell);
        }
        if answer.len() == limits::ANSWER_ROWS_MAX || bytes > limits::ANSWER_BYTES_MAX {
            return Err(Error::Refused(format!(
                "the answer exceeds {} rows or {} bytes; ask for it page by page",
                limits::ANSWER_ROWS_MAX,
                limits::ANSWER_BYTES_MAX
            )));
        }
        answer.push(Row(cells));
    }
    Ok(answer)
}

/// Runs a statement that changes something and tells how many rows it changed.
pub(super) fn change(connection: &Connection, statement: &Statement) -> Result<usize, Failure> {
    let mut prepared = prepare(connection, statement, &["INSERT", "UPDATE", "DELETE", "REPLACE", "WITH"])?;
    if prepared.readonly() {
        return Err(Failure::Refused(String::from(
            "a step of a batch must change something; ask with query",
        )));
    }
    prepared.raw_execute().map_err(|error| Failure::of(&error))
}

/// The bytes a cell carries, for limits.
pub(super) fn cell_bytes(cell: &Cell) -> usize {
    match cell {
        Cell::Null => 1,
        Cell::Int(_) | Cell::Real(_) => 8,
        Cell::Text(text) => text.len(),
        Cell::Blob(blob) => blob.len(),
    }
}

fn prepare<'a>(
    connection: &'a Connection,
    statement: &Statement,
    verbs: &[&str],
) -> Result<CachedStatement<'a>, Failure> {
    // Neither a batch nor a query may end the transaction it runs in, attach a file or turn a setting.
    if !verbs.iter().any(|verb| starts_with(&statement.sql, verb)) {
        return Err(Failure::Refused(format!("a statement must begin with one of {}", verbs.join(", "))));
    }
    let mut prepared = connection.prepare_cached(&statement.sql).map_err(|error| Failure::of(&error))?;
    let (wanted, given) = (prepared.parameter_count(), statement.cells.len());
    if wanted != given {
        return Err(Failure::Refused(format!(
            "the statement takes {wanted} parameters and was given {given}"
        )));
    }
    for (index, cell) in statement.cells.iter().enumerate() {
        if matches!(cell, Cell::Real(real) if real.is_nan()) {
            return Err(Failure::Refused(format!("parameter {} is not a number", index + 1)));
        }
        prepared.raw_bind_parameter(index + 1, Bound(cell)).map_err(|error| Failure::of(&error))?;
    }
    Ok(prepared)
}

fn starts_with(sql: &str, verb: &str) -> bool {
    let sql = sql.trim_start().as_bytes();
    sql.get(..verb.len()).is_some_and(|start| start.eq_ignore_ascii_case(verb.as_bytes()))
        && !sql.get(verb.len()).is_some_and(u8::is_ascii_alphanumeric)
}

pub(super) fn cell(value: ValueRef<'_>) -> Result<Cell, Error> {
    Ok(match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(int) => Cell::Int(int),
        ValueRef::Real(real) => Cell::Real(real),
        ValueRef::Text(text) => match std::str::from_utf8(text) {
            Ok(text) => Cell::from(text),
            Err(error) => return Err(Error::Corrupt(format!("stored text is not UTF-8: {error}"))),
        },
        ValueRef::Blob(blob) => Cell::Blob(blob.to_vec()),
    })
}

struct Bound<'a>(&'a Cell);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Cell::Null => ValueRef::Null,
            Cell::Int(int) => ValueRef::Integer(*int),
            Cell::Real(real) => ValueRef::Real(*real),
            Cell::Text(text) => ValueRef::Text(text.as_bytes()),
            Cell::Blob(blob) => ValueRef::Blob(blob),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_verbs_count() {
        assert!(starts_with("  insert into t", "INSERT"));
        assert!(starts_with("SELECT*FROM t", "SELECT"));
        assert!(starts_with("VALUES(1)", "VALUES"));
        assert!(!starts_with("INSERTED", "INSERT"));
        assert!(!starts_with("IN", "INSERT"));
        assert!(!starts_with("", "INSERT"));
    }

    #[test]
    fn text_that_is_not_utf8_is_damage() {
        let connection = Connection::open_in_memory().unwrap();
        let question = Statement::new("SELECT CAST(x'ff' AS TEXT)", vec![]);
        assert!(matches!(read(&connection, &question), Err(Error::Corrupt(_))));
    }
}
