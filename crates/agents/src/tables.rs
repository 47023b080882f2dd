//! The tables of messages, requests and agents, and every statement over them. The only SQL of this crate.

use orchestr8_kernel::ports::store::{Cell, Statement};

use crate::aacp::record::{Address, Pair, Row};

/// Applied in order, once, by the store.
pub const MIGRATIONS: &[(&str, &str)] = &[
    (
        "agents-1",
        "CREATE TABLE aacp_message (
        n INTEGER PRIMARY KEY, tenant TEXT NOT NULL, id TEXT NOT NULL, sent_as TEXT, source TEXT NOT NULL,
        target TEXT NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL, request TEXT, body TEXT NOT NULL,
        position INTEGER, held INTEGER NOT NULL, reposted INTEGER NOT NULL, status TEXT NOT NULL, error TEXT,
        created_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL) STRICT;
     CREATE UNIQUE INDEX aacp_message_id ON aacp_message (tenant, id);
     CREATE INDEX aacp_message_sent ON aacp_message (tenant, sent_as) WHERE sent_as IS NOT NULL;
     CREATE INDEX aacp_message_pair ON aacp_message (tenant, source, target, seq);
     CREATE INDEX aacp_message_inbox ON aacp_message (tenant, target, position) WHERE position IS NOT NULL;
     CREATE INDEX aacp_message_expiry ON aacp_message (expires_ms);
     CREATE TABLE aacp_request (
        tenant TEXT NOT NULL, id TEXT NOT NULL, source TEXT NOT NULL, target TEXT NOT NULL, message TEXT NOT NULL,
        seq INTEGER NOT NULL, status TEXT NOT NULL, attempts INTEGER NOT NULL, timeout_ms INTEGER NOT NULL,
        due_ms INTEGER, asked_ms INTEGER NOT NULL, ended_ms INTEGER, expires_ms INTEGER NOT NULL,
        late INTEGER NOT NULL, answer TEXT, PRIMARY KEY (tenant, id)) STRICT, WITHOUT ROWID;
     CREATE INDEX aacp_request_due ON aacp_request (due_ms) WHERE due_ms IS NOT NULL;
     CREATE INDEX aacp_request_expiry ON aacp_request (expires_ms);
     CREATE TABLE aacp_pair (
        tenant TEXT NOT NULL, source TEXT NOT NULL, target TEXT NOT NULL, received INTEGER NOT NULL,
        acked INTEGER NOT NULL, PRIMARY KEY (tenant, source, target)) STRICT, WITHOUT ROWID;
     CREATE TABLE aacp_inbox (
        tenant TEXT NOT NULL, agent TEXT NOT NULL, last INTEGER NOT NULL, floor INTEGER NOT NULL,
        PRIMARY KEY (tenant, agent)) STRICT, WITHOUT ROWID;
     CREATE TABLE aacp_agent (
        tenant TEXT NOT NULL, id TEXT NOT NULL, owner TEXT NOT NULL, about TEXT NOT NULL,
        registered_ms INTEGER NOT NULL, PRIMARY KEY (tenant, id)) STRICT, WITHOUT ROWID;",
    ),
    ("agents-2", "CREATE TABLE aacp_tail (n INTEGER PRIMARY KEY, writes TEXT NOT NULL) STRICT;"),
];

fn int(number: u64) -> Cell {
    i64::try_from(number).unwrap_or(i64::MAX).into()
}

/// What was decided together and is not filed yet.
pub fn tail_append(n: i64, writes: String) -> Statement {
    Statement::new("INSERT INTO aacp_tail (n, writes) VALUES (?1, ?2)", vec![n.into(), writes.into()])
}

/// Columns: n, writes.
pub fn tail_after(n: i64, limit: i64) -> Statement {
    Statement::new(
        "SELECT n, writes FROM aacp_tail WHERE n > ?1 ORDER BY n LIMIT ?2",
        vec![n.into(), limit.into()],
    )
}

pub fn tail_clear(up_to: i64) -> Statement {
    Statement::new("DELETE FROM aacp_tail WHERE n <= ?1", vec![up_to.into()])
}

/// Changes a row only if the id was used before, and then nothing in it.
pub fn message_used(tenant: &str, id: &str) -> Statement {
    Statement::new(
        "UPDATE aacp_message SET held = held WHERE tenant = ?1 AND id = ?2",
        vec![tenant.into(), id.into()],
    )
}

