//! Statements over triggers, the deliveries that wait for them, and the keys of deliveries that came.

use orchestr8_kernel::ports::store::{Cell, Statement};

use super::Trigger;

pub const MIGRATION: (&str, &str) = (
    "workflows-triggers-1",
    "CREATE TABLE wf_triggers (
        tenant TEXT NOT NULL, id TEXT NOT NULL, spec TEXT NOT NULL, paused TEXT, seal TEXT, due_ms INTEGER, since_ms INTEGER,
        pending INTEGER NOT NULL DEFAULT 0, remembered INTEGER NOT NULL DEFAULT 0, deliveries INTEGER NOT NULL DEFAULT 0,
        duplicates INTEGER NOT NULL DEFAULT 0, started INTEGER NOT NULL DEFAULT 0, last_ms INTEGER, last_execution TEXT,
        last_error TEXT, cursor INTEGER, PRIMARY KEY (tenant, id)) STRICT, WITHOUT ROWID;
     CREATE INDEX wf_triggers_following ON wf_triggers (tenant) WHERE cursor IS NOT NULL AND paused IS NULL;
     CREATE INDEX wf_triggers_due ON wf_triggers (due_ms) WHERE due_ms IS NOT NULL AND paused IS NULL;
     CREATE TABLE wf_trigger_pending (
        id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, trigger_id TEXT NOT NULL, at_ms INTEGER NOT NULL, inputs TEXT NOT NULL) STRICT;
     CREATE INDEX wf_trigger_pending_of ON wf_trigger_pending (tenant, trigger_id, id);
     CREATE TABLE wf_trigger_keys (
        tenant TEXT NOT NULL, trigger_id TEXT NOT NULL, key TEXT NOT NULL, until_ms INTEGER NOT NULL, execution TEXT,
        PRIMARY KEY (tenant, trigger_id, key)) STRICT, WITHOUT ROWID;
     CREATE INDEX wf_trigger_keys_until ON wf_trigger_keys (until_ms);",
);

/// Forgets deliveries that need not be remembered any more.
pub const KEYS_SWEEP: &str = "DELETE FROM wf_trigger_keys WHERE (tenant, trigger_id, key) IN
    (SELECT tenant, trigger_id, key FROM wf_trigger_keys WHERE until_ms <= ?1 LIMIT ?2)";
pub const KEYS_OLD: &str =
    "SELECT COUNT(*) FROM (SELECT 1 FROM wf_trigger_keys WHERE until_ms <= ?1 LIMIT ?2)";

const COLUMNS: &str =
    "tenant, id, spec, paused, seal, due_ms, since_ms, pending, remembered, deliveries, duplicates, started,
    last_ms, last_execution, last_error, cursor";

/// Stores a trigger. Counters and what waits stay.
pub fn put(trigger: &Trigger, seal: Option<String>) -> Statement {
    Statement::new(
        "INSERT INTO wf_triggers (tenant, id, spec, paused, seal, cursor) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (tenant, id) DO UPDATE SET spec = excluded.spec, paused = excluded.paused, seal = excluded.seal,
            cursor = excluded.cursor, last_error = NULL",
        cells(trigger, seal),
    )
}

fn cells(trigger: &Trigger, seal: Option<String>) -> Vec<Cell> {
    vec![
        trigger.tenant.as_str().into(),
        trigger.id.as_str().into(),
        trigger.source.as_str().into(),
        trigger.paused.clone().into(),
        seal.into(),
        trigger.spec.follows().then_some(trigger.cursor).into(),
    ]
}

/// Pauses it or lets it go on. Changes one row, or it is another one meanwhile.
pub fn switch(trigger: &Trigger, seal: Option<String>) -> Statement {
    Statement::new(
        "UPDATE wf_triggers SET paused = ?4, seal = ?5, cursor = ?6 WHERE tenant = ?1 AND id = ?2 AND spec = ?3",
        cells(trigger, seal),
    )
}

/// Stops one that was changed in the data file; it keeps the seal that does not match.
pub fn stop(tenant: &str, id: &str, reason: &str) -> Statement {
    Statement::new(
        "UPDATE wf_triggers SET paused = ?3 WHERE tenant = ?1 AND id = ?2",
        vec![tenant.into(), id.into(), reason.into()],
    )
}

/// The columns of `COLUMNS`.
pub fn find(tenant: &str, id: &str) -> Statement {
    Statement {
        sql: format!("SELECT {COLUMNS} FROM wf_triggers WHERE tenant = ?1 AND id = ?2").into(),
        cells: vec![tenant.into(), id.into()],
    }
}

/// The columns of `COLUMNS`.
pub fn page(tenant: &str, after: &str, limit: i64) -> Statement {
    Statement {
        sql: format!("SELECT {COLUMNS} FROM wf_triggers WHERE tenant = ?1 AND id > ?2 ORDER BY id LIMIT ?3")
            .into(),
        cells: vec![tenant.into(), after.into(), limit.into()],
    }
}

