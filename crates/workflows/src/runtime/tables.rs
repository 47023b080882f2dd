//! Statements over what wakes executions: timers, messages, questions to people, and the limits and breakers they share; and the
//! live feed of their journals.

use orchestr8_contract::Fault;
use orchestr8_kernel::ports::store::{Cell, Statement};
use orchestr8_kernel::row_seal::RowSeal;

pub fn timer_set(execution: i64, task: &str, due_ms: i64) -> Statement {
    Statement::new(
        "INSERT INTO wf_timers (execution, task, due_ms) VALUES (?1, ?2, ?3)
         ON CONFLICT (execution, task) DO UPDATE SET due_ms = excluded.due_ms",
        vec![execution.into(), task.into(), due_ms.into()],
    )
}

pub fn timer_clear(execution: i64, task: &str) -> Statement {
    Statement::new(
        "DELETE FROM wf_timers WHERE execution = ?1 AND task = ?2",
        vec![execution.into(), task.into()],
    )
}

pub fn timers_clear(execution: i64) -> Statement {
    Statement::new("DELETE FROM wf_timers WHERE execution = ?1", vec![execution.into()])
}

/// What is due, the earliest first. Columns: execution, task, due_ms.
pub fn timers_due(until_ms: i64, limit: i64) -> Statement {
    Statement::new(
        "SELECT execution, task, due_ms FROM wf_timers WHERE due_ms <= ?1 ORDER BY due_ms LIMIT ?2",
        vec![until_ms.into(), limit.into()],
    )
}

/// Column: when the next one is due after this time, or null.
pub fn timer_next(after_ms: i64) -> Statement {
    Statement::new("SELECT MIN(due_ms) FROM wf_timers WHERE due_ms > ?1", vec![after_ms.into()])
}

/// A message to an execution.
pub struct InboxMessage<'a> {
    pub id: i64,
    pub execution: i64,
    pub at_ms: i64,
    pub event: &'a str,
}

impl InboxMessage<'_> {
    pub fn seal(&self, seal: &RowSeal) -> Result<Option<String>, Fault> {
        self.with_cells(|cells| seal.seal(INBOX, cells))
    }

    /// Fails if the row is not the one that this server wrote.
    pub fn check(&self, seal: &RowSeal, found: Option<&str>) -> Result<(), Fault> {
        self.with_cells(|cells| seal.check(INBOX, cells, found))
    }

    fn with_cells<T>(&self, work: impl FnOnce(&[Option<&str>]) -> T) -> T {
        let [id, execution, at] = [self.id, self.execution, self.at_ms].map(|number| number.to_string());
        work(&[&id, &execution, &at, self.event].map(Some))
    }
}

const INBOX: &str = "wf_inbox";

pub fn inbox_put(message: &InboxMessage<'_>, seal: Option<String>) -> Statement {
    let InboxMessage { id, execution, at_ms, event } = *message;
    Statement::new(
        "INSERT INTO wf_inbox (id, execution, at_ms, event, seal) VALUES (?1, ?2, ?3, ?4, ?5)",
        vec![id.into(), execution.into(), at_ms.into(), event.into(), seal.into()],
    )
}

/// Changes one row, or the message has been taken already.
pub fn inbox_take(id: i64) -> Statement {
    Statement::new("DELETE FROM wf_inbox WHERE id = ?1", vec![id.into()])
}

/// Columns: id, event, at_ms, seal.
pub fn inbox_of(execution: i64) -> Statement {
    Statement::new(
        "SELECT id, event, at_ms, seal FROM wf_inbox WHERE execution = ?1 ORDER BY id",
        vec![execution.into()],
    )
}

/// How many messages an execution has not heard of yet, and how many events it keeps for steps that will wait for them.
pub fn messages_kept(execution: i64) -> Statement {
    Statement::new(
        "SELECT signals + (SELECT COUNT(*) FROM wf_inbox WHERE execution = num) FROM wf_executions WHERE num = ?1",
        vec![execution.into()],
    )
}

