//! Deletes old executions, and those that were deleted by hand: their journals first, whose hashes the log keeps, then they themselves.
//!
//! An execution never goes before its journal, so one that is missing while its journal is there was deleted by someone else.

use orchestr8_kernel::ports::store::{Batch, Error, Guard, Store};
use orchestr8_stores::merkle::{LogSource, PrunedSet};
use orchestr8_stores::pruning::PruneRule;
use orchestr8_stores::retention::{SLICE_ROWS, SLICES_MAX};
use orchestr8_workflows::bulk::tables::executions_hidden;
use orchestr8_workflows::merkle::tables;

/// Deletes the executions that were deleted by hand and those that ended before the moment of the rule, and gives how many.
pub async fn prune_executions(
    store: &dyn Store,
    source: &LogSource,
    rule: &PruneRule<'_>,
) -> Result<u64, Error> {
    let covered = i64::try_from(rule.covered).unwrap_or(i64::MAX);
    let mut set = PrunedSet::load(store, source).await?;
    let mut deleted = 0;
    for _ in 0..SLICES_MAX {
        let mut due = store.query(executions_hidden(covered, SLICE_ROWS)).await?;
        if due.is_empty() {
            due = store.query(tables::executions_due(rule.before_ms, covered, SLICE_ROWS)).await?;
        }
        if due.is_empty() {
            break;
        }
        for row in due {
            prune_execution(store, source, rule, &mut set, row.int(0)?).await?;
            deleted += 1;
        }
    }
    Ok(deleted)
}

async fn prune_execution(
    store: &dyn Store,
    source: &LogSource,
    rule: &PruneRule<'_>,
    set: &mut PrunedSet,
    execution: i64,
) -> Result<(), Error> {
    loop {
        let rows = store.query(tables::journal_due(execution, SLICE_ROWS)).await?;
        let mut batch = Batch::new();
        if let Some(oldest) = rows.last() {
            set.add(source, &rows, rule.sign, &mut batch)?;
            batch.steps.push((tables::journal_delete(execution, oldest.int(2)?), Guard::Rows(rows.len())));
        }
        let is_last = i64::try_from(rows.len()).is_ok_and(|count| count < SLICE_ROWS);
        if is_last {
            batch.then(tables::execution_delete(execution));
        }
        store.commit(batch).await?;
        if is_last {
            return Ok(());
        }
    }
}