/// The same of a request.
pub fn request_used(tenant: &str, id: &str) -> Statement {
    Statement::new(
        "UPDATE aacp_request SET late = late WHERE tenant = ?1 AND id = ?2",
        vec![tenant.into(), id.into()],
    )
}

/// Changes one row, or the id was used before.
pub fn message_insert(row: &Row) -> Statement {
    Statement::new(
        "INSERT INTO aacp_message (tenant, id, source, target, seq, kind, request, body, position, held, reposted, status,
            created_ms, expires_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0, 'PENDING', ?11, ?12) ON CONFLICT (tenant, id) DO NOTHING",
        vec![
            row.tenant.as_str().into(),
            row.message.as_str().into(),
            row.source.as_str().into(),
            row.target.as_str().into(),
            int(row.seq),
            row.kind.as_str().into(),
            row.request.as_ref().map(|id| id.as_str()).into(),
            row.text.as_str().into(),
            row.position.map(int).unwrap_or(Cell::Null),
            row.held.as_int().into(),
            row.created_ms.into(),
            row.expires_ms.into(),
        ],
    )
}

pub fn message_release(tenant: &str, id: &str, position: Option<u64>) -> Statement {
    Statement::new(
        "UPDATE aacp_message SET held = 0, position = ?3 WHERE tenant = ?1 AND id = ?2",
        vec![tenant.into(), id.into(), position.map(int).unwrap_or(Cell::Null)],
    )
}

pub fn message_repost(tenant: &str, id: &str, position: u64, sent_as: &str) -> Statement {
    Statement::new(
        "UPDATE aacp_message SET position = ?3, reposted = reposted + 1, sent_as = ?4, status = 'PENDING'
         WHERE tenant = ?1 AND id = ?2",
        vec![tenant.into(), id.into(), int(position), sent_as.into()],
    )
}

pub fn message_end(tenant: &str, id: &str, status: &str, error: Option<String>) -> Statement {
    Statement::new(
        "UPDATE aacp_message SET status = ?3, error = ?4 WHERE tenant = ?1 AND id = ?2",
        vec![tenant.into(), id.into(), status.into(), error.into()],
    )
}

/// Columns: id, source, target, seq, kind, request, body, status, error, created_ms, expires_ms, held, acked of its pair, reposted.
pub fn message_find(tenant: &str, id: &str) -> Statement {
    Statement::new(
        "SELECT m.id, m.source, m.target, m.seq, m.kind, m.request, m.body, m.status, m.error, m.created_ms, m.expires_ms,
            m.held, COALESCE(p.acked, 0), m.reposted
         FROM aacp_message m LEFT JOIN aacp_pair p ON p.tenant = m.tenant AND p.source = m.source AND p.target = m.target
         WHERE m.tenant = ?1 AND (m.id = ?2 OR m.sent_as = ?2)",
        vec![tenant.into(), id.into()],
    )
}

/// Columns: id, source, target, seq, kind, request, body.
pub fn message_known(tenant: &str, id: &str) -> Statement {
    Statement::new(
        "SELECT id, source, target, seq, kind, request, body FROM aacp_message WHERE tenant = ?1 AND id = ?2",
        vec![tenant.into(), id.into()],
    )
}

/// The same, by its number.
pub fn message_at(pair: &Pair, seq: u64) -> Statement {
    Statement::new(
        "SELECT id, source, target, seq, kind, request, body FROM aacp_message
         WHERE tenant = ?1 AND source = ?2 AND target = ?3 AND seq = ?4 LIMIT 1",
        of(pair, vec![int(seq)]),
    )
}

fn of(pair: &Pair, more: Vec<Cell>) -> Vec<Cell> {
    let mut cells =
        vec![pair.tenant.as_str().into(), pair.source.as_str().into(), pair.target.as_str().into()];
    cells.extend(more);
    cells
}

/// Columns: received, acked.
pub fn pair_find(pair: &Pair) -> Statement {
    Statement::new(
        "SELECT received, acked FROM aacp_pair WHERE tenant = ?1 AND source = ?2 AND target = ?3",
        of(pair, vec![]),
    )
}

pub fn pair_put(pair: &Pair, received: u64, acked: u64) -> Statement {
    Statement::new(
        "INSERT INTO aacp_pair (tenant, source, target, received, acked) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (tenant, source, target) DO UPDATE SET received = excluded.received, acked = excluded.acked",
        of(pair, vec![int(received), int(acked)]),
    )
}