/// Executions that have messages, a page at a time. Column: execution.
pub fn inbox_executions(after: i64, up_to: i64, limit: i64) -> Statement {
    Statement::new(
        "SELECT DISTINCT execution FROM wf_inbox WHERE execution > ?1 AND execution <= ?2 ORDER BY execution LIMIT ?3",
        vec![after.into(), up_to.into(), limit.into()],
    )
}

/// A question that waits for a decision.
pub struct Approval<'a> {
    pub token: &'a str,
    pub tenant: &'a str,
    pub execution: i64,
    pub task: &'a str,
    pub ask: &'a str,
}

impl Approval<'_> {
    pub fn seal(&self, seal: &RowSeal) -> Result<Option<String>, Fault> {
        self.with_cells(|cells| seal.seal(APPROVALS, cells))
    }

    /// Fails if the row is not the one that this server wrote.
    pub fn check(&self, seal: &RowSeal, found: Option<&str>) -> Result<(), Fault> {
        self.with_cells(|cells| seal.check(APPROVALS, cells, found))
    }

    fn with_cells<T>(&self, work: impl FnOnce(&[Option<&str>]) -> T) -> T {
        let execution = self.execution.to_string();
        work(&[self.token, self.tenant, &execution, self.task, self.ask].map(Some))
    }
}

const APPROVALS: &str = "wf_approvals";

pub fn approval_ask(approval: &Approval<'_>, seal: Option<String>) -> Statement {
    let Approval { token, tenant, execution, task, ask } = *approval;
    Statement::new(
        "INSERT INTO wf_approvals (token, tenant, execution, task, ask, seal) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        vec![token.into(), tenant.into(), execution.into(), task.into(), ask.into(), seal.into()],
    )
}

pub fn approval_close(execution: i64, task: &str) -> Statement {
    Statement::new(
        "DELETE FROM wf_approvals WHERE execution = ?1 AND task = ?2",
        vec![execution.into(), task.into()],
    )
}

/// Changes one row, or somebody has decided already.
pub fn approval_take(token: &str) -> Statement {
    Statement::new("DELETE FROM wf_approvals WHERE token = ?1", vec![token.into()])
}

/// Columns: token, execution, task, ask, seal.
pub fn approval_find(tenant: &str, token: &str) -> Statement {
    Statement::new(
        "SELECT token, execution, task, ask, seal FROM wf_approvals WHERE tenant = ?1 AND token = ?2",
        vec![tenant.into(), token.into()],
    )
}

/// Columns: token, execution, task, ask, execution id.
pub fn approvals_open(tenant: &str, execution: Option<&str>, limit: i64) -> Statement {
    Statement::new(
        "SELECT a.token, a.execution, a.task, a.ask, e.id FROM wf_approvals a
         JOIN wf_executions e ON e.num = a.execution
         WHERE a.tenant = ?1 AND (?2 IS NULL OR e.id = ?2) ORDER BY a.execution, a.task LIMIT ?3",
        vec![tenant.into(), execution.into(), limit.into()],
    )
}

/// An execution holds a place under a key until it ends, or its start counts until a time.
pub fn limit_record(key: &str, execution: i64, until_ms: Option<i64>) -> Statement {
    Statement::new(
        "INSERT INTO wf_limits (key, execution, until_ms) VALUES (?1, ?2, ?3)
         ON CONFLICT (key, execution) DO UPDATE SET until_ms = excluded.until_ms",
        vec![key.into(), execution.into(), until_ms.into()],
    )
}

/// The execution has ended; its start counts on.
pub fn limit_leave(execution: i64) -> Statement {
    Statement::new("DELETE FROM wf_limits WHERE execution = ?1 AND until_ms IS NULL", vec![execution.into()])
}

/// Forgets starts that do not count any more.
pub fn limits_expire(now_ms: i64) -> Statement {
    Statement::new("DELETE FROM wf_limits WHERE until_ms <= ?1", vec![now_ms.into()])
}

/// What counts, the earliest to end first. Columns: key, execution, until_ms.
pub fn limits_recorded(now_ms: i64) -> Statement {
    Statement::new(
        "SELECT key, execution, until_ms FROM wf_limits WHERE until_ms IS NULL OR until_ms > ?1 ORDER BY until_ms",
        vec![now_ms.into()],
    )
}

