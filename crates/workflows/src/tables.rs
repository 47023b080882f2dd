//! The tables of workflows and every statement over them. The only SQL of this crate.
//!
//! Executions have a number besides their id: numbers grow, so what belongs to one execution lies together on disk and the
//! cost of a record does not grow with the number of executions stored.

use orchestr8_kernel::ports::store::{Cell, Statement};

use crate::tags::ExecutionTags;

/// Applied in order, once, by the store.
pub const MIGRATIONS: &[(&str, &str)] = &[
    (
        "workflows-1",
        "CREATE TABLE wf_definitions (
        tenant TEXT NOT NULL, hash TEXT NOT NULL, source TEXT NOT NULL,
        PRIMARY KEY (tenant, hash)) STRICT, WITHOUT ROWID;
     CREATE TABLE wf_workflows (
        tenant TEXT NOT NULL, id TEXT NOT NULL, revision INTEGER NOT NULL, version TEXT NOT NULL, name TEXT NOT NULL,
        about TEXT NOT NULL, hash TEXT NOT NULL, applied_ms INTEGER NOT NULL, deleted INTEGER NOT NULL DEFAULT 0,
        newest INTEGER NOT NULL DEFAULT 1,
        PRIMARY KEY (tenant, id, revision)) STRICT, WITHOUT ROWID;
     CREATE TABLE wf_executions (
        num INTEGER PRIMARY KEY, tenant TEXT NOT NULL, id TEXT NOT NULL, workflow TEXT NOT NULL, name TEXT NOT NULL,
        version TEXT NOT NULL, hash TEXT NOT NULL, status TEXT NOT NULL, awake INTEGER NOT NULL, priority INTEGER NOT NULL,
        correlation TEXT NOT NULL, given TEXT NOT NULL, parent INTEGER, created_ms INTEGER NOT NULL,
        started_ms INTEGER, ended_ms INTEGER, error TEXT) STRICT;
     CREATE UNIQUE INDEX wf_executions_id ON wf_executions (tenant, id);
     CREATE INDEX wf_executions_workflow ON wf_executions (tenant, workflow, num);
     CREATE INDEX wf_executions_status ON wf_executions (tenant, status, num);
     CREATE INDEX wf_executions_correlation ON wf_executions (tenant, correlation);
     CREATE INDEX wf_executions_created ON wf_executions (created_ms);
     CREATE INDEX wf_executions_parent ON wf_executions (parent) WHERE parent IS NOT NULL;
     CREATE INDEX wf_executions_awake ON wf_executions (num) WHERE awake = 1;
     CREATE TABLE wf_journal (
        id INTEGER PRIMARY KEY, execution INTEGER NOT NULL, seq INTEGER NOT NULL, at_ms INTEGER NOT NULL,
        kind TEXT NOT NULL, step TEXT, level TEXT NOT NULL, data TEXT NOT NULL, truncated TEXT, record TEXT) STRICT;
     CREATE UNIQUE INDEX wf_journal_seq ON wf_journal (execution, seq);
     CREATE TABLE wf_timers (
        execution INTEGER NOT NULL, task TEXT NOT NULL, due_ms INTEGER NOT NULL,
        PRIMARY KEY (execution, task)) STRICT, WITHOUT ROWID;
     CREATE INDEX wf_timers_due ON wf_timers (due_ms);
     CREATE TABLE wf_inbox (
        id INTEGER PRIMARY KEY, execution INTEGER NOT NULL, at_ms INTEGER NOT NULL, event TEXT NOT NULL) STRICT;
     CREATE INDEX wf_inbox_execution ON wf_inbox (execution);
     CREATE TABLE wf_approvals (
        token TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, execution INTEGER NOT NULL, task TEXT NOT NULL,
        ask TEXT NOT NULL) STRICT, WITHOUT ROWID;
     CREATE INDEX wf_approvals_execution ON wf_approvals (execution, task);
     CREATE TABLE wf_schedules (
        tenant TEXT NOT NULL, id TEXT NOT NULL, spec TEXT NOT NULL, paused INTEGER NOT NULL, next_ms INTEGER,
        last_ms INTEGER, last_execution TEXT, PRIMARY KEY (tenant, id)) STRICT, WITHOUT ROWID;
     CREATE INDEX wf_schedules_due ON wf_schedules (next_ms) WHERE paused = 0 AND next_ms IS NOT NULL;
     CREATE TABLE wf_breakers (key TEXT NOT NULL PRIMARY KEY, state TEXT NOT NULL) STRICT, WITHOUT ROWID;",
    ),
    // Executions whose journals are still to go: looking for them among all journals would take longer every day.
    (
        "workflows-2",
        "CREATE TABLE wf_gone (execution INTEGER PRIMARY KEY) STRICT;
     INSERT INTO wf_gone (execution) SELECT DISTINCT execution FROM wf_journal
        WHERE NOT EXISTS (SELECT 1 FROM wf_executions WHERE num = wf_journal.execution);
     CREATE TRIGGER wf_executions_gone AFTER DELETE ON wf_executions
        BEGIN INSERT OR IGNORE INTO wf_gone (execution) VALUES (old.num); END;",
    ),
    // Who applied a revision, with the roles of that moment; null for revisions of earlier versions.
    (
        "workflows-3",
        "ALTER TABLE wf_workflows ADD COLUMN author TEXT;
     ALTER TABLE wf_workflows ADD COLUMN author_roles TEXT;",
    ),
    // From here on a journal goes before its execution does. What was left of those before goes now, but for the newest entry of
    // all: numbers go on after it.
    (
        "workflows-4",
        "DELETE FROM wf_journal WHERE execution IN (SELECT execution FROM wf_gone)
            AND id < (SELECT MAX(id) FROM wf_journal);",
    ),
    // Limits by key: places that executions hold until they end, and starts that count until a time.
    (
        "workflows-5",
        "CREATE TABLE wf_limits (
        key TEXT NOT NULL, execution INTEGER NOT NULL, until_ms INTEGER,
        PRIMARY KEY (key, execution)) STRICT, WITHOUT ROWID;
     CREATE INDEX wf_limits_execution ON wf_limits (execution) WHERE until_ms IS NULL;
     CREATE INDEX wf_limits_until ON wf_limits (until_ms) WHERE until_ms IS NOT NULL;",
    ),
    // Seals of rows that grant rights.
    (
        "workflows-6",
        "ALTER TABLE wf_approvals ADD COLUMN seal TEXT;
     ALTER TABLE wf_schedules ADD COLUMN seal TEXT;",
    ),
    // Events that are kept for an execution until a step waits for them.
    ("workflows-7", "ALTER TABLE wf_executions ADD COLUMN signals INTEGER NOT NULL DEFAULT 0;"),
    crate::tags::tables::MIGRATION,
    crate::schedules::MIGRATION,
    crate::runtime::tables::ARTIFACTS,
    crate::bulk::tables::MIGRATION,
    crate::runtime::tables::LIMIT_OVERRIDES,
    crate::runtime::tables::SEALS,
    crate::triggers::tables::MIGRATION,
    crate::keyed_events::tables::MIGRATION,
    crate::notifications::tables::MIGRATION,
    crate::runtime::tables::WAITING,
    crate::runtime::trees::tables::MIGRATION,
];

