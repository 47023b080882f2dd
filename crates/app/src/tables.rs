//! The app's own table, every crate's migrations, and what may be deleted when it is old. The only SQL of this crate.

use orchestr8_kernel::ports::store::{Error, Row, Statement};
use orchestr8_stores::Migration;
use orchestr8_stores::merkle::{AUDIT_LOG, LogSource, RowCheck, RowProblem};
use orchestr8_stores::retention::Sweep;
use orchestr8_workflows::merkle as journals;

const OWN: &[(&str, &str)] = &[(
    "app-1",
    "CREATE TABLE secrets (name TEXT NOT NULL PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;",
)];

/// The migrations of all crates that persist, in the order in which they are applied.
pub fn migrations() -> Vec<Migration> {
    let lists = [
        orchestr8_kernel::tables::MIGRATIONS,
        orchestr8_tools::tables::MIGRATIONS,
        orchestr8_mcp::tables::MIGRATIONS,
        orchestr8_mcp::http::tables::MIGRATIONS,
        orchestr8_workflows::tables::MIGRATIONS,
        orchestr8_secrets::tables::MIGRATIONS,
        orchestr8_sessions::tables::MIGRATIONS,
        orchestr8_knowledge::tables::MIGRATIONS,
        orchestr8_knowledge_face::tables::MIGRATIONS,
        orchestr8_broker::tables::MIGRATIONS,
        orchestr8_agents::tables::MIGRATIONS,
        orchestr8_tokens::tables::MIGRATIONS,
        orchestr8_tlog::tables::MIGRATIONS,
        orchestr8_workspace::tables::MIGRATIONS,
        OWN,
    ];
    lists.iter().flat_map(|list| list.iter()).map(|&(name, sql)| Migration { name, sql }).collect()
}

/// The Merkle logs of a data file.
pub const LOGS: [LogSource; 2] = [AUDIT_LOG, JOURNAL_LOG];

/// The log over the journals of all executions.
pub const JOURNAL_LOG: LogSource = LogSource {
    name: journals::LOG,
    chain: None,
    rows_sql: journals::tables::ROWS,
    label_sql: journals::tables::LABEL,
    missing_sql: journals::tables::MISSING,
    checks: &[
        RowCheck { sql: journals::tables::ACCEPTED, problem: accepted },
        RowCheck { sql: journals::tables::UNRECORDED, problem: unrecorded },
        RowCheck { sql: journals::tables::ENDED, problem: ended },
    ],
};

fn accepted(row: &Row) -> Result<Option<RowProblem>, Error> {
    Ok(journals::check_accepted(row)?.map(problem))
}

fn unrecorded(row: &Row) -> Result<Option<RowProblem>, Error> {
    Ok(journals::check_unrecorded(row)?.map(problem))
}

fn ended(row: &Row) -> Result<Option<RowProblem>, Error> {
    Ok(journals::check_ended(row)?.map(problem))
}

fn problem(found: journals::Contradiction) -> RowProblem {
    let label = format!("execution {}, seq 0", found.execution);
    RowProblem { number: found.number, label, what: found.what }
}

/// What an older version kept in clear.
pub fn secret_delete(name: &str) -> Statement {
    Statement::new("DELETE FROM secrets WHERE name = ?1", vec![name.into()])
}

/// Columns: value.
pub fn secret_find(name: &str) -> Statement {
    Statement::new("SELECT value FROM secrets WHERE name = ?1", vec![name.into()])
}

/// Whose entries of the audit trail, and which; an empty text means any.
pub struct AuditFilter {
    pub tenant: String,
    pub action: String,
    pub principal: String,
    pub end: String,
    /// The id of what an entry is about.
    pub object: String,
}

/// A place in the audit trail: the number of an entry, and of a record within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditPlace {
    pub sequence: i64,
    /// -1 for an entry that has no records.
    pub record: i64,
}

