//! The kernel's tables and every statement over them. The only SQL of this crate.

use crate::ports::store::{Cell, Statement};

/// Applied in order, once, by the store.
pub const MIGRATIONS: &[(&str, &str)] = &[
    (
        "kernel-1",
        "CREATE TABLE ledger (
        tenant TEXT NOT NULL, scope TEXT NOT NULL, key TEXT NOT NULL,
        fingerprint TEXT NOT NULL, action TEXT NOT NULL, run TEXT NOT NULL,
        state TEXT NOT NULL, outcome TEXT, expires_ms INTEGER NOT NULL,
        PRIMARY KEY (tenant, scope, key)) STRICT, WITHOUT ROWID;
     CREATE INDEX ledger_expiry ON ledger (expires_ms);
     CREATE TABLE journal (
        seq INTEGER PRIMARY KEY, tenant TEXT NOT NULL, at_ms INTEGER NOT NULL, run TEXT NOT NULL,
        action TEXT NOT NULL, entry TEXT NOT NULL, correlation TEXT NOT NULL, data TEXT NOT NULL) STRICT;
     CREATE INDEX journal_run ON journal (tenant, run);
     CREATE INDEX journal_time ON journal (at_ms);
     CREATE TABLE versions (
        tenant TEXT NOT NULL, subject TEXT NOT NULL, version INTEGER NOT NULL,
        PRIMARY KEY (tenant, subject)) STRICT, WITHOUT ROWID;",
    ),
    (
        "kernel-2",
        "ALTER TABLE journal ADD COLUMN lane TEXT;
     ALTER TABLE journal ADD COLUMN id TEXT;
     CREATE INDEX journal_lane ON journal (tenant, lane, seq) WHERE lane IS NOT NULL;
     CREATE INDEX journal_id ON journal (tenant, id, seq) WHERE id IS NOT NULL;
     CREATE INDEX ledger_running ON ledger (scope) WHERE state = 'running';",
    ),
];

/// The states of a ledger row.
pub const RUNNING: &str = "running";
pub const DONE: &str = "done";

/// Columns: fingerprint, action, run, state, outcome, expires_ms.
pub fn ledger_find(tenant: &str, scope: &str, key: &str) -> Statement {
    Statement::new(
        "SELECT fingerprint, action, run, state, outcome, expires_ms FROM ledger
         WHERE tenant = ?1 AND scope = ?2 AND key = ?3",
        vec![tenant.into(), scope.into(), key.into()],
    )
}

/// One row of the ledger.
pub struct LedgerRow<'a> {
    pub tenant: &'a str,
    pub scope: &'a str,
    pub key: &'a str,
    pub fingerprint: &'a str,
    pub action: &'a str,
    pub run: String,
    pub state: &'static str,
    pub outcome: Option<String>,
    pub expires_ms: i64,
    pub now_ms: i64,
}

/// Writes a row where there is none, or only one that has expired. Changes one row, or the key is taken.
pub fn ledger_insert(row: LedgerRow<'_>) -> Statement {
    Statement::new(
        "INSERT INTO ledger (tenant, scope, key, fingerprint, action, run, state, outcome, expires_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
         ON CONFLICT (tenant, scope, key) DO UPDATE SET
            fingerprint = excluded.fingerprint, action = excluded.action, run = excluded.run,
            state = excluded.state, outcome = excluded.outcome, expires_ms = excluded.expires_ms
         WHERE ledger.expires_ms <= ?10",
        vec![
            row.tenant.into(),
            row.scope.into(),
            row.key.into(),
            row.fingerprint.into(),
            row.action.into(),
            row.run.into(),
            row.state.into(),
            row.outcome.into(),
            row.expires_ms.into(),
            row.now_ms.into(),
        ],
    )
}

/// Settles a row that this run claimed. Changes one row, or another run has taken it over.
pub fn ledger_settle(
    tenant: &str,
    scope: &str,
    key: &str,
    run: &str,
    outcome: &str,
    expires_ms: i64,
) -> Statement {
    Statement::new(
        "UPDATE ledger SET state = 'done', outcome = ?5, expires_ms = ?6
         WHERE tenant = ?1 AND scope = ?2 AND key = ?3 AND run = ?4 AND state = 'running'",
        vec![tenant.into(), scope.into(), key.into(), run.into(), outcome.into(), expires_ms.into()],
    )
}

/// Another outcome of the same run.
pub fn ledger_replace(tenant: &str, scope: &str, key: &str, run: &str, outcome: &str) -> Statement {
    Statement::new(
        "UPDATE ledger SET outcome = ?5
         WHERE tenant = ?1 AND scope = ?2 AND key = ?3 AND run = ?4 AND state = 'done'",
        vec![tenant.into(), scope.into(), key.into(), run.into(), outcome.into()],
    )
}