/// Column: how many triggers a tenant has besides this one.
pub fn count_others(tenant: &str, id: &str) -> Statement {
    Statement::new(
        "SELECT COUNT(*) FROM wf_triggers WHERE tenant = ?1 AND id <> ?2",
        vec![tenant.into(), id.into()],
    )
}

/// What is due, whatever the tenant. The columns of `COLUMNS`.
pub fn due(now_ms: i64, limit: i64) -> Statement {
    Statement {
        sql: format!(
            "SELECT {COLUMNS} FROM wf_triggers WHERE due_ms IS NOT NULL AND paused IS NULL AND due_ms <= ?1
             ORDER BY due_ms LIMIT ?2"
        )
        .into(),
        cells: vec![now_ms.into(), limit.into()],
    }
}

/// Column: when the next one is due, or null.
pub fn next_due() -> Statement {
    Statement::new(
        "SELECT MIN(due_ms) FROM wf_triggers WHERE due_ms IS NOT NULL AND paused IS NULL",
        Vec::new(),
    )
}

/// Deletes a trigger with all that belongs to it; the first must change one row.
pub fn delete(tenant: &str, id: &str) -> [Statement; 3] {
    [
        "DELETE FROM wf_triggers WHERE tenant = ?1 AND id = ?2",
        "DELETE FROM wf_trigger_pending WHERE tenant = ?1 AND trigger_id = ?2",
        "DELETE FROM wf_trigger_keys WHERE tenant = ?1 AND trigger_id = ?2",
    ]
    .map(|sql| Statement::new(sql, vec![tenant.into(), id.into()]))
}

/// Columns: whether one of two keys is remembered, the execution it started.
pub fn known_key(tenant: &str, id: &str, keys: [&str; 2], now_ms: i64) -> Statement {
    Statement::new(
        "SELECT 1, execution FROM wf_trigger_keys
         WHERE tenant = ?1 AND trigger_id = ?2 AND key IN (?3, ?4) AND until_ms > ?5 LIMIT 1",
        vec![tenant.into(), id.into(), keys[0].into(), keys[1].into(), now_ms.into()],
    )
}

/// Remembers a key. Changes one row, or it is remembered already.
pub fn key_insert(
    (tenant, id): (&str, &str),
    key: &str,
    (now_ms, until_ms): (i64, i64),
    execution: Option<&str>,
) -> Statement {
    Statement::new(
        "INSERT INTO wf_trigger_keys (tenant, trigger_id, key, until_ms, execution) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (tenant, trigger_id, key) DO UPDATE SET until_ms = excluded.until_ms, execution = excluded.execution
            WHERE wf_trigger_keys.until_ms <= ?6",
        vec![tenant.into(), id.into(), key.into(), until_ms.into(), execution.into(), now_ms.into()],
    )
}

/// Column: how many keys are remembered.
pub fn keys_count(tenant: &str, id: &str, now_ms: i64) -> Statement {
    Statement::new(
        "SELECT COUNT(*) FROM wf_trigger_keys WHERE tenant = ?1 AND trigger_id = ?2 AND until_ms > ?3",
        vec![tenant.into(), id.into(), now_ms.into()],
    )
}

/// What a delivery changes of its trigger.
pub struct DeliveryCount<'c> {
    pub duplicates: i64,
    pub started: i64,
    pub remembered: i64,
    pub pending: i64,
    pub due_ms: Option<i64>,
    pub since_ms: Option<i64>,
    pub last_ms: i64,
    pub execution: Option<&'c str>,
}

/// Counts a delivery. Changes one row, or the trigger was deleted, stored again or paused meanwhile.
pub fn count(trigger: &Trigger, counted: &DeliveryCount<'_>) -> Statement {
    Statement::new(
        "UPDATE wf_triggers SET deliveries = deliveries + 1, duplicates = duplicates + ?4, started = started + ?5,
            remembered = ?6, pending = ?7, due_ms = ?8, since_ms = ?9, last_ms = ?10,
            last_execution = COALESCE(?11, last_execution)
         WHERE tenant = ?1 AND id = ?2 AND spec = ?3 AND paused IS NULL",
        vec![
            trigger.tenant.as_str().into(),
            trigger.id.as_str().into(),
            trigger.source.as_str().into(),
            counted.duplicates.into(),
            counted.started.into(),
            counted.remembered.into(),
            counted.pending.into(),
            counted.due_ms.into(),
            counted.since_ms.into(),
            counted.last_ms.into(),
            counted.execution.into(),
        ],
    )
}

pub fn pending_insert(tenant: &str, id: &str, at_ms: i64, inputs: String) -> Statement {
    Statement::new(
        "INSERT INTO wf_trigger_pending (tenant, trigger_id, at_ms, inputs) VALUES (?1, ?2, ?3, ?4)",
        vec![tenant.into(), id.into(), at_ms.into(), inputs.into()],
    )
}