pub fn breaker_keep(key: &str, state: String) -> Statement {
    Statement::new(
        "INSERT INTO wf_breakers (key, state) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET state = excluded.state",
        vec![key.into(), state.into()],
    )
}

pub fn breakers_clear() -> Statement {
    Statement::new("DELETE FROM wf_breakers", Vec::new())
}

/// Column: state.
pub fn breakers_kept() -> Statement {
    Statement::new("SELECT state FROM wf_breakers", Vec::new())
}

/// The live feed. Columns: id, kind, step, level, data, at_ms, execution id, workflow id.
pub fn feed(tenant: &str, after: i64, execution: Option<&str>, limit: i64) -> Statement {
    let mut sql = String::from(
        "SELECT j.id, j.kind, j.step, j.level, j.data, j.at_ms, e.id, e.workflow
         FROM wf_journal j JOIN wf_executions e ON e.num = j.execution WHERE j.id > ?1 AND j.seq > 0
            AND e.tenant = ?2 AND e.deleted_ms IS NULL",
    );
    let mut cells: Vec<Cell> = vec![after.into(), tenant.into(), limit.into()];
    if let Some(execution) = execution {
        cells.push(execution.into());
        sql.push_str(" AND e.id = ?4");
    }
    sql.push_str(" ORDER BY j.id LIMIT ?3");
    Statement { sql: sql.into(), cells }
}

/// Column: the id of the newest entry of all journals.
pub fn feed_end() -> Statement {
    Statement::new("SELECT COALESCE(MAX(id), 0) FROM wf_journal", Vec::new())
}

/// Seals of what decides for an execution, and of what runs under whose rights.
pub const SEALS: (&str, &str) = (
    "workflows-seals-2",
    "ALTER TABLE wf_inbox ADD COLUMN seal TEXT;
     ALTER TABLE wf_workflows ADD COLUMN seal TEXT;",
);

/// Executions that wait get the status that earlier versions did not have: what is not awake is taken up by nothing but what it waits
/// for. The others write their status when a start takes them up.
pub const WAITING: (&str, &str) = (
    "workflows-waiting-1",
    "UPDATE wf_executions SET status = 'waiting' WHERE status = 'running' AND awake = 0",
);

/// Results of steps that are kept beside the records of their executions, and go with them.
pub const ARTIFACTS: (&str, &str) = (
    "workflows-artifacts",
    "CREATE TABLE wf_artifacts (execution INTEGER NOT NULL, id TEXT NOT NULL, tenant TEXT NOT NULL, content_type TEXT NOT NULL,
        sha256 TEXT NOT NULL, size INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (execution, id)) STRICT;
     CREATE INDEX wf_artifacts_tenant ON wf_artifacts (tenant, size);
     CREATE TRIGGER wf_artifacts_deleted AFTER DELETE ON wf_executions BEGIN DELETE FROM wf_artifacts WHERE execution = OLD.num; END;",
);

/// A result of a step that is kept beside the record of its execution.
pub struct ArtifactRow<'a> {
    pub execution: i64,
    pub id: String,
    pub tenant: &'a str,
    pub content_type: &'static str,
    pub sha256: String,
    pub body: String,
}

pub fn artifact_put(row: ArtifactRow<'_>) -> Statement {
    let size = i64::try_from(row.body.len()).unwrap_or(i64::MAX);
    Statement::new(
        "INSERT INTO wf_artifacts (execution, id, tenant, content_type, sha256, size, body)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        vec![
            row.execution.into(),
            row.id.into(),
            row.tenant.into(),
            row.content_type.into(),
            row.sha256.into(),
            size.into(),
            row.body.into(),
        ],
    )
}

/// Columns: content type, SHA-256, body.
pub fn artifact_find(tenant: &str, execution: i64, id: &str) -> Statement {
    Statement::new(
        "SELECT content_type, sha256, body FROM wf_artifacts WHERE tenant = ?1 AND execution = ?2 AND id = ?3",
        vec![tenant.into(), execution.into(), id.into()],
    )
}