/// Gives a claimed key back: what was claimed did not run.
pub fn ledger_release(tenant: &str, scope: &str, key: &str, run: &str) -> Statement {
    Statement::new(
        "DELETE FROM ledger WHERE tenant = ?1 AND scope = ?2 AND key = ?3 AND run = ?4 AND state = 'running'",
        vec![tenant.into(), scope.into(), key.into(), run.into()],
    )
}

/// Takes over a row whose run died with its process.
pub fn ledger_take_over(
    tenant: &str,
    scope: &str,
    key: &str,
    dead: &str,
    run: &str,
    expires_ms: i64,
) -> Statement {
    Statement::new(
        "UPDATE ledger SET run = ?5, expires_ms = ?6
         WHERE tenant = ?1 AND scope = ?2 AND key = ?3 AND run = ?4 AND state = 'running'",
        vec![tenant.into(), scope.into(), key.into(), dead.into(), run.into(), expires_ms.into()],
    )
}

/// Keys whose run was cut off, of scopes from one text to another. Columns: tenant, scope, key, action, run, lane.
pub fn ledger_cut_off(from: &str, to: &str, limit: i64) -> Statement {
    Statement::new(
        "SELECT l.tenant, l.scope, l.key, l.action, l.run,
            (SELECT j.lane FROM journal j WHERE j.tenant = l.tenant AND j.run = l.run AND j.entry = 'accepted')
         FROM ledger l
         WHERE l.state = 'running' AND l.scope >= ?1 AND l.scope < ?2 ORDER BY l.scope, l.tenant, l.key LIMIT ?3",
        vec![from.into(), to.into(), limit.into()],
    )
}

/// Records the end of a run that was cut off, beside its beginning.
pub fn journal_cut_off(tenant: &str, run: &str, at_ms: i64, data: String) -> Statement {
    Statement::new(
        "INSERT INTO journal (tenant, at_ms, run, action, entry, correlation, lane, id, data)
         SELECT tenant, ?3, run, action, 'finished', correlation, lane, id, ?4 FROM journal
         WHERE tenant = ?1 AND run = ?2 AND entry = 'accepted'",
        vec![tenant.into(), run.into(), at_ms.into(), data.into()],
    )
}

/// Deletes a slice of what has expired; the sweep repeats it until nothing is left.
pub const LEDGER_SWEEP: &str = "DELETE FROM ledger WHERE (tenant, scope, key) IN
    (SELECT tenant, scope, key FROM ledger WHERE expires_ms <= ?1 AND state = 'done' LIMIT ?2)";

/// Deletes a slice of the journal older than a time.
pub const JOURNAL_SWEEP: &str =
    "DELETE FROM journal WHERE seq IN (SELECT seq FROM journal WHERE at_ms <= ?1 ORDER BY at_ms LIMIT ?2)";

pub struct JournalRow<'a> {
    pub tenant: &'a str,
    pub at_ms: i64,
    pub run: String,
    pub action: &'a str,
    pub entry: &'static str,
    pub correlation: &'a str,
    pub lane: Option<&'a str>,
    pub id: Option<&'a str>,
    pub data: String,
}

pub fn journal_append(row: JournalRow<'_>) -> Statement {
    Statement::new(
        "INSERT INTO journal (tenant, at_ms, run, action, entry, correlation, lane, id, data)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        vec![
            row.tenant.into(),
            row.at_ms.into(),
            row.run.into(),
            row.action.into(),
            row.entry.into(),
            row.correlation.into(),
            row.lane.into(),
            row.id.into(),
            row.data.into(),
        ],
    )
}

/// Column: version.
pub fn version_find(tenant: &str, subject: &str) -> Statement {
    Statement::new(
        "SELECT version FROM versions WHERE tenant = ?1 AND subject = ?2",
        vec![tenant.into(), subject.into()],
    )
}

pub fn version_create(tenant: &str, subject: &str) -> Statement {
    Statement::new(
        "INSERT INTO versions (tenant, subject, version) VALUES (?1, ?2, 0) ON CONFLICT DO NOTHING",
        vec![tenant.into(), subject.into()],
    )
}

/// Changes one row, or somebody else changed it since.
pub fn version_bump(tenant: &str, subject: &str, seen: u64) -> Statement {
    Statement::new(
        "UPDATE versions SET version = version + 1 WHERE tenant = ?1 AND subject = ?2 AND version = ?3",
        vec![tenant.into(), subject.into(), Cell::Int(i64::try_from(seen).unwrap_or(i64::MAX))],
    )
}

pub fn version_remove(tenant: &str, subject: &str) -> Statement {
    Statement::new(
        "DELETE FROM versions WHERE tenant = ?1 AND subject = ?2",
        vec![tenant.into(), subject.into()],
    )
}
