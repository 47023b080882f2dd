//! The statements over journals as a Merkle log.

use orchestr8_kernel::ports::store::Statement;

/// Columns: number, then the values in the order of `journal_append`. After a number, at most so many.
pub const ROWS: &str = "SELECT id, execution, seq, at_ms, kind, step, level, data, truncated, record
    FROM wf_journal WHERE id > ?1 ORDER BY id LIMIT ?2";

/// Column: how people call an entry.
pub const LABEL: &str = "SELECT 'execution ' || COALESCE(e.id, 'number ' || j.execution) || ', seq ' || j.seq
    FROM wf_journal j LEFT JOIN wf_executions e ON e.num = j.execution WHERE j.id = ?1";

/// Column: which entry a missing number was: the gap in a journal nearby, or the execution that has no journal at all.
pub const MISSING: &str = "SELECT 'execution ' || COALESCE(
    (SELECT COALESCE(e.id, 'number ' || j.execution) || ', seq ' || (j.seq + 1)
     FROM wf_journal j LEFT JOIN wf_executions e ON e.num = j.execution
     WHERE j.id < ?1 AND j.id > ?1 - 10000
        AND NOT EXISTS (SELECT 1 FROM wf_journal n WHERE n.execution = j.execution AND n.seq = j.seq + 1)
        AND (EXISTS (SELECT 1 FROM wf_journal n WHERE n.execution = j.execution AND n.seq > j.seq)
             OR (e.ended_ms IS NOT NULL AND j.kind NOT IN
                 ('execution-complete', 'execution-failed', 'cancellation-complete', 'cancellation-forced',
                  'execution-compensated', 'compensation-requested')))
     ORDER BY j.id DESC LIMIT 1),
    (SELECT COALESCE(e.id, 'number ' || j.execution) || ', seq 0'
     FROM wf_journal j LEFT JOIN wf_executions e ON e.num = j.execution
     WHERE j.id > ?1 AND j.id < ?1 + 10000 AND j.seq = 1
        AND NOT EXISTS (SELECT 1 FROM wf_journal n WHERE n.execution = j.execution AND n.seq = 0)
     ORDER BY j.id LIMIT 1),
    (SELECT e.id || ', seq 0' FROM wf_executions e
     WHERE NOT EXISTS (SELECT 1 FROM wf_journal n WHERE n.execution = e.num) ORDER BY e.num LIMIT 1))";

/// The entries that say what executions were started with, beside the executions.
pub const ACCEPTED: &str =
    "SELECT j.id, j.data, e.num, e.tenant, e.id, e.workflow, e.name, e.version, e.hash, e.priority,
        e.correlation, e.given, e.parent, e.created_ms
    FROM wf_journal j LEFT JOIN wf_executions e ON e.num = j.execution
    WHERE j.seq = 0 AND j.id > ?1 ORDER BY j.id LIMIT ?2";

/// One execution beside the entry that says what it was started with. Columns as those of `ACCEPTED`, and without such an entry the
/// first execution that has one.
pub fn accepted_of(execution: i64) -> Statement {
    Statement::new(
        "SELECT j.id, j.data, e.num, e.tenant, e.id, e.workflow, e.name, e.version, e.hash, e.priority,
            e.correlation, e.given, e.parent, e.created_ms, CASE WHEN j.id IS NULL THEN
                (SELECT execution FROM wf_journal WHERE seq = 0 ORDER BY execution LIMIT 1) END
         FROM wf_executions e LEFT JOIN wf_journal j ON j.execution = e.num AND j.seq = 0 WHERE e.num = ?1",
        vec![execution.into()],
    )
}

/// Executions without such an entry. Those from before there were such entries have none.
pub const UNRECORDED: &str = "SELECT e.num, e.id FROM wf_executions e
    WHERE e.num > ?1 AND e.num > (SELECT MIN(execution) FROM wf_journal WHERE seq = 0)
        AND NOT EXISTS (SELECT 1 FROM wf_journal j WHERE j.execution = e.num AND j.seq = 0) ORDER BY e.num LIMIT ?2";

/// Executions that have ended, and how their journals say they have.
pub const ENDED: &str = "SELECT e.num, e.id, e.status,
        (SELECT kind FROM wf_journal j WHERE j.execution = e.num AND j.kind IN
            ('execution-complete', 'execution-failed', 'cancellation-complete', 'cancellation-forced',
             'execution-compensated')
         ORDER BY j.seq DESC LIMIT 1), first.id
    FROM wf_executions e JOIN wf_journal first ON first.execution = e.num AND first.seq = 0
    WHERE e.num > ?1 AND e.ended_ms IS NOT NULL ORDER BY e.num LIMIT ?2";

/// The rows of one execution, by its id. Columns: number.
pub fn numbers_of(id: &str) -> Statement {
    Statement::new(
        "SELECT j.id FROM wf_executions e JOIN wf_journal j ON j.execution = e.num WHERE e.id = ?1 ORDER BY j.id LIMIT 100000",
        vec![id.into()],
    )
}

/// The execution's own row. Columns: id, tenant, workflow, status, given.
pub fn execution_row(id: &str) -> Statement {
    Statement::new(
        "SELECT id, tenant, workflow, status, given FROM wf_executions WHERE id = ?1 LIMIT 2",
        vec![id.into()],
    )
}

/// Executions that ended before a moment, whose journals a signed head covers. The newest entry of all stays, and its execution
/// with it: numbers go on after it. A child stays as long as its parent has not ended: it may have to be rolled back.
pub fn executions_due(before_ms: i64, covered: i64, limit: i64) -> Statement {
    Statement::new(
        "SELECT e.num FROM wf_executions e WHERE e.created_ms <= ?1 AND e.ended_ms IS NOT NULL AND e.ended_ms <= ?1
            AND NOT EXISTS (SELECT 1 FROM wf_executions p WHERE p.num = e.parent AND p.ended_ms IS NULL)
            AND NOT EXISTS (SELECT 1 FROM wf_journal j WHERE j.execution = e.num
                AND (j.id > ?2 OR j.id = (SELECT MAX(id) FROM wf_journal))) ORDER BY e.created_ms LIMIT ?3",
        vec![before_ms.into(), covered.into(), limit.into()],
    )
}

/// The newest entries of an execution, as `ROWS` has them: the first one goes last.
pub fn journal_due(execution: i64, limit: i64) -> Statement {
    Statement::new(
        "SELECT id, execution, seq, at_ms, kind, step, level, data, truncated, record
         FROM wf_journal WHERE execution = ?1 ORDER BY seq DESC LIMIT ?2",
        vec![execution.into(), limit.into()],
    )
}

pub fn journal_delete(execution: i64, from_seq: i64) -> Statement {
    Statement::new(
        "DELETE FROM wf_journal WHERE execution = ?1 AND seq >= ?2",
        vec![execution.into(), from_seq.into()],
    )
}

pub fn execution_delete(execution: i64) -> Statement {
    Statement::new("DELETE FROM wf_executions WHERE num = ?1", vec![execution.into()])
}
