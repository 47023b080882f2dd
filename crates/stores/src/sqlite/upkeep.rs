//! Upkeep on the writer's connection, between two groups, and a look at how statements are carried out.

use orchestr8_kernel::ports::store::Error;
use rusqlite::Connection;

use super::errors::store_error;

/// Gives freed pages back to the file system and tells how many.
pub(super) fn shrink(connection: &Connection, pages_max: u32) -> Result<u32, Error> {
    let shrink = || {
        let pages = || connection.pragma_query_value(None, "page_count", |row| row.get::<_, u32>(0));
        let before = pages()?;
        // The statement works while it is stepped: one step for each page.
        let mut statement = connection.prepare(&format!("PRAGMA incremental_vacuum({pages_max})"))?;
        let mut rows = statement.raw_query();
        while rows.next()?.is_some() {}
        drop(rows);
        Ok(before.saturating_sub(pages()?))
    };
    shrink().map_err(store_error)
}

/// The steps by which the rows of a statement are found. Nothing is done; what it would be done with does not matter.
pub(super) fn plan(connection: &Connection, sql: &str) -> Result<Vec<String>, Error> {
    let plan = || {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
        statement.raw_query().mapped(|row| row.get(3)).collect::<Result<Vec<String>, _>>()
    };
    plan().map_err(store_error)
}