/// Columns: seq, body, entry_hash, number of the record or -1. The newest first, before a place. An entry of many records is shown as
/// these: the body is the record's.
pub fn audit_entries(chain: &'static str, before: AuditPlace, filter: &AuditFilter, limit: i64) -> Statement {
    let text = |text: &str| text.to_owned().into();
    Statement::new(
        "SELECT c.seq, COALESCE(r.value, c.body) AS shown, c.entry_hash, COALESCE(r.key, -1), c.body, c.prev_hash, c.at_ms
         FROM chain c LEFT JOIN json_each(c.body, '$.records') r
         WHERE c.name = ?1 AND c.seq <= ?2 AND (c.seq < ?2 OR COALESCE(r.key, -1) < ?3)
            AND json_extract(c.body, '$.tenant') = ?4
            AND (?5 = '' OR json_extract(COALESCE(r.value, c.body), '$.action') = ?5)
            AND (?6 = '' OR json_extract(COALESCE(r.value, c.body), '$.principal') = ?6)
            AND (?7 = '' OR json_extract(COALESCE(r.value, c.body), '$.end') = ?7)
            AND (?8 = '' OR json_extract(COALESCE(r.value, c.body), '$.object') = ?8 OR json_extract(COALESCE(r.value, c.body), '$.request') = ?8
                OR EXISTS (SELECT 1 FROM json_each(COALESCE(r.value, c.body), '$.objects') o WHERE o.value = ?8))
         ORDER BY c.seq DESC, r.key DESC LIMIT ?9",
        vec![
            chain.into(),
            before.sequence.into(),
            before.record.into(),
            text(&filter.tenant),
            text(&filter.action),
            text(&filter.principal),
            text(&filter.end),
            text(&filter.object),
            limit.into(),
        ],
    )
}

/// What is deleted once it is old. Rows that carry their own expiry are kept zero milliseconds beyond it.
pub fn sweeps(journal_kept_ms: i64) -> [Sweep; 8] {
    [
        Sweep {
            name: "ledger",
            keep_ms: 0,
            count_sql: "SELECT COUNT(*) FROM (SELECT 1 FROM ledger WHERE expires_ms <= ?1 AND state = 'done' LIMIT ?2)",
            delete_sql: orchestr8_kernel::tables::LEDGER_SWEEP,
        },
        Sweep {
            name: "journal",
            keep_ms: journal_kept_ms,
            count_sql: "SELECT COUNT(*) FROM (SELECT 1 FROM journal WHERE at_ms <= ?1 LIMIT ?2)",
            delete_sql: orchestr8_kernel::tables::JOURNAL_SWEEP,
        },
        Sweep {
            name: "tasks",
            keep_ms: 0,
            count_sql: "SELECT COUNT(*) FROM (SELECT 1 FROM mcp_tasks WHERE expires_ms <= ?1 LIMIT ?2)",
            delete_sql: orchestr8_mcp::tables::TASK_SWEEP,
        },
        Sweep {
            name: "results",
            keep_ms: 0,
            count_sql: "SELECT COUNT(*) FROM (SELECT 1 FROM mcp_results WHERE expires_ms <= ?1 LIMIT ?2)",
            delete_sql: orchestr8_mcp::tables::RESULT_SWEEP,
        },
        Sweep {
            name: "executions that are gone",
            keep_ms: 0,
            count_sql: orchestr8_workflows::tables::GONE_OLD,
            delete_sql: orchestr8_workflows::tables::GONE_SWEEP,
        },
        Sweep {
            name: "keys of deliveries",
            keep_ms: 0,
            count_sql: orchestr8_workflows::tables::KEYS_OLD,
            delete_sql: orchestr8_workflows::tables::KEYS_SWEEP,
        },
        Sweep {
            name: "events by key",
            keep_ms: 0,
            count_sql: orchestr8_workflows::tables::EVENTS_OLD,
            delete_sql: orchestr8_workflows::tables::EVENTS_SWEEP,
        },
        Sweep {
            name: "notifications that were given up",
            keep_ms: 7 * 24 * 3_600_000,
            count_sql: orchestr8_workflows::tables::NOTIFICATIONS_OLD,
            delete_sql: orchestr8_workflows::tables::NOTIFICATIONS_SWEEP,
        },
    ]
}

/// The entries of the audit trail with an action, the oldest first. Column: body.
#[cfg(test)]
pub fn recorded(action: &str) -> orchestr8_kernel::ports::store::Statement {
    orchestr8_kernel::ports::store::Statement::new(
        "SELECT body FROM chain WHERE name = ?1 AND json_extract(body, '$.action') = ?2 ORDER BY seq",
        vec![orchestr8_kernel::audit::CHAIN.into(), action.into()],
    )
}

#[cfg(test)]
mod tests {
    use orchestr8_kernel::ports::store::{Batch, Store as _};
    use orchestr8_stores::Sqlite;
    use orchestr8_stores::pruning::PruneRule;
    use orchestr8_stores::sqlite::{Options, Place, open};