/// Pairs of agents, of one agent if it is given, those with most unacknowledged first; only what is shown is counted. Columns:
/// source, target, received, acked, waiting in the inbox, held behind a gap, when the oldest of those waiting came.
pub fn pair_list(tenant: &str, agent: Option<&str>, limit: i64) -> Statement {
    Statement::new(
        "SELECT p.source, p.target, p.received, p.acked,
            (SELECT COUNT(*) FROM aacp_message m WHERE m.tenant = p.tenant AND m.source = p.source AND m.target = p.target
                AND m.seq > p.acked AND m.position IS NOT NULL AND m.status = 'PENDING'),
            (SELECT COUNT(*) FROM aacp_message m WHERE m.tenant = p.tenant AND m.source = p.source AND m.target = p.target
                AND m.seq > p.received AND m.held <> 0),
            (SELECT MIN(m.created_ms) FROM aacp_message m WHERE m.tenant = p.tenant AND m.source = p.source
                AND m.target = p.target AND m.seq > p.acked AND m.position IS NOT NULL AND m.status = 'PENDING')
         FROM (SELECT tenant, source, target, received, acked FROM aacp_pair
            WHERE tenant = ?1 AND (?2 IS NULL OR source = ?2 OR target = ?2)
            ORDER BY received - acked DESC, source, target LIMIT ?3) p
         ORDER BY p.received - p.acked DESC, p.source, p.target",
        vec![tenant.into(), agent.into(), limit.into()],
    )
}

/// What waits behind a gap. Columns: seq, id, held.
pub fn pair_held(pair: &Pair, received: u64) -> Statement {
    Statement::new(
        "SELECT seq, id, held FROM aacp_message
         WHERE tenant = ?1 AND source = ?2 AND target = ?3 AND seq > ?4 ORDER BY seq",
        of(pair, vec![int(received)]),
    )
}

/// Columns: last, floor.
pub fn inbox_find(address: &Address) -> Statement {
    Statement::new(
        "SELECT last, floor FROM aacp_inbox WHERE tenant = ?1 AND agent = ?2",
        vec![address.tenant.as_str().into(), address.agent.as_str().into()],
    )
}

pub fn inbox_put(address: &Address, last: u64, floor: u64) -> Statement {
    Statement::new(
        "INSERT INTO aacp_inbox (tenant, agent, last, floor) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (tenant, agent) DO UPDATE SET last = excluded.last, floor = excluded.floor",
        vec![address.tenant.as_str().into(), address.agent.as_str().into(), int(last), int(floor)],
    )
}

/// Inboxes in which something was not acknowledged. Columns: tenant, agent.
pub fn inboxes_open() -> Statement {
    Statement::new("SELECT tenant, agent FROM aacp_inbox WHERE floor < last", vec![])
}

/// What an agent has not acknowledged. Columns: position, source, seq, id, reposted, body, sent_as, kind, request.
pub fn inbox_waiting(address: &Address, after: u64, limit: i64) -> Statement {
    Statement::new(
        "SELECT m.position, m.source, m.seq, m.id, m.reposted, m.body, m.sent_as, m.kind, m.request
         FROM aacp_message m LEFT JOIN aacp_pair p ON p.tenant = m.tenant AND p.source = m.source AND p.target = m.target
         WHERE m.tenant = ?1 AND m.target = ?2 AND m.position > ?3 AND m.status = 'PENDING'
            AND (m.reposted > 0 OR m.seq > COALESCE(p.acked, 0))
         ORDER BY m.position LIMIT ?4",
        vec![address.tenant.as_str().into(), address.agent.as_str().into(), int(after), limit.into()],
    )
}

/// Everything in an inbox, acknowledged or not. The same columns.
pub fn inbox_after(address: &Address, after: u64, limit: i64) -> Statement {
    Statement::new(
        "SELECT position, source, seq, id, reposted, body, sent_as, kind, request FROM aacp_message
         WHERE tenant = ?1 AND target = ?2 AND position > ?3 ORDER BY position LIMIT ?4",
        vec![address.tenant.as_str().into(), address.agent.as_str().into(), int(after), limit.into()],
    )
}

const REQUEST: &str =
    "SELECT id, source, target, message, seq, status, attempts, timeout_ms, due_ms, asked_ms, ended_ms,
        expires_ms, late, answer, tenant FROM aacp_request";