/// Columns: id, inputs; in the order in which they came.
pub fn pending(tenant: &str, id: &str, limit: i64) -> Statement {
    Statement::new(
        "SELECT id, inputs FROM wf_trigger_pending WHERE tenant = ?1 AND trigger_id = ?2 ORDER BY id LIMIT ?3",
        vec![tenant.into(), id.into(), limit.into()],
    )
}

pub fn pending_delete(tenant: &str, id: &str, up_to: i64) -> Statement {
    Statement::new(
        "DELETE FROM wf_trigger_pending WHERE tenant = ?1 AND trigger_id = ?2 AND id <= ?3",
        vec![tenant.into(), id.into(), up_to.into()],
    )
}

/// What follows from an attempt to start what waits. Changes one row, or the trigger was deleted meanwhile.
pub fn fired(
    trigger: &Trigger,
    taken: i64,
    (due_ms, since_ms): (Option<i64>, Option<i64>),
    execution: Option<&str>,
    error: Option<&str>,
) -> Statement {
    Statement::new(
        "UPDATE wf_triggers SET pending = pending - ?3, due_ms = ?4, since_ms = ?5, started = started + ?6,
            last_execution = COALESCE(?7, last_execution), last_error = ?8
         WHERE tenant = ?1 AND id = ?2",
        vec![
            trigger.tenant.as_str().into(),
            trigger.id.as_str().into(),
            taken.into(),
            due_ms.into(),
            since_ms.into(),
            i64::from(execution.is_some()).into(),
            execution.into(),
            error.into(),
        ],
    )
}

/// Event triggers that follow the journals, of all tenants. The columns of `COLUMNS`.
pub fn following() -> Statement {
    Statement {
        sql: format!("SELECT {COLUMNS} FROM wf_triggers WHERE cursor IS NOT NULL AND paused IS NULL").into(),
        cells: Vec::new(),
    }
}

/// What event triggers can follow, after a place. Columns as those of the feed.
pub fn events(tenant: &str, after: i64, limit: i64) -> Statement {
    Statement::new(
        "SELECT j.id, j.kind, j.step, j.level, j.data, j.at_ms, e.id, e.workflow
         FROM wf_journal j JOIN wf_executions e ON e.num = j.execution
         WHERE j.id > ?1 AND j.seq > 0 AND e.tenant = ?2 AND j.kind IN ('execution-start', 'execution-complete',
            'execution-failed', 'cancellation-complete', 'cancellation-forced', 'execution-compensated', 'execution-paused',
            'execution-resumed', 'execution-retried', 'step-complete', 'step-failed', 'timeout', 'step-waiting')
         ORDER BY j.id LIMIT ?3",
        vec![after.into(), tenant.into(), limit.into()],
    )
}

/// Column: how the newest execution with a correlation id was started.
pub fn newest_of_correlation(tenant: &str, correlation: &str) -> Statement {
    Statement::new(
        "SELECT given FROM wf_executions WHERE tenant = ?1 AND correlation = ?2 ORDER BY num DESC LIMIT 1",
        vec![tenant.into(), correlation.into()],
    )
}

/// Says why a trigger cannot follow its events; nothing if it can again.
pub fn following_failed(trigger: &Trigger, error: Option<&str>) -> Statement {
    Statement::new(
        "UPDATE wf_triggers SET last_error = ?4 WHERE tenant = ?1 AND id = ?2 AND spec = ?3",
        vec![
            trigger.tenant.as_str().into(),
            trigger.id.as_str().into(),
            trigger.source.as_str().into(),
            error.into(),
        ],
    )
}

/// Remembers how far an event trigger has read; never less far than before.
pub fn read_up_to(trigger: &Trigger, place: i64) -> Statement {
    Statement::new(
        "UPDATE wf_triggers SET cursor = ?4 WHERE tenant = ?1 AND id = ?2 AND spec = ?3 AND cursor < ?4",
        vec![
            trigger.tenant.as_str().into(),
            trigger.id.as_str().into(),
            trigger.source.as_str().into(),
            place.into(),
        ],
    )
}

/// Counts an event that started an execution, or could not. Changes one row, or it was taken before.
pub fn event_taken(trigger: &Trigger, place: i64, at_ms: i64, result: Result<&str, &str>) -> Statement {
    Statement::new(
        "UPDATE wf_triggers SET cursor = ?4, deliveries = deliveries + 1, started = started + ?5, last_ms = ?6,
            last_execution = COALESCE(?7, last_execution), last_error = ?8
         WHERE tenant = ?1 AND id = ?2 AND spec = ?3 AND cursor < ?4 AND paused IS NULL",
        vec![
            trigger.tenant.as_str().into(),
            trigger.id.as_str().into(),
            trigger.source.as_str().into(),
            place.into(),
            i64::from(result.is_ok()).into(),
            at_ms.into(),
            result.ok().into(),
            result.err().into(),
        ],
    )
}
