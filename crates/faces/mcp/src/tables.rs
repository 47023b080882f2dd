//! The tables of tasks and of results kept for paging, and every statement over them.

use orchestr8_kernel::ports::store::Statement;

/// Applied in order, once, by the store.
pub const MIGRATIONS: &[(&str, &str)] = &[(
    "mcp-1",
    "CREATE TABLE mcp_tasks (
        tenant TEXT NOT NULL, principal TEXT NOT NULL, id TEXT NOT NULL, action TEXT NOT NULL,
        status TEXT NOT NULL, outcome TEXT,
        created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL,
        PRIMARY KEY (tenant, principal, id)) STRICT, WITHOUT ROWID;
     CREATE INDEX mcp_tasks_time ON mcp_tasks (tenant, principal, created_ms, id);
     CREATE INDEX mcp_tasks_expiry ON mcp_tasks (expires_ms);
     CREATE TABLE mcp_results (
        tenant TEXT NOT NULL, principal TEXT NOT NULL, id TEXT NOT NULL, mime_type TEXT NOT NULL,
        text TEXT NOT NULL, bytes INTEGER NOT NULL, created_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL,
        PRIMARY KEY (tenant, principal, id)) STRICT, WITHOUT ROWID;
     CREATE INDEX mcp_results_time ON mcp_results (tenant, created_ms, id);
     CREATE INDEX mcp_results_expiry ON mcp_results (expires_ms);",
)];

/// Deletes a slice of what has expired. Parameters: now in ms, how many at most.
pub const TASK_SWEEP: &str = "DELETE FROM mcp_tasks WHERE (tenant, principal, id) IN
    (SELECT tenant, principal, id FROM mcp_tasks WHERE expires_ms <= ?1 LIMIT ?2)";

/// Deletes a slice of what has expired. Parameters: now in ms, how many at most.
pub const RESULT_SWEEP: &str = "DELETE FROM mcp_results WHERE (tenant, principal, id) IN
    (SELECT tenant, principal, id FROM mcp_results WHERE expires_ms <= ?1 LIMIT ?2)";

/// Whose a row is. Nobody else can find it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub tenant: String,
    pub principal: String,
}

pub struct TaskRow<'a> {
    pub owner: &'a Owner,
    pub id: &'a str,
    pub action: &'a str,
    pub created_ms: i64,
    pub expires_ms: i64,
}

pub fn task_insert(row: &TaskRow<'_>) -> Statement {
    Statement::new(
        "INSERT INTO mcp_tasks (tenant, principal, id, action, status, outcome, created_ms, updated_ms, expires_ms)
         VALUES (?1, ?2, ?3, ?4, 'working', NULL, ?5, ?5, ?6)",
        vec![
            row.owner.tenant.as_str().into(),
            row.owner.principal.as_str().into(),
            row.id.into(),
            row.action.into(),
            row.created_ms.into(),
            row.expires_ms.into(),
        ],
    )
}

/// Ends a task. Changes one row, or it has ended before.
pub fn task_end(
    owner: &Owner,
    id: &str,
    status: &'static str,
    outcome: Option<&str>,
    now_ms: i64,
) -> Statement {
    Statement::new(
        "UPDATE mcp_tasks SET status = ?4, outcome = ?5, updated_ms = ?6
         WHERE tenant = ?1 AND principal = ?2 AND id = ?3 AND status = 'working'",
        vec![
            owner.tenant.as_str().into(),
            owner.principal.as_str().into(),
            id.into(),
            status.into(),
            outcome.into(),
            now_ms.into(),
        ],
    )
}

/// Columns: id, status, outcome, created_ms, updated_ms, expires_ms.
pub fn task_find(owner: &Owner, id: &str, now_ms: i64) -> Statement {
    Statement::new(
        "SELECT id, status, outcome, created_ms, updated_ms, expires_ms FROM mcp_tasks
         WHERE tenant = ?1 AND principal = ?2 AND id = ?3 AND expires_ms > ?4",
        vec![owner.tenant.as_str().into(), owner.principal.as_str().into(), id.into(), now_ms.into()],
    )
}

/// A page of tasks in order of creation, after one of them. Columns: as `task_find`, without outcomes.
pub fn task_page(owner: &Owner, after: (i64, &str), now_ms: i64, limit: i64) -> Statement {
    Statement::new(
        "SELECT id, status, NULL, created_ms, updated_ms, expires_ms FROM mcp_tasks
         WHERE tenant = ?1 AND principal = ?2 AND expires_ms > ?5
           AND (created_ms > ?3 OR (created_ms = ?3 AND id > ?4))
         ORDER BY created_ms, id LIMIT ?6",
        vec![
            owner.tenant.as_str().into(),
            owner.principal.as_str().into(),
            after.0.into(),
            after.1.into(),
            now_ms.into(),
            limit.into(),
        ],
    )
}

pub struct ResultRow<'a> {
    pub owner: &'a Owner,
    pub id: &'a str,
    pub mime_type: &'a str,
    pub text: &'a str,
    pub created_ms: i64,
    pub expires_ms: i64,
}

pub fn result_insert(row: &ResultRow<'_>) -> Statement {
    Statement::new(
        "INSERT INTO mcp_results (tenant, principal, id, mime_type, text, bytes, created_ms, expires_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        vec![
            row.owner.tenant.as_str().into(),
            row.owner.principal.as_str().into(),
            row.id.into(),
            row.mime_type.into(),
            row.text.into(),
            i64::try_from(row.text.len()).unwrap_or(i64::MAX).into(),
            row.created_ms.into(),
            row.expires_ms.into(),
        ],
    )
}

/// Forgets the oldest results of a tenant beyond a number of results and a number of bytes.
pub fn result_bound(tenant: &str, count: i64, bytes: i64) -> Statement {
    Statement::new(
        "DELETE FROM mcp_results WHERE tenant = ?1 AND id IN (
            SELECT id FROM (
                SELECT id, ROW_NUMBER() OVER newest AS place, SUM(bytes) OVER newest AS total FROM mcp_results
                WHERE tenant = ?1 WINDOW newest AS (ORDER BY created_ms DESC, id DESC)) AS kept
            WHERE place > ?2 OR total > ?3)",
        vec![tenant.into(), count.into(), bytes.into()],
    )
}

/// Columns: mime_type, text.
pub fn result_find(owner: &Owner, id: &str, now_ms: i64) -> Statement {
    Statement::new(
        "SELECT mime_type, text FROM mcp_results
         WHERE tenant = ?1 AND principal = ?2 AND id = ?3 AND expires_ms > ?4",
        vec![owner.tenant.as_str().into(), owner.principal.as_str().into(), id.into(), now_ms.into()],
    )
}