fn requests(condition: &str, cells: Vec<Cell>) -> Statement {
    Statement { sql: format!("{REQUEST} {condition}").into(), cells }
}

/// Columns: id, source, target, message, seq, status, attempts, timeout_ms, due_ms, asked_ms, ended_ms, expires_ms, late, answer,
/// tenant.
pub fn request_find(tenant: &str, id: &str) -> Statement {
    requests("WHERE tenant = ?1 AND id = ?2", vec![tenant.into(), id.into()])
}

/// The newest first, with one status and of one agent if they are given. The same columns.
pub fn request_list(tenant: &str, status: Option<&str>, agent: Option<&str>, limit: i64) -> Statement {
    requests(
        "WHERE tenant = ?1 AND (?2 IS NULL OR status = ?2) AND (?3 IS NULL OR source = ?3 OR target = ?3)
         ORDER BY asked_ms DESC, id LIMIT ?4",
        vec![tenant.into(), status.into(), agent.into(), limit.into()],
    )
}

/// Those whose moment has come. The same columns.
pub fn request_due(now_ms: i64, limit: i64) -> Statement {
    requests(
        "WHERE due_ms IS NOT NULL AND due_ms <= ?1 ORDER BY due_ms LIMIT ?2",
        vec![now_ms.into(), limit.into()],
    )
}

/// Columns: due_ms.
pub fn request_next_due() -> Statement {
    Statement::new("SELECT MIN(due_ms) FROM aacp_request WHERE due_ms IS NOT NULL", vec![])
}

/// Changes one row, or the id was used before.
pub fn request_insert(cells: Vec<Cell>) -> Statement {
    Statement::new(
        "INSERT INTO aacp_request (tenant, id, status, attempts, due_ms, ended_ms, late, answer, source, target, message, seq,
            timeout_ms, asked_ms, expires_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15) ON CONFLICT (tenant, id) DO NOTHING",
        cells,
    )
}

pub fn request_update(cells: Vec<Cell>) -> Statement {
    Statement::new(
        "UPDATE aacp_request SET status = ?3, attempts = ?4, due_ms = ?5, ended_ms = ?6, late = ?7, answer = ?8
         WHERE tenant = ?1 AND id = ?2",
        cells,
    )
}

/// Columns: n, tenant, target, position, id.
pub fn messages_expired(now_ms: i64, limit: i64) -> Statement {
    Statement::new(
        "SELECT n, tenant, target, position, id FROM aacp_message WHERE expires_ms <= ?1 ORDER BY expires_ms LIMIT ?2",
        vec![now_ms.into(), limit.into()],
    )
}

pub fn message_delete(n: i64) -> Statement {
    Statement::new("DELETE FROM aacp_message WHERE n = ?1", vec![n.into()])
}

/// Columns: tenant, id.
pub fn requests_expired(now_ms: i64, limit: i64) -> Statement {
    Statement::new(
        "SELECT tenant, id FROM aacp_request WHERE expires_ms <= ?1 ORDER BY expires_ms LIMIT ?2",
        vec![now_ms.into(), limit.into()],
    )
}

pub fn request_delete(tenant: &str, id: &str) -> Statement {
    Statement::new("DELETE FROM aacp_request WHERE tenant = ?1 AND id = ?2", vec![tenant.into(), id.into()])
}

/// Columns: tenant, id, owner, about, registered_ms.
pub fn agents_all(limit: i64) -> Statement {
    Statement::new(
        "SELECT tenant, id, owner, about, registered_ms FROM aacp_agent ORDER BY tenant, id LIMIT ?1",
        vec![limit.into()],
    )
}

/// Changes one row, or the agent belongs to another principal than `was`.
pub fn agent_put(address: &Address, was: &str, owner: &str, about: String, registered_ms: i64) -> Statement {
    Statement::new(
        "INSERT INTO aacp_agent (tenant, id, owner, about, registered_ms) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (tenant, id) DO UPDATE SET about = excluded.about, owner = excluded.owner WHERE owner = ?6",
        vec![
            address.tenant.as_str().into(),
            address.agent.as_str().into(),
            owner.into(),
            about.into(),
            registered_ms.into(),
            was.into(),
        ],
    )
}

pub fn agent_delete(address: &Address) -> Statement {
    Statement::new(
        "DELETE FROM aacp_agent WHERE tenant = ?1 AND id = ?2",
        vec![address.tenant.as_str().into(), address.agent.as_str().into()],
    )
}
