//! Statements over events that are addressed by a business key, and the executions that wait for one.

use orchestr8_kernel::ports::store::Statement;

pub const MIGRATION: (&str, &str) = (
    "workflows-keyed-events-1",
    "CREATE TABLE wf_event_waits (
        tenant TEXT NOT NULL, name TEXT NOT NULL, key TEXT NOT NULL, execution INTEGER NOT NULL,
        PRIMARY KEY (tenant, name, key, execution)) STRICT, WITHOUT ROWID;
     CREATE INDEX wf_event_waits_execution ON wf_event_waits (execution);
     CREATE TABLE wf_keyed_events (
        num INTEGER PRIMARY KEY, tenant TEXT NOT NULL, id TEXT, name TEXT NOT NULL, key TEXT NOT NULL, payload TEXT NOT NULL,
        hash TEXT NOT NULL, waiting INTEGER NOT NULL, executions TEXT NOT NULL, until_ms INTEGER NOT NULL) STRICT;
     CREATE UNIQUE INDEX wf_keyed_events_id ON wf_keyed_events (tenant, id) WHERE id IS NOT NULL;
     CREATE INDEX wf_keyed_events_waiting ON wf_keyed_events (tenant, name, key, num) WHERE waiting = 1;
     CREATE INDEX wf_keyed_events_until ON wf_keyed_events (until_ms);",
);

/// Forgets events whose time is over, whether an execution took them or not.
pub const EVENTS_SWEEP: &str = "DELETE FROM wf_keyed_events WHERE num IN
    (SELECT num FROM wf_keyed_events WHERE until_ms <= ?1 LIMIT ?2)";
pub const EVENTS_OLD: &str =
    "SELECT COUNT(*) FROM (SELECT 1 FROM wf_keyed_events WHERE until_ms <= ?1 LIMIT ?2)";

/// What an event is addressed to.
#[derive(Debug, Clone, Copy)]
pub struct EventAddress<'a> {
    pub tenant: &'a str,
    pub name: &'a str,
    pub key: &'a str,
}

impl EventAddress<'_> {
    fn cells(&self) -> Vec<orchestr8_kernel::ports::store::Cell> {
        vec![self.tenant.into(), self.name.into(), self.key.into()]
    }
}

pub fn wait_insert(address: EventAddress<'_>, execution: i64) -> Statement {
    let mut cells = address.cells();
    cells.push(execution.into());
    Statement::new(
        "INSERT INTO wf_event_waits (tenant, name, key, execution) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
        cells,
    )
}

pub fn wait_delete(address: EventAddress<'_>, execution: i64) -> Statement {
    let mut cells = address.cells();
    cells.push(execution.into());
    Statement::new(
        "DELETE FROM wf_event_waits WHERE tenant = ?1 AND name = ?2 AND key = ?3 AND execution = ?4",
        cells,
    )
}

/// An execution that has ended waits for nothing.
pub fn waits_clear(execution: i64) -> Statement {
    Statement::new("DELETE FROM wf_event_waits WHERE execution = ?1", vec![execution.into()])
}

/// Column: the executions that wait, the oldest first.
pub fn waits(address: EventAddress<'_>, limit: i64) -> Statement {
    let mut cells = address.cells();
    cells.push(limit.into());
    Statement::new(
        "SELECT execution FROM wf_event_waits WHERE tenant = ?1 AND name = ?2 AND key = ?3 ORDER BY execution LIMIT ?4",
        cells,
    )
}

/// Columns: hash, executions, waiting, until_ms; of the event with this id.
pub fn find(tenant: &str, id: &str, now_ms: i64) -> Statement {
    Statement::new(
        "SELECT hash, executions, waiting, until_ms FROM wf_keyed_events WHERE tenant = ?1 AND id = ?2 AND until_ms > ?3",
        vec![tenant.into(), id.into(), now_ms.into()],
    )
}

/// Forgets an event with this id whose time is over.
pub fn expire(tenant: &str, id: &str, now_ms: i64) -> Statement {
    Statement::new(
        "DELETE FROM wf_keyed_events WHERE tenant = ?1 AND id = ?2 AND until_ms <= ?3",
        vec![tenant.into(), id.into(), now_ms.into()],
    )
}

/// An event as it is stored.
pub struct NewEvent<'e> {
    pub address: EventAddress<'e>,
    pub id: Option<&'e str>,
    pub payload: String,
    pub hash: String,
    pub waiting: bool,
    pub executions: String,
    pub until_ms: i64,
}

pub fn insert(event: NewEvent<'_>) -> Statement {
    let mut cells = event.address.cells();
    cells.extend([
        event.id.into(),
        event.payload.into(),
        event.hash.into(),
        i64::from(event.waiting).into(),
        event.executions.into(),
        event.until_ms.into(),
    ]);
    Statement::new(
        "INSERT INTO wf_keyed_events (tenant, name, key, id, payload, hash, waiting, executions, until_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        cells,
    )
}

/// Column: how many events of a tenant wait for an execution.
pub fn count_waiting(tenant: &str, now_ms: i64) -> Statement {
    Statement::new(
        "SELECT COUNT(*) FROM wf_keyed_events WHERE tenant = ?1 AND waiting = 1 AND until_ms > ?2",
        vec![tenant.into(), now_ms.into()],
    )
}

/// Columns: num, payload, id; of the oldest event that waits for an execution.
pub fn next_waiting(address: EventAddress<'_>, now_ms: i64) -> Statement {
    let mut cells = address.cells();
    cells.push(now_ms.into());
    Statement::new(
        "SELECT num, payload, id FROM wf_keyed_events
         WHERE tenant = ?1 AND name = ?2 AND key = ?3 AND waiting = 1 AND until_ms > ?4 ORDER BY num LIMIT 1",
        cells,
    )
}

/// An execution took the event. Changes one row, or another took it.
pub fn taken(num: i64, executions: String) -> Statement {
    Statement::new(
        "UPDATE wf_keyed_events SET waiting = 0, payload = 'null', executions = ?2 WHERE num = ?1 AND waiting = 1",
        vec![num.into(), executions.into()],
    )
}

/// Columns: tenant, name, key; of events for which an execution waits. After a crash both may be there.
pub fn unmatched(now_ms: i64, limit: i64) -> Statement {
    Statement::new(
        "SELECT DISTINCT e.tenant, e.name, e.key FROM wf_keyed_events e JOIN wf_event_waits w
            ON w.tenant = e.tenant AND w.name = e.name AND w.key = e.key
         WHERE e.waiting = 1 AND e.until_ms > ?1 LIMIT ?2",
        vec![now_ms.into(), limit.into()],
    )
}
