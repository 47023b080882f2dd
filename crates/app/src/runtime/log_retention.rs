//! Deletes old executions: their journals first, whose hashes the log keeps, then they themselves.
//!
//! An execution never goes before its journal, so one that is missing while its journal is there was deleted by someone else.

use orchestr8_kernel::ports::store::{Batch, Error, Guard, Store};
use orchestr8_stores::merkle::{LogSource, PrunedSet};
use orchestr8_stores::pruning::PruneRule;
use orchestr8_stores::retention::{SLICE_ROWS, SLICES_MAX};
use orchestr8_workflows::merkle::tables;

/// Deletes the executions that ended before the moment of the rule, and gives how many.
pub async fn prune_executions(
    store: &dyn Store,
    source: &LogSource,
    rule: &PruneRule<'_>,
) -> Result<u64, Error> {
    let covered = i64::try_from(rule.covered).unwrap_or(i64::MAX);
    let mut set = PrunedSet::load(store, source).await?;
    let mut deleted = 0;
    for _ in 0..SLICES_MAX {
        let due = store.query(tables::executions_due(rule.before_ms, covered, SLICE_ROWS)).await?;
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

#[cfg(test)]
mod tests {
    use orchestr8_kernel::ports::store::Statement;
    use orchestr8_stores::Sqlite;
    use orchestr8_stores::sqlite::{self, Options, Place};

    use super::*;
    use crate::tables::{JOURNAL_LOG, LOGS, migrations};

    const DAY_MS: i64 = 86_400_000;

    async fn numbers(store: &Sqlite, sql: &'static str) -> Vec<i64> {
        let rows = store.query(Statement::new(sql, vec![])).await.unwrap();
        rows.iter().map(|row| row.int(0).unwrap()).collect()
    }

    #[tokio::test]
    async fn the_journal_of_an_execution_goes_with_it_and_the_log_keeps_its_root() {
        let options = Options { logs: LOGS.to_vec(), ..Options::new(Place::Memory, migrations()) };
        let store = sqlite::open(options).unwrap();
        let execution = "INSERT INTO wf_executions (num, tenant, id, workflow, name, version, hash, status, awake, priority,
                correlation, given, created_ms, ended_ms) VALUES (?1, 't', ?1 || '', 'w', 'w', '1', 'h', 'completed', 0, 0, 'c', '{}', ?2, ?3)";
        let entry = "INSERT INTO wf_journal (execution, seq, at_ms, kind, level, data) VALUES (?1, ?2, ?3, 'k', 'info', '{}')";
        let mut batch = Batch::new();
        // Old and ended, old and still running, young; their entries one after the other in turns.
        let executions = [(1, 0, Some(1)), (2, 0, None), (3, 9 * DAY_MS, Some(9 * DAY_MS))];
        for (num, begun, ended) in executions {
            batch.then(Statement::new(execution, vec![num.into(), begun.into(), ended.into()]));
        }
        for seq in 1..=700 {
            for (num, begun, _) in executions {
                batch.then(Statement::new(entry, vec![num.into(), seq.into(), begun.into()]));
            }
        }
        store.commit(batch).await.unwrap();
        let rule = |covered| PruneRule { before_ms: 8 * DAY_MS, covered, sign: &|_| String::new() };
        let log = JOURNAL_LOG;
        let whole = store.verify_log(log, Vec::new(), |_| None).await.unwrap();
        assert_eq!(
            prune_executions(&store, &log, &rule(2_000)).await.unwrap(),
            0,
            "no head covers all of it"
        );
        assert_eq!(prune_executions(&store, &log, &rule(2_100)).await.unwrap(), 1);
        assert_eq!(numbers(&store, "SELECT num FROM wf_executions ORDER BY num").await, [2, 3]);
        assert_eq!(
            numbers(&store, "SELECT DISTINCT execution FROM wf_journal ORDER BY execution").await,
            [2, 3]
        );
        assert_eq!(numbers(&store, "SELECT COUNT(*) FROM wf_journal").await, [1400]);
        let rest = store.verify_log(log, Vec::new(), |_| None).await.unwrap();
        assert_eq!((rest.root, rest.pruned, rest.difference), (whole.root, 700, None));
        store.close().await;
    }
}
