//! Retention: deletes what is old enough, in slices, so that nobody who writes waits long.
//!
//! A database reuses the space of deleted rows. The file itself shrinks only when asked, see `Sqlite::shrink`.

use orchestr8_kernel::ports::store::{Batch, Error, Statement, Store};

/// Rows deleted in one commit: about a millisecond or two of the writer's time.
pub const SLICE_ROWS: i64 = 500;

/// Slices of one sweep in one go; what is left is due the next time.
pub const SLICES_MAX: usize = 2_000;

/// What may go, and when. Both statements take the moment before which rows are old (`?1`, milliseconds since 1970) and the
/// most rows to take (`?2`), and mean the same rows:
///
/// ```sql
/// SELECT COUNT(*) FROM (SELECT 1 FROM journal WHERE at_ms < ?1 LIMIT ?2)
/// DELETE FROM journal WHERE id IN (SELECT id FROM journal WHERE at_ms < ?1 ORDER BY at_ms LIMIT ?2)
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sweep {
    pub name: &'static str,
    pub keep_ms: i64,
    pub count_sql: &'static str,
    pub delete_sql: &'static str,
}

/// What a sweep did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Swept {
    pub name: &'static str,
    pub rows: u64,
    /// Nothing old is left.
    pub done: bool,
}

/// Runs the sweeps one after the other. The app calls it every now and then.
pub async fn sweep(store: &dyn Store, sweeps: &[Sweep], now_ms: i64) -> Result<Vec<Swept>, Error> {
    let mut report = Vec::with_capacity(sweeps.len());
    for sweep in sweeps {
        report.push(run(store, sweep, now_ms.saturating_sub(sweep.keep_ms)).await?);
    }
    Ok(report)
}

async fn run(store: &dyn Store, sweep: &Sweep, before_ms: i64) -> Result<Swept, Error> {
    let mut swept = Swept { name: sweep.name, rows: 0, done: false };
    for _ in 0..SLICES_MAX {
        let cells = || vec![before_ms.into(), SLICE_ROWS.into()];
        let counted = store.query(Statement::new(sweep.count_sql, cells())).await?;
        let due = counted.first().map_or(Ok(0), |row| row.int(0))?;
        if due > 0 {
            let mut batch = Batch::new();
            batch.then(Statement::new(sweep.delete_sql, cells()));
            store.commit(batch).await?;
            swept.rows += due.unsigned_abs();
        }
        if due < SLICE_ROWS {
            swept.done = true;
            break;
        }
    }
    Ok(swept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrations::Migration;
    use crate::sqlite::Simulated;

    const TABLE: Migration = Migration {
        name: "test/0001-note",
        sql: "CREATE TABLE note (id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL) STRICT;
              CREATE INDEX note_at ON note (at_ms);",
    };

    const NOTES: Sweep = Sweep {
        name: "notes",
        keep_ms: 1_000,
        count_sql: "SELECT COUNT(*) FROM (SELECT 1 FROM note WHERE at_ms < ?1 LIMIT ?2)",
        delete_sql: "DELETE FROM note WHERE id IN (SELECT id FROM note WHERE at_ms < ?1 ORDER BY at_ms LIMIT ?2)",
    };

    async fn filled(old: i64, young: i64) -> Simulated {
        let store = Simulated::faultless(&[TABLE]).unwrap();
        for (count, at_ms) in [(old, 4_999), (young, 5_000)] {
            let mut batch = Batch::new();
            for _ in 0..count {
                batch.then_one(Statement::new("INSERT INTO note (at_ms) VALUES (?1)", vec![at_ms.into()]));
            }
            store.commit(batch).await.unwrap();
        }
        store
    }

    async fn left(store: &Simulated) -> i64 {
        let rows = store.query(Statement::new("SELECT COUNT(*) FROM note", vec![])).await.unwrap();
        rows[0].int(0).unwrap()
    }

    #[tokio::test]
    async fn the_old_go_in_slices_and_the_young_stay() {
        let old = SLICE_ROWS * 3 + 7;
        let store = filled(old, 5).await;
        let swept = sweep(&store, &[NOTES], 6_000).await.unwrap();
        assert_eq!(swept, [Swept { name: "notes", rows: old.unsigned_abs(), done: true }]);
        assert_eq!(left(&store).await, 5);
        assert_eq!(sweep(&store, &[NOTES], 6_000).await.unwrap()[0].rows, 0);
    }

    #[tokio::test]
    async fn a_statement_that_deletes_nothing_does_not_go_on_for_ever() {
        let store = filled(SLICE_ROWS, 0).await;
        let idle = Sweep { delete_sql: "DELETE FROM note WHERE at_ms < ?1 AND id < ?2 AND 0", ..NOTES };
        let swept = sweep(&store, &[idle], 6_000).await.unwrap();
        assert!(!swept[0].done);
        assert_eq!(left(&store).await, SLICE_ROWS);
    }
}