pub use crate::keyed_events::tables::{EVENTS_OLD, EVENTS_SWEEP};
pub use crate::notifications::tables::{NOTIFICATIONS_OLD, NOTIFICATIONS_SWEEP};
pub use crate::triggers::tables::{KEYS_OLD, KEYS_SWEEP};

/// Forgets executions whose journals are gone, too.
pub const GONE_SWEEP: &str = "DELETE FROM wf_gone WHERE execution IN
    (SELECT execution FROM wf_gone
     WHERE NOT EXISTS (SELECT 1 FROM wf_journal entry WHERE entry.execution = wf_gone.execution) LIMIT ?2)";
pub const GONE_OLD: &str = "SELECT COUNT(*) FROM (SELECT 1 FROM wf_gone
    WHERE NOT EXISTS (SELECT 1 FROM wf_journal entry WHERE entry.execution = wf_gone.execution) LIMIT ?2)";

pub fn definition_keep(tenant: &str, hash: &str, source: String) -> Statement {
    Statement::new(
        "INSERT INTO wf_definitions (tenant, hash, source) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        vec![tenant.into(), hash.into(), source.into()],
    )
}

/// Column: source.
pub fn definition_find(tenant: &str, hash: &str) -> Statement {
    Statement::new(
        "SELECT source FROM wf_definitions WHERE tenant = ?1 AND hash = ?2",
        vec![tenant.into(), hash.into()],
    )
}

/// One execution as it is first stored.
pub struct NewExecution<'a> {
    pub num: i64,
    pub tenant: &'a str,
    pub id: &'a str,
    pub workflow: &'a str,
    pub name: &'a str,
    pub version: &'a str,
    pub hash: &'a str,
    pub priority: i32,
    pub correlation: &'a str,
    pub given: String,
    pub parent: Option<i64>,
    /// The number of its root and its level, if it is a child.
    pub tree: Option<(i64, i64)>,
    pub created_ms: i64,
    /// An execution of pure steps may have ended before it is stored.
    pub progress: Progress,
}