/// Column: the bytes of all artifacts of a tenant.
pub fn artifacts_size(tenant: &str) -> Statement {
    Statement::new("SELECT COALESCE(SUM(size), 0) FROM wf_artifacts WHERE tenant = ?1", vec![tenant.into()])
}

/// Limits that an admin has changed.
pub const LIMIT_OVERRIDES: (&str, &str) = (
    "workflows-limit-overrides",
    "CREATE TABLE wf_limit_overrides (
        tenant TEXT NOT NULL, scope TEXT NOT NULL, name TEXT NOT NULL, value INTEGER NOT NULL, set_by TEXT NOT NULL,
        set_ms INTEGER NOT NULL, PRIMARY KEY (tenant, scope, name)) STRICT, WITHOUT ROWID;",
);

pub struct LimitOverride<'a> {
    pub tenant: &'a str,
    pub scope: &'a str,
    pub name: &'a str,
    pub value: i64,
    pub set_by: &'a str,
    pub set_ms: i64,
}

pub fn limit_override_put(row: &LimitOverride<'_>) -> Statement {
    Statement::new(
        "INSERT OR REPLACE INTO wf_limit_overrides (tenant, scope, name, value, set_by, set_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        vec![
            row.tenant.into(),
            row.scope.into(),
            row.name.into(),
            row.value.into(),
            row.set_by.into(),
            row.set_ms.into(),
        ],
    )
}

pub fn limit_override_delete(tenant: &str, scope: &str, name: &str) -> Statement {
    Statement::new(
        "DELETE FROM wf_limit_overrides WHERE tenant = ?1 AND scope = ?2 AND name = ?3",
        vec![tenant.into(), scope.into(), name.into()],
    )
}

/// Columns: tenant, scope, name, value, set_by, set_ms.
pub fn limit_overrides_of(tenant: &str) -> Statement {
    Statement::new(
        "SELECT tenant, scope, name, value, set_by, set_ms FROM wf_limit_overrides
         WHERE tenant = ?1 ORDER BY scope, name",
        vec![tenant.into()],
    )
}

/// The same of all tenants, for the start of the server.
pub fn limit_overrides_all() -> Statement {
    Statement::new(
        "SELECT tenant, scope, name, value, set_by, set_ms FROM wf_limit_overrides ORDER BY tenant, scope, name",
        Vec::new(),
    )
}

/// Column: the highest number so far.
pub fn highest_numbers() -> Statement {
    Statement::new(
        "SELECT COALESCE((SELECT MAX(num) FROM wf_executions), 0), COALESCE((SELECT MAX(id) FROM wf_inbox), 0),
                COALESCE((SELECT MAX(execution) FROM wf_journal), 0)",
        Vec::new(),
    )
}

#[cfg(test)]
mod tests {
    use orchestr8_kernel::ports::Store;
    use orchestr8_kernel::ports::store::{Batch, Statement};
    use orchestr8_testing::memory;

    use super::WAITING;
    use crate::tables::MIGRATIONS;

    /// Executions of an earlier version have the status `running` while they wait.
    #[tokio::test]
    async fn stored_executions_that_wait_get_their_status() {
        let store = memory(&[MIGRATIONS]);
        let mut batch = Batch::new();
        for (num, status, awake) in [(1, "running", 0), (2, "running", 1), (3, "paused", 0), (4, "failed", 0)]
        {
            batch.then(Statement::new(
                "INSERT INTO wf_executions (num, tenant, id, workflow, name, version, hash, status, awake, priority, correlation, given, created_ms)
                 VALUES (?1, 't', 'e' || ?1, 'w', 'w', '1', 'h', ?2, ?3, 0, 'c', '{}', 1)",
                vec![i64::from(num).into(), status.into(), i64::from(awake).into()],
            ));
        }
        batch.then(Statement::new(WAITING.1, Vec::new()));
        store.commit(batch).await.unwrap();
        let rows = store
            .query(Statement::new("SELECT status FROM wf_executions ORDER BY num", Vec::new()))
            .await
            .unwrap();
        let statuses: Vec<&str> = rows.iter().map(|row| row.text(0).unwrap()).collect();
        assert_eq!(statuses, ["waiting", "running", "paused", "failed"], "a start takes up what is awake");
    }
}
