//! The statements of operations on many executions.

use orchestr8_kernel::ports::store::Statement;

use crate::tables::EXECUTION;

/// An execution that was deleted is hidden at once. Its rows go when retention runs, which keeps the hashes of its journal in the log.
pub const MIGRATION: (&str, &str) = (
    "workflows-deleted",
    "ALTER TABLE wf_executions ADD COLUMN deleted_ms INTEGER;
     CREATE INDEX wf_executions_deleted ON wf_executions (tenant, status, num) WHERE deleted_ms IS NOT NULL;",
);

/// The executions of a tenant with these ids, a list as JSON. Columns of `EXECUTION`.
pub fn executions_named(tenant: &str, ids: String) -> Statement {
    Statement {
        sql: format!(
            "SELECT {EXECUTION} FROM wf_executions
             WHERE tenant = ?1 AND id IN (SELECT value FROM json_each(?2)) AND deleted_ms IS NULL ORDER BY num DESC"
        )
        .into(),
        cells: vec![tenant.into(), ids.into()],
    }
}

/// Column: how many rows a query finds.
pub fn count(query: Statement) -> Statement {
    Statement { sql: format!("SELECT COUNT(*) FROM ({})", query.sql).into(), cells: query.cells }
}

/// Changes one row, or the execution goes on: it has not ended, a message waits for it, or its parent may still undo it.
pub fn execution_hide(tenant: &str, execution: i64, now_ms: i64) -> Statement {
    Statement::new(
        "UPDATE wf_executions SET deleted_ms = ?3
         WHERE num = ?2 AND tenant = ?1 AND ended_ms IS NOT NULL AND deleted_ms IS NULL
            AND NOT EXISTS (SELECT 1 FROM wf_inbox WHERE execution = ?2)
            AND NOT EXISTS (SELECT 1 FROM wf_executions p WHERE p.num = wf_executions.parent AND p.ended_ms IS NULL)",
        vec![tenant.into(), execution.into(), now_ms.into()],
    )
}

/// Executions that were deleted and whose journals a signed head covers. The newest entry of all stays, and its execution with it:
/// numbers go on after it.
pub fn executions_hidden(covered: i64, limit: i64) -> Statement {
    Statement::new(
        "SELECT e.num FROM wf_executions e WHERE e.deleted_ms IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM wf_journal j WHERE j.execution = e.num
                AND (j.id > ?1 OR j.id = (SELECT MAX(id) FROM wf_journal))) LIMIT ?2",
        vec![covered.into(), limit.into()],
    )
}
