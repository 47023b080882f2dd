//! Statements over notifications that are to be delivered.

use orchestr8_kernel::ports::store::Statement;

use crate::triggers::Trigger;

pub const MIGRATION: (&str, &str) = (
    "workflows-notifications-1",
    "CREATE TABLE wf_notifications (
        num INTEGER PRIMARY KEY, tenant TEXT NOT NULL, trigger_id TEXT NOT NULL, id TEXT NOT NULL, event TEXT NOT NULL,
        body TEXT NOT NULL, attempts INTEGER NOT NULL, due_ms INTEGER, failed_ms INTEGER, why TEXT) STRICT;
     CREATE INDEX wf_notifications_of ON wf_notifications (tenant, trigger_id, num);
     CREATE INDEX wf_notifications_due ON wf_notifications (due_ms) WHERE due_ms IS NOT NULL;
     CREATE INDEX wf_notifications_failed ON wf_notifications (failed_ms) WHERE failed_ms IS NOT NULL;",
);

/// Forgets notifications that were given up long ago.
pub const NOTIFICATIONS_SWEEP: &str = "DELETE FROM wf_notifications WHERE num IN
    (SELECT num FROM wf_notifications WHERE failed_ms IS NOT NULL AND failed_ms <= ?1 LIMIT ?2)";
pub const NOTIFICATIONS_OLD: &str = "SELECT COUNT(*) FROM (SELECT 1 FROM wf_notifications
    WHERE failed_ms IS NOT NULL AND failed_ms <= ?1 LIMIT ?2)";

pub fn insert(trigger: &Trigger, id: &str, event: &str, body: String, now_ms: i64) -> Statement {
    Statement::new(
        "INSERT INTO wf_notifications (tenant, trigger_id, id, event, body, attempts, due_ms) VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6)",
        vec![
            trigger.tenant.as_str().into(),
            trigger.id.as_str().into(),
            id.into(),
            event.into(),
            body.into(),
            now_ms.into(),
        ],
    )
}

/// Columns: how many wait, how many were given up, why the last one failed.
pub fn counts(tenant: &str, trigger: &str) -> Statement {
    Statement::new(
        "SELECT COUNT(due_ms), COUNT(failed_ms),
            (SELECT n.why FROM wf_notifications n WHERE n.tenant = ?1 AND n.trigger_id = ?2 AND n.why IS NOT NULL
             ORDER BY n.num DESC LIMIT 1)
         FROM wf_notifications WHERE tenant = ?1 AND trigger_id = ?2",
        vec![tenant.into(), trigger.into()],
    )
}

/// What is due of triggers that are not paused, oldest first. Columns: num, tenant, trigger_id, id, event, body, attempts.
pub fn due(now_ms: i64, limit: i64) -> Statement {
    Statement::new(
        "SELECT n.num, n.tenant, n.trigger_id, n.id, n.event, n.body, n.attempts
         FROM wf_notifications n JOIN wf_triggers t ON t.tenant = n.tenant AND t.id = n.trigger_id
         WHERE n.due_ms IS NOT NULL AND n.due_ms <= ?1 AND t.paused IS NULL ORDER BY n.due_ms, n.num LIMIT ?2",
        vec![now_ms.into(), limit.into()],
    )
}

/// Column: when the next is due, or null.
pub fn next_due() -> Statement {
    Statement::new(
        "SELECT MIN(n.due_ms) FROM wf_notifications n JOIN wf_triggers t ON t.tenant = n.tenant AND t.id = n.trigger_id
         WHERE n.due_ms IS NOT NULL AND t.paused IS NULL",
        Vec::new(),
    )
}

pub fn delivered(num: i64) -> Statement {
    Statement::new("DELETE FROM wf_notifications WHERE num = ?1", vec![num.into()])
}

/// Tried in vain: to be tried again, or given up.
pub fn put_off(num: i64, attempts: i64, due_ms: Option<i64>, failed_ms: Option<i64>, why: &str) -> Statement {
    Statement::new(
        "UPDATE wf_notifications SET attempts = ?2, due_ms = ?3, failed_ms = ?4, why = ?5 WHERE num = ?1",
        vec![num.into(), attempts.into(), due_ms.into(), failed_ms.into(), why.into()],
    )
}

/// Tries again what was given up.
pub fn redrive(tenant: &str, trigger: &str, now_ms: i64) -> Statement {
    Statement::new(
        "UPDATE wf_notifications SET attempts = 0, due_ms = ?3, failed_ms = NULL
         WHERE tenant = ?1 AND trigger_id = ?2 AND failed_ms IS NOT NULL",
        vec![tenant.into(), trigger.into(), now_ms.into()],
    )
}

pub fn delete_all(tenant: &str, trigger: &str) -> Statement {
    Statement::new(
        "DELETE FROM wf_notifications WHERE tenant = ?1 AND trigger_id = ?2",
        vec![tenant.into(), trigger.into()],
    )
}

/// Moves a trigger on past an event it told of. Changes one row, or it was told before.
pub fn told(trigger: &Trigger, place: i64, at_ms: i64) -> Statement {
    Statement::new(
        "UPDATE wf_triggers SET cursor = ?4, deliveries = deliveries + 1, last_ms = ?5
         WHERE tenant = ?1 AND id = ?2 AND spec = ?3 AND cursor < ?4 AND paused IS NULL",
        vec![
            trigger.tenant.as_str().into(),
            trigger.id.as_str().into(),
            trigger.source().into(),
            place.into(),
            at_ms.into(),
        ],
    )
}
