//! Statements over what wakes executions: timers, messages, questions to people, and the limits and breakers they share.

use orchestr8_contract::Fault;
use orchestr8_kernel::ports::store::Statement;
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

pub fn inbox_put(id: i64, execution: i64, at_ms: i64, event: String) -> Statement {
    Statement::new(
        "INSERT INTO wf_inbox (id, execution, at_ms, event) VALUES (?1, ?2, ?3, ?4)",
        vec![id.into(), execution.into(), at_ms.into(), event.into()],
    )
}

/// Changes one row, or the message has been taken already.
pub fn inbox_take(id: i64) -> Statement {
    Statement::new("DELETE FROM wf_inbox WHERE id = ?1", vec![id.into()])
}

/// Columns: id, event.
pub fn inbox_of(execution: i64) -> Statement {
    Statement::new("SELECT id, event FROM wf_inbox WHERE execution = ?1 ORDER BY id", vec![execution.into()])
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
