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
    (
        "agents-3",
        "ALTER TABLE aacp_request ADD COLUMN handed_over INTEGER NOT NULL DEFAULT 1;",
    ),
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

/// Changes a row only if the id was used before and has not expired, and then nothing in it.
pub fn message_used(tenant: &str, id: &str, now_ms: i64) -> Statement {
    Statement::new(
        "UPDATE aacp_message SET held = held WHERE tenant = ?1 AND id = ?2 AND expires_ms > ?3",
        vec![tenant.into(), id.into(), now_ms.into()],
    )
}

/// The same of a request.
pub fn request_used(tenant: &str, id: &str, now_ms: i64) -> Statement {
    Statement::new(
        "UPDATE aacp_request SET late = late WHERE tenant = ?1 AND id = ?2 AND expires_ms > ?3",
        vec![tenant.into(), id.into(), now_ms.into()],
    )
}

/// Changes one row, or the id was used before. What has expired does not count: its row is taken over.
pub fn message_insert(row: &Row) -> Statement {
    Statement::new(
        "INSERT INTO aacp_message (tenant, id, source, target, seq, kind, request, body, position, held, reposted, status,
            created_ms, expires_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0, 'PENDING', ?11, ?12)
         ON CONFLICT (tenant, id) DO UPDATE SET source = excluded.source, target = excluded.target, seq = excluded.seq,
            kind = excluded.kind, request = excluded.request, body = excluded.body, position = excluded.position,
            held = excluded.held, reposted = 0, sent_as = NULL, status = 'PENDING', error = NULL,
            created_ms = excluded.created_ms, expires_ms = excluded.expires_ms
         WHERE aacp_message.expires_ms <= excluded.created_ms",
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

/// A message that has not expired. Columns: id, source, target, seq, kind, request, body, status, error, created_ms, expires_ms,
/// held, acked of its pair, reposted.
pub fn message_find(tenant: &str, id: &str, now_ms: i64) -> Statement {
    Statement::new(
        "SELECT m.id, m.source, m.target, m.seq, m.kind, m.request, m.body, m.status, m.error, m.created_ms, m.expires_ms,
            m.held, COALESCE(p.acked, 0), m.reposted
         FROM aacp_message m LEFT JOIN aacp_pair p ON p.tenant = m.tenant AND p.source = m.source AND p.target = m.target
         WHERE m.tenant = ?1 AND (m.id = ?2 OR m.sent_as = ?2) AND m.expires_ms > ?3",
        vec![tenant.into(), id.into(), now_ms.into()],
    )
}

/// A message that has not expired. Columns: id, source, target, seq, kind, request, body.
pub fn message_known(tenant: &str, id: &str, now_ms: i64) -> Statement {
    Statement::new(
        "SELECT id, source, target, seq, kind, request, body FROM aacp_message
         WHERE tenant = ?1 AND id = ?2 AND expires_ms > ?3",
        vec![tenant.into(), id.into(), now_ms.into()],
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
pub fn pair_list(tenant: &str, agent: Option<&str>, now_ms: i64, limit: i64) -> Statement {
    Statement::new(
        "SELECT p.source, p.target, p.received, p.acked,
            (SELECT COUNT(*) FROM aacp_message m WHERE m.tenant = p.tenant AND m.source = p.source AND m.target = p.target
                AND m.seq > p.acked AND m.position IS NOT NULL AND m.status = 'PENDING' AND m.expires_ms > ?4),
            (SELECT COUNT(*) FROM aacp_message m WHERE m.tenant = p.tenant AND m.source = p.source AND m.target = p.target
                AND m.seq > p.received AND m.held <> 0 AND m.expires_ms > ?4),
            (SELECT MIN(m.created_ms) FROM aacp_message m WHERE m.tenant = p.tenant AND m.source = p.source
                AND m.target = p.target AND m.seq > p.acked AND m.position IS NOT NULL AND m.status = 'PENDING' AND m.expires_ms > ?4)
         FROM (SELECT tenant, source, target, received, acked FROM aacp_pair
            WHERE tenant = ?1 AND (?2 IS NULL OR source = ?2 OR target = ?2)
            ORDER BY received - acked DESC, source, target LIMIT ?3) p
         ORDER BY p.received - p.acked DESC, p.source, p.target",
        vec![tenant.into(), agent.into(), limit.into(), now_ms.into()],
    )
}

/// What waits behind a gap. Columns: seq, id, held, the request it brings, expires_ms.
pub fn pair_held(pair: &Pair, received: u64) -> Statement {
    Statement::new(
        "SELECT seq, id, held, CASE kind WHEN 'REQUEST' THEN request END, expires_ms FROM aacp_message
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

/// What an agent has not acknowledged and has not expired. Columns: position, source, seq, id, reposted, body, sent_as, kind,
/// request, expires_ms, whether it is a request of which no attempt is counted for this transmission.
pub fn inbox_waiting(address: &Address, after: u64, now_ms: i64, limit: i64) -> Statement {
    Statement::new(
        "SELECT m.position, m.source, m.seq, m.id, m.reposted, m.body, m.sent_as, m.kind, m.request, m.expires_ms,
            m.kind = 'REQUEST' AND COALESCE(r.handed_over, 1) = 0
         FROM aacp_message m LEFT JOIN aacp_pair p ON p.tenant = m.tenant AND p.source = m.source AND p.target = m.target
            LEFT JOIN aacp_request r ON r.tenant = m.tenant AND r.id = m.request
         WHERE m.tenant = ?1 AND m.target = ?2 AND m.position > ?3 AND m.status = 'PENDING'
            AND (m.reposted > 0 OR m.seq > COALESCE(p.acked, 0)) AND m.expires_ms > ?4
         ORDER BY m.position LIMIT ?5",
        inbox_cells(address, after, now_ms, limit),
    )
}

/// Everything in an inbox that has not expired, acknowledged or not. The same columns.
pub fn inbox_after(address: &Address, after: u64, now_ms: i64, limit: i64) -> Statement {
    Statement::new(
        "SELECT m.position, m.source, m.seq, m.id, m.reposted, m.body, m.sent_as, m.kind, m.request, m.expires_ms,
            m.kind = 'REQUEST' AND COALESCE(r.handed_over, 1) = 0
         FROM aacp_message m LEFT JOIN aacp_request r ON r.tenant = m.tenant AND r.id = m.request
         WHERE m.tenant = ?1 AND m.target = ?2 AND m.position > ?3 AND m.expires_ms > ?4 ORDER BY m.position LIMIT ?5",
        inbox_cells(address, after, now_ms, limit),
    )
}

fn inbox_cells(address: &Address, after: u64, now_ms: i64, limit: i64) -> Vec<Cell> {
    vec![
        address.tenant.as_str().into(),
        address.agent.as_str().into(),
        int(after),
        now_ms.into(),
        limit.into(),
    ]
}

const REQUEST: &str =
    "SELECT id, source, target, message, seq, status, attempts, timeout_ms, due_ms, asked_ms, ended_ms,
        expires_ms, late, answer, tenant, handed_over FROM aacp_request";

fn requests(condition: &str, cells: Vec<Cell>) -> Statement {
    Statement { sql: format!("{REQUEST} {condition}").into(), cells }
}

/// Columns: id, source, target, message, seq, status, attempts, timeout_ms, due_ms, asked_ms, ended_ms, expires_ms, late, answer,
/// tenant, handed_over.
pub fn request_find(tenant: &str, id: &str) -> Statement {
    requests("WHERE tenant = ?1 AND id = ?2", vec![tenant.into(), id.into()])
}

/// Those that have not expired, the newest first, with one status and of one agent if they are given. The same columns.
pub fn request_list(
    tenant: &str,
    status: Option<&str>,
    agent: Option<&str>,
    now_ms: i64,
    limit: i64,
) -> Statement {
    requests(
        "WHERE tenant = ?1 AND (?2 IS NULL OR status = ?2) AND (?3 IS NULL OR source = ?3 OR target = ?3)
            AND expires_ms > ?4 ORDER BY asked_ms DESC, id LIMIT ?5",
        vec![tenant.into(), status.into(), agent.into(), now_ms.into(), limit.into()],
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

/// Changes one row, or the id was used before. What has expired does not count: its row is taken over.
pub fn request_insert(cells: Vec<Cell>) -> Statement {
    Statement::new(
        "INSERT INTO aacp_request (tenant, id, status, attempts, due_ms, ended_ms, late, answer, handed_over, source, target,
            message, seq, timeout_ms, asked_ms, expires_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
         ON CONFLICT (tenant, id) DO UPDATE SET status = excluded.status, attempts = excluded.attempts, due_ms = excluded.due_ms,
            ended_ms = excluded.ended_ms, late = excluded.late, answer = excluded.answer, handed_over = excluded.handed_over,
            source = excluded.source, target = excluded.target, message = excluded.message, seq = excluded.seq,
            timeout_ms = excluded.timeout_ms, asked_ms = excluded.asked_ms, expires_ms = excluded.expires_ms
         WHERE aacp_request.expires_ms <= excluded.asked_ms",
        cells,
    )
}

pub fn request_update(cells: Vec<Cell>) -> Statement {
    Statement::new(
        "UPDATE aacp_request SET status = ?3, attempts = ?4, due_ms = ?5, ended_ms = ?6, late = ?7, answer = ?8,
            handed_over = ?9
         WHERE tenant = ?1 AND id = ?2",
        cells,
    )
}

/// Messages that have expired, of one tenant if it is given. Columns: n, tenant, target, position, id.
pub fn messages_expired(tenant: Option<&str>, now_ms: i64, limit: i64) -> Statement {
    Statement::new(
        "SELECT n, tenant, target, position, id FROM aacp_message WHERE expires_ms <= ?1 AND (?3 IS NULL OR tenant = ?3)
         ORDER BY expires_ms LIMIT ?2",
        vec![now_ms.into(), limit.into(), tenant.into()],
    )
}

/// Deletes the message, unless its row was taken over by another.
pub fn message_delete(n: i64, now_ms: i64) -> Statement {
    Statement::new(
        "DELETE FROM aacp_message WHERE n = ?1 AND expires_ms <= ?2",
        vec![n.into(), now_ms.into()],
    )
}

/// Requests that have expired, of one tenant if it is given. Columns: tenant, id.
pub fn requests_expired(tenant: Option<&str>, now_ms: i64, limit: i64) -> Statement {
    Statement::new(
        "SELECT tenant, id FROM aacp_request WHERE expires_ms <= ?1 AND (?3 IS NULL OR tenant = ?3)
         ORDER BY expires_ms LIMIT ?2",
        vec![now_ms.into(), limit.into(), tenant.into()],
    )
}

/// Deletes the request, unless its row was taken over by another.
pub fn request_delete(tenant: &str, id: &str, now_ms: i64) -> Statement {
    Statement::new(
        "DELETE FROM aacp_request WHERE tenant = ?1 AND id = ?2 AND expires_ms <= ?3",
        vec![tenant.into(), id.into(), now_ms.into()],
    )
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