    use super::*;
    use crate::runtime::log_retention::prune_executions;

    /// A sweep runs every few minutes, and on the writer's thread: it finds what is old by index, or there is little to look at.
    #[tokio::test]
    async fn no_sweep_looks_at_all_rows() {
        let store = open(Options::new(Place::Memory, migrations())).unwrap();
        for sweep in sweeps(0) {
            for sql in [sweep.count_sql, sweep.delete_sql] {
                let steps = store.plan(sql).await.unwrap();
                let scans = steps.iter().filter(|step| step.starts_with("SCAN"));
                let large: Vec<_> =
                    scans.filter(|step| !step.contains("wf_gone") && !step.contains("(subquery")).collect();
                assert!(large.is_empty(), "{}: {sql}\n{steps:#?}", sweep.name);
            }
        }
    }

    const DAY_MS: i64 = 86_400_000;

    async fn numbers(store: &Sqlite, sql: &'static str) -> Vec<i64> {
        let rows = store.query(Statement::new(sql, vec![])).await.unwrap();
        rows.iter().map(|row| row.int(0).unwrap()).collect()
    }

    #[tokio::test]
    async fn an_execution_that_was_deleted_by_hand_goes_whatever_its_age_and_the_log_keeps_its_root() {
        let options = Options { logs: LOGS.to_vec(), ..Options::new(Place::Memory, migrations()) };
        let store = open(options).unwrap();
        let execution = "INSERT INTO wf_executions (num, tenant, id, workflow, name, version, hash, status, awake, priority,
                correlation, given, created_ms, ended_ms) VALUES (?1, 't', ?1 || '', 'w', 'w', '1', 'h', 'completed', 0, 0, 'c',
                '{\"tags\":{\"customer\":\"42\"}}', 9, 9)";
        let entry = "INSERT INTO wf_journal (execution, seq, at_ms, kind, level, data) VALUES (?1, ?2, 9, 'k', 'info', '{}')";
        let tag = "INSERT INTO wf_tags (tenant, key, value, execution) VALUES ('t', 'customer', '42', ?1)";
        let mut batch = Batch::new();
        for num in 1..=3 {
            batch.then(Statement::new(execution, vec![num.into()]));
            batch.then(Statement::new(tag, vec![num.into()]));
            for seq in 1..=600 {
                batch.then(Statement::new(entry, vec![num.into(), seq.into()]));
            }
        }
        for num in [1, 3] {
            batch.then_one(orchestr8_workflows::bulk::tables::execution_hide("t", num, 10));
        }
        store.commit(batch).await.unwrap();
        let rule = |covered| PruneRule { before_ms: 0, covered, sign: &|_| String::new() };
        let whole = store.verify_log(JOURNAL_LOG, Vec::new(), |_| None).await.unwrap();
        assert_eq!(
            prune_executions(&store, &JOURNAL_LOG, &rule(500)).await.unwrap(),
            0,
            "no head covers all of it"
        );
        // The third has the newest entry of all: it waits until there is a newer one.
        assert_eq!(prune_executions(&store, &JOURNAL_LOG, &rule(9_999)).await.unwrap(), 1);
        assert_eq!(numbers(&store, "SELECT num FROM wf_executions ORDER BY num").await, [2, 3]);
        assert_eq!(
            numbers(&store, "SELECT DISTINCT execution FROM wf_journal ORDER BY execution").await,
            [2, 3]
        );
        assert_eq!(numbers(&store, "SELECT execution FROM wf_tags ORDER BY execution").await, [2, 3]);
        let rest = store.verify_log(JOURNAL_LOG, Vec::new(), |_| None).await.unwrap();
        assert_eq!((rest.root, rest.pruned, rest.difference), (whole.root, 600, None));
        let mut batch = Batch::new();
        batch.then(Statement::new(entry, vec![2.into(), 601.into()]));
        store.commit(batch).await.unwrap();
        assert_eq!(prune_executions(&store, &JOURNAL_LOG, &rule(9_999)).await.unwrap(), 1);
        assert_eq!(numbers(&store, "SELECT num FROM wf_executions").await, [2]);
        store.close().await;
    }

    #[tokio::test]
    async fn the_journal_of_an_execution_goes_with_it_and_the_log_keeps_its_root() {
        let options = Options { logs: LOGS.to_vec(), ..Options::new(Place::Memory, migrations()) };
        let store = open(options).unwrap();
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