pub fn execution_insert(new: NewExecution<'_>) -> Statement {
    Statement::new(
        "INSERT INTO wf_executions (num, tenant, id, workflow, name, version, hash, priority, correlation, given, parent,
            created_ms, status, awake, started_ms, ended_ms, error, signals, tree_root, tree_level)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)",
        vec![
            new.num.into(),
            new.tenant.into(),
            new.id.into(),
            new.workflow.into(),
            new.name.into(),
            new.version.into(),
            new.hash.into(),
            i64::from(new.priority).into(),
            new.correlation.into(),
            new.given.into(),
            new.parent.into(),
            new.created_ms.into(),
            Cell::word(new.progress.status),
            i64::from(new.progress.awake).into(),
            new.progress.started_ms.into(),
            new.progress.ended_ms.into(),
            new.progress.error.into(),
            new.progress.signals.into(),
            new.tree.map(|(root, _)| root).into(),
            new.tree.map(|(_, level)| level).into(),
        ],
    )
}

/// What changes of an execution while it lives.
pub struct Progress {
    pub status: &'static str,
    pub awake: bool,
    pub started_ms: Option<i64>,
    pub ended_ms: Option<i64>,
    pub error: Option<String>,
    /// Events that are kept for a step that will wait for them.
    pub signals: i64,
}

/// Changes one row, or the execution is gone.
pub fn execution_update(num: i64, progress: Progress) -> Statement {
    Statement::new(
        "UPDATE wf_executions SET status = ?2, awake = ?3, started_ms = ?4, ended_ms = ?5, error = ?6, signals = ?7
         WHERE num = ?1",
        vec![
            num.into(),
            Cell::word(progress.status),
            i64::from(progress.awake).into(),
            progress.started_ms.into(),
            progress.ended_ms.into(),
            progress.error.into(),
            progress.signals.into(),
        ],
    )
}

pub(crate) const EXECUTION: &str =
    "num, tenant, id, workflow, name, version, hash, status, priority, correlation, given, parent,
    created_ms, started_ms, ended_ms, error";

/// The columns of `EXECUTION`.
pub fn execution_find(tenant: &str, id: &str) -> Statement {
    Statement {
        sql: format!(
            "SELECT {EXECUTION} FROM wf_executions WHERE tenant = ?1 AND id = ?2 AND deleted_ms IS NULL"
        )
        .into(),
        cells: vec![tenant.into(), id.into()],
    }
}

/// The columns of `EXECUTION`, whatever the tenant: for the engine itself.
pub fn execution_by_number(num: i64) -> Statement {
    Statement {
        sql: format!("SELECT {EXECUTION} FROM wf_executions WHERE num = ?1 AND deleted_ms IS NULL").into(),
        cells: vec![num.into()],
    }
}

/// Which executions a list shows. Null cells do not restrict.
pub struct Wanted<'a> {
    pub tenant: &'a str,
    /// How the id begins.
    pub id_prefix: Option<&'a str>,
    pub status: Option<&'a str>,
    pub workflow: Option<&'a str>,
    pub correlation: Option<&'a str>,
    /// All of these; see `tags::tables` for a search by them.
    pub tags: &'a ExecutionTags,
    pub since_ms: Option<i64>,
    pub until_ms: Option<i64>,
    pub before: i64,
    pub limit: i64,
}

impl Wanted<'_> {
    /// What comes after all ids that begin so: ids have digits, letters in lower case and hyphens, all of them before this one.
    pub fn id_end(&self) -> Option<Cell> {
        self.id_prefix.map(|prefix| Cell::from(format!("{prefix}~")))
    }
}

/// Newest first. Each filter that has an index gets a statement that uses it; the others only narrow it down.
pub fn executions_page(wanted: &Wanted<'_>) -> Statement {
    let mut sql = format!(
        "SELECT {EXECUTION} FROM wf_executions WHERE tenant = ?1 AND num < ?2 AND deleted_ms IS NULL"
    );
    let mut cells: Vec<Cell> = vec![wanted.tenant.into(), wanted.before.into()];
    let mut narrow = |column: &str, cell: Option<Cell>| {
        if let Some(cell) = cell {
            cells.push(cell);
            sql.push_str(&format!(" AND {column} ?{}", cells.len()));
        }
    };
    narrow("id >=", wanted.id_prefix.map(Cell::from));
    narrow("id <", wanted.id_end());
    narrow("status =", wanted.status.map(Cell::from));
    narrow("workflow =", wanted.workflow.map(Cell::from));
    narrow("correlation =", wanted.correlation.map(Cell::from));
    narrow("created_ms >=", wanted.since_ms.map(Cell::from));
    narrow("created_ms <=", wanted.until_ms.map(Cell::from));
    cells.push(wanted.limit.into());
    sql.push_str(&format!(" ORDER BY num DESC LIMIT ?{}", cells.len()));
    Statement { sql: sql.into(), cells }
}

