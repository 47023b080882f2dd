//! The tables of governed workspaces and every statement over them: where each trail ends, which plans were decided, and who
//! must report a failure.

use orchestr8_kernel::ports::store::Statement;

/// Applied in order, once, by the store.
pub const MIGRATIONS: &[(&str, &str)] = &[(
    "workspace-1",
    "CREATE TABLE ws_trails (
        num INTEGER NOT NULL PRIMARY KEY, path TEXT NOT NULL UNIQUE, seq INTEGER NOT NULL, head TEXT NOT NULL,
        pending TEXT NOT NULL, signature TEXT NOT NULL) STRICT;
     CREATE TABLE ws_entries (
        trail INTEGER NOT NULL, seq INTEGER NOT NULL, entry_hash TEXT NOT NULL,
        PRIMARY KEY (trail, seq)) STRICT, WITHOUT ROWID;
     CREATE TABLE ws_plans (
        path TEXT NOT NULL, hash TEXT NOT NULL, tenant TEXT NOT NULL, title TEXT NOT NULL, content TEXT NOT NULL,
        proposer TEXT, proposed_ms INTEGER NOT NULL, status TEXT NOT NULL, decided_by TEXT, decided_ms INTEGER, method TEXT,
        comment TEXT, signature TEXT, PRIMARY KEY (path, hash)) STRICT, WITHOUT ROWID;
     CREATE INDEX ws_plans_status ON ws_plans (tenant, status, proposed_ms);
     CREATE TABLE ws_locks (
        path TEXT NOT NULL, tenant TEXT NOT NULL, principal TEXT NOT NULL, code TEXT NOT NULL, tool TEXT NOT NULL,
        run TEXT NOT NULL, correlation TEXT NOT NULL, locked_ms INTEGER NOT NULL,
        PRIMARY KEY (path, tenant, principal)) STRICT, WITHOUT ROWID;",
)];

/// Columns: num, seq, head, pending, signature.
pub fn trail_find(path: &str) -> Statement {
    Statement::new(
        "SELECT num, seq, head, pending, signature FROM ws_trails WHERE path = ?1",
        vec![path.into()],
    )
}

pub fn trail_insert(path: &str, head: &str, signature: &str) -> Statement {
    Statement::new(
        "INSERT INTO ws_trails (path, seq, head, pending, signature) VALUES (?1, 0, ?2, '', ?3) ON CONFLICT DO NOTHING",
        vec![path.into(), head.into(), signature.into()],
    )
}

/// The end of a trail moves, if it is still where it was.
pub fn trail_move(
    num: i64,
    (from_seq, from_head): (i64, &str),
    (seq, head): (i64, &str),
    pending: &str,
    signature: &str,
) -> Statement {
    Statement::new(
        "UPDATE ws_trails SET seq = ?4, head = ?5, pending = ?6, signature = ?7 WHERE num = ?1 AND seq = ?2 AND head = ?3",
        vec![
            num.into(),
            from_seq.into(),
            from_head.into(),
            seq.into(),
            head.into(),
            pending.into(),
            signature.into(),
        ],
    )
}

/// The lines that were about to be written are in the file.
pub fn trail_written(num: i64, seq: i64) -> Statement {
    Statement::new(
        "UPDATE ws_trails SET pending = '' WHERE num = ?1 AND seq = ?2",
        vec![num.into(), seq.into()],
    )
}

/// The hashes of entries after a number, as a JSON array.
pub fn entries_insert(trail: i64, after: i64, hashes: String) -> Statement {
    Statement::new(
        "INSERT INTO ws_entries (trail, seq, entry_hash) SELECT ?1, ?2 + 1 + key, value FROM json_each(?3)",
        vec![trail.into(), after.into(), hashes.into()],
    )
}

pub fn entries_delete(trail: i64, after: i64) -> Statement {
    Statement::new("DELETE FROM ws_entries WHERE trail = ?1 AND seq > ?2", vec![trail.into(), after.into()])
}

/// Columns: entry_hash, in order from the number after `after` on.
pub fn entries_page(trail: i64, after: i64, limit: i64) -> Statement {
    Statement::new(
        "SELECT entry_hash FROM ws_entries WHERE trail = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
        vec![trail.into(), after.into(), limit.into()],
    )
}

/// The columns of every statement that gives whole plans, in the order in which `PlanRecord` reads them.
macro_rules! plans {
    ($rest:literal) => {
        concat!(
            "SELECT path, hash, tenant, title, content, proposer, proposed_ms, status, decided_by, decided_ms, method, \
             comment, signature FROM ws_plans ",
            $rest
        )
    };
}

pub fn plan_find(path: &str, hash: &str) -> Statement {
    Statement::new(plans!("WHERE path = ?1 AND hash = ?2"), vec![path.into(), hash.into()])
}

/// The plans of a workspace.
pub fn plans_of(path: &str, limit: i64) -> Statement {
    Statement::new(plans!("WHERE path = ?1 ORDER BY hash LIMIT ?2"), vec![path.into(), limit.into()])
}

/// The plans of a tenant under a hash, in whichever workspaces.
pub fn plans_by_hash(tenant: &str, hash: &str) -> Statement {
    Statement::new(
        plans!("WHERE tenant = ?1 AND hash = ?2 ORDER BY path LIMIT 100"),
        vec![tenant.into(), hash.into()],
    )
}

/// The plans of a tenant with a status, the oldest first; an empty path or status means any.
pub fn plans_page(tenant: &str, status: &str, path: &str, limit: i64) -> Statement {
    Statement::new(
        plans!(
            "WHERE tenant = ?1 AND (?2 = '' OR status = ?2) AND (?3 = '' OR path = ?3) ORDER BY proposed_ms, path, hash LIMIT ?4"
        ),
        vec![tenant.into(), status.into(), path.into(), limit.into()],
    )
}

/// A plan as it is proposed.
pub struct ProposedPlan<'a> {
    pub path: &'a str,
    pub hash: &'a str,
    pub tenant: &'a str,
    pub title: &'a str,
    pub content: &'a str,
    pub proposer: Option<&'a str>,
    pub proposed_ms: i64,
}

pub fn plan_insert(plan: &ProposedPlan<'_>) -> Statement {
    Statement::new(
        "INSERT INTO ws_plans (path, hash, tenant, title, content, proposer, proposed_ms, status)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'waiting') ON CONFLICT DO NOTHING",
        vec![
            plan.path.into(),
            plan.hash.into(),
            plan.tenant.into(),
            plan.title.into(),
            plan.content.into(),
            plan.proposer.into(),
            plan.proposed_ms.into(),
        ],
    )
}

/// What was decided on a plan, and by whom.
pub struct PlanDecision<'a> {
    pub path: &'a str,
    pub hash: &'a str,
    pub status: &'static str,
    pub decided_by: &'a str,
    pub decided_ms: i64,
    pub method: &'static str,
    pub comment: Option<&'a str>,
    pub signature: &'a str,
}

pub fn plan_decide(decision: &PlanDecision<'_>) -> Statement {
    Statement::new(
        "UPDATE ws_plans SET status = ?3, decided_by = ?4, decided_ms = ?5, method = ?6, comment = ?7, signature = ?8
         WHERE path = ?1 AND hash = ?2",
        vec![
            decision.path.into(),
            decision.hash.into(),
            decision.status.into(),
            decision.decided_by.into(),
            decision.decided_ms.into(),
            decision.method.into(),
            decision.comment.into(),
            decision.signature.into(),
        ],
    )
}

/// A principal must report a failure before it writes again in a workspace.
pub struct WriteLock<'a> {
    pub path: &'a str,
    pub tenant: &'a str,
    pub principal: &'a str,
    pub code: &'a str,
    pub tool: &'a str,
    pub run: String,
    pub correlation: &'a str,
    pub locked_ms: i64,
}

/// The first failure stays.
pub fn lock_insert(lock: &WriteLock<'_>) -> Statement {
    Statement::new(
        "INSERT INTO ws_locks (path, tenant, principal, code, tool, run, correlation, locked_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING",
        vec![
            lock.path.into(),
            lock.tenant.into(),
            lock.principal.into(),
            lock.code.into(),
            lock.tool.into(),
            lock.run.clone().into(),
            lock.correlation.into(),
            lock.locked_ms.into(),
        ],
    )
}

/// Columns: code, tool, run, correlation.
pub fn lock_find(path: &str, tenant: &str, principal: &str) -> Statement {
    Statement::new(
        "SELECT code, tool, run, correlation FROM ws_locks WHERE path = ?1 AND tenant = ?2 AND principal = ?3",
        vec![path.into(), tenant.into(), principal.into()],
    )
}

/// Ends the lock of this failure.
pub fn lock_delete(path: &str, tenant: &str, principal: &str, run: &str) -> Statement {
    Statement::new(
        "DELETE FROM ws_locks WHERE path = ?1 AND tenant = ?2 AND principal = ?3 AND run = ?4",
        vec![path.into(), tenant.into(), principal.into(), run.into()],
    )
}