/// Columns: status, count.
pub fn executions_counted(tenant: &str) -> Statement {
    Statement::new(
        "SELECT status, COUNT(*) - (SELECT COUNT(*) FROM wf_executions gone
            WHERE gone.deleted_ms IS NOT NULL AND gone.tenant = ?1 AND gone.status = e.status)
         FROM wf_executions e WHERE tenant = ?1 GROUP BY status",
        vec![tenant.into()],
    )
}

/// Executions to take up after a start, a page at a time. Columns of `EXECUTION`.
pub fn executions_awake(after: i64, up_to: i64, limit: i64) -> Statement {
    Statement {
        sql: format!(
            "SELECT {EXECUTION} FROM wf_executions WHERE awake = 1 AND num > ?1 AND num <= ?2 ORDER BY num LIMIT ?3"
        )
        .into(),
        cells: vec![after.into(), up_to.into(), limit.into()],
    }
}

/// An execution and all it has begun, as far as they have not ended. Columns of `EXECUTION`.
pub fn executions_family(tenant: &str, id: &str) -> Statement {
    Statement {
        sql: format!(
            "WITH RECURSIVE family (member) AS (
                SELECT num FROM wf_executions WHERE tenant = ?1 AND id = ?2
                UNION SELECT num FROM wf_executions JOIN family ON parent = member)
             SELECT {EXECUTION} FROM wf_executions JOIN family ON num = member WHERE ended_ms IS NULL ORDER BY num"
        )
        .into(),
        cells: vec![tenant.into(), id.into()],
    }
}

pub struct JournalRow<'a> {
    pub execution: i64,
    pub seq: i64,
    pub at_ms: i64,
    pub kind: &'static str,
    pub step: Option<&'a str>,
    pub level: &'static str,
    pub data: String,
    pub truncated: Option<String>,
    pub record: Option<String>,
}

/// Changes one row, or somebody else has written the entry with this number.
pub fn journal_append(row: JournalRow<'_>) -> Statement {
    Statement::new(
        "INSERT INTO wf_journal (execution, seq, at_ms, kind, step, level, data, truncated, record)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING",
        vec![
            row.execution.into(),
            row.seq.into(),
            row.at_ms.into(),
            Cell::word(row.kind),
            row.step.into(),
            Cell::word(row.level),
            row.data.into(),
            row.truncated.into(),
            row.record.into(),
        ],
    )
}

/// A page of the records of an execution, after one number and up to another. Columns: seq, at_ms, record.
pub fn records(execution: i64, (after, up_to): (i64, i64), limit: i64) -> Statement {
    Statement::new(
        "SELECT seq, at_ms, record FROM wf_journal
         WHERE execution = ?1 AND seq > ?2 AND seq <= ?3 AND record IS NOT NULL ORDER BY seq LIMIT ?4",
        vec![execution.into(), after.into(), up_to.into(), limit.into()],
    )
}

/// Columns: the last number, its time, how many bytes of data.
pub fn journal_end(execution: i64) -> Statement {
    Statement::new(
        "SELECT COALESCE(MAX(seq), 0), COALESCE(MAX(at_ms), 0), COALESCE(SUM(LENGTH(data)), 0),
                SUM(level = 'error'), SUM(level = 'warn'), SUM(kind = 'step-retry')
         FROM wf_journal WHERE execution = ?1 AND seq > 0",
        vec![execution.into()],
    )
}

/// A page of a journal, between two numbers. Columns: seq, at_ms, kind, step, level, data, truncated.
pub fn journal_page(
    execution: i64,
    (after, up_to): (i64, i64),
    since_ms: Option<i64>,
    levels: &[&str],
    kinds: &[String],
    limit: i64,
) -> Statement {
    let mut sql = String::from(
        "SELECT seq, at_ms, kind, step, level, data, truncated FROM wf_journal
         WHERE execution = ?1 AND seq > 0 AND seq > ?2 AND seq <= ?3",
    );
    let mut cells: Vec<Cell> = vec![execution.into(), after.into(), up_to.into()];
    let mut one_of = |column: &str, values: Vec<Cell>, test: &str| {
        if values.is_empty() {
            return;
        }
        let places: Vec<String> = values
            .into_iter()
            .map(|cell| {
                cells.push(cell);
                format!("?{}", cells.len())
            })
            .collect();
        sql.push_str(&format!(" AND {column} {test} ({})", places.join(", ")));
    };
    one_of("level", levels.iter().map(|level| (*level).into()).collect(), "IN");
    one_of("kind", kinds.iter().map(|kind| kind.as_str().into()).collect(), "IN");
    one_of("at_ms", since_ms.map(Cell::from).into_iter().collect(), ">");
    cells.push(limit.into());
    sql.push_str(&format!(" ORDER BY seq LIMIT ?{}", cells.len()));
    Statement { sql: sql.into(), cells }
}
