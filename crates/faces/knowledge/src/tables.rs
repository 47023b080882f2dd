//! The tables of this face and every statement over them. The only SQL of this crate.

use orchestr8_kernel::ports::store::{Cell, Statement};

/// Applied in order, once, by the store.
pub const MIGRATIONS: &[(&str, &str)] = &[(
    "knowledge-face-1",
    "CREATE TABLE a2a_sequence (
        tenant TEXT NOT NULL, principal TEXT NOT NULL, subject TEXT NOT NULL, seq INTEGER NOT NULL, at_ms INTEGER NOT NULL,
        PRIMARY KEY (tenant, principal, subject)) STRICT, WITHOUT ROWID;
     CREATE INDEX a2a_sequence_time ON a2a_sequence (at_ms);
     CREATE TABLE a2a_request (
        tenant TEXT NOT NULL, id TEXT NOT NULL, principal TEXT NOT NULL, action TEXT NOT NULL, state TEXT NOT NULL,
        acked_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL, answer TEXT,
        PRIMARY KEY (tenant, id)) STRICT, WITHOUT ROWID;
     CREATE INDEX a2a_request_time ON a2a_request (updated_ms);
     CREATE TABLE a2a_peer (
        tenant TEXT NOT NULL, name TEXT NOT NULL, status TEXT NOT NULL, revision TEXT NOT NULL, last_seen_ms INTEGER NOT NULL,
        PRIMARY KEY (tenant, name)) STRICT, WITHOUT ROWID;
     CREATE TABLE a2a_key (
        kid TEXT PRIMARY KEY, tenant TEXT NOT NULL, principal TEXT NOT NULL, roles TEXT NOT NULL, public BLOB NOT NULL,
        created_ms INTEGER NOT NULL, revoked_ms INTEGER) STRICT, WITHOUT ROWID;
     CREATE TABLE a2a_nonce (
        kid TEXT NOT NULL, nonce TEXT NOT NULL, expires_ms INTEGER NOT NULL,
        PRIMARY KEY (kid, nonce)) STRICT, WITHOUT ROWID;
     CREATE INDEX a2a_nonce_time ON a2a_nonce (expires_ms);
     CREATE TABLE a2a_artifact (
        tenant TEXT NOT NULL, hash TEXT NOT NULL, mime_type TEXT NOT NULL, body BLOB NOT NULL, expires_ms INTEGER NOT NULL,
        PRIMARY KEY (tenant, hash)) STRICT, WITHOUT ROWID;
     CREATE INDEX a2a_artifact_time ON a2a_artifact (expires_ms);
     CREATE TABLE a2a_secret (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
     CREATE TABLE a2a_notice (
        name TEXT NOT NULL, period TEXT NOT NULL, at_ms INTEGER NOT NULL,
        PRIMARY KEY (name, period)) STRICT, WITHOUT ROWID;",
), (
    "knowledge-face-2",
    "ALTER TABLE a2a_request ADD COLUMN queued INTEGER NOT NULL DEFAULT 0;
     CREATE TABLE a2a_hour (
        hour INTEGER NOT NULL, action TEXT NOT NULL, figure TEXT NOT NULL, count INTEGER NOT NULL,
        PRIMARY KEY (hour, action, figure)) STRICT, WITHOUT ROWID;",
), (
    "knowledge-face-seals",
    "ALTER TABLE a2a_key ADD COLUMN seal TEXT;",
)];

/// Column: seq.
pub fn sequence_find(tenant: &str, principal: &str, subject: &str) -> Statement {
    Statement::new(
        "SELECT seq FROM a2a_sequence WHERE tenant = ?1 AND principal = ?2 AND subject = ?3",
        vec![tenant.into(), principal.into(), subject.into()],
    )
}

/// Never goes back, in whichever order two of them come.
pub fn sequence_advance(tenant: &str, principal: &str, subject: &str, seq: i64, now_ms: i64) -> Statement {
    Statement::new(
        "INSERT INTO a2a_sequence (tenant, principal, subject, seq, at_ms) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (tenant, principal, subject) DO UPDATE SET seq = excluded.seq, at_ms = excluded.at_ms
         WHERE a2a_sequence.seq < excluded.seq",
        vec![tenant.into(), principal.into(), subject.into(), seq.into(), now_ms.into()],
    )
}

/// A call that is acknowledged and goes on.
pub struct Acked<'a> {
    pub tenant: &'a str,
    pub id: &'a str,
    pub principal: &'a str,
    pub action: &'a str,
    /// Whether it waits in a queue; else it runs in this process.
    pub queued: bool,
    pub now_ms: i64,
}

pub fn request_ack(row: &Acked<'_>) -> Statement {
    Statement::new(
        "INSERT INTO a2a_request (tenant, id, principal, action, state, acked_ms, updated_ms, queued)
         VALUES (?1, ?2, ?3, ?4, 'ACKED', ?5, ?5, ?6)
         ON CONFLICT (tenant, id) DO UPDATE SET
            state = 'ACKED', updated_ms = excluded.updated_ms, answer = NULL, queued = excluded.queued",
        vec![
            row.tenant.into(),
            row.id.into(),
            row.principal.into(),
            row.action.into(),
            row.now_ms.into(),
            i64::from(row.queued).into(),
        ],
    )
}

pub fn request_state(
    tenant: &str,
    id: &str,
    state: &'static str,
    answer: Option<String>,
    now_ms: i64,
) -> Statement {
    Statement::new(
        "UPDATE a2a_request SET state = ?3, answer = COALESCE(?4, answer), updated_ms = ?5 WHERE tenant = ?1 AND id = ?2",
        vec![tenant.into(), id.into(), state.into(), answer.into(), now_ms.into()],
    )
}

/// Changes one row, or the request is not any more as it was seen: its state, and since when.
pub fn request_change(
    (tenant, id): (&str, &str),
    seen: (&'static str, Option<i64>),
    (state, answer): (&'static str, Option<String>),
    now_ms: i64,
) -> Statement {
    Statement::new(
        "UPDATE a2a_request SET state = ?3, answer = COALESCE(?4, answer), updated_ms = ?5
         WHERE tenant = ?1 AND id = ?2 AND state = ?6 AND updated_ms = ?7",
        vec![
            tenant.into(),
            id.into(),
            state.into(),
            answer.into(),
            now_ms.into(),
            seen.0.into(),
            seen.1.into(),
        ],
    )
}

/// Columns: principal, action, state, acked_ms, updated_ms, answer, queued.
pub fn request_find(tenant: &str, id: &str) -> Statement {
    Statement::new(
        "SELECT principal, action, state, acked_ms, updated_ms, answer, queued FROM a2a_request WHERE tenant = ?1 AND id = ?2",
        vec![tenant.into(), id.into()],
    )
}

pub fn peer_seen(tenant: &str, name: &str, status: &str, revision: &str, now_ms: i64) -> Statement {
    Statement::new(
        "INSERT INTO a2a_peer (tenant, name, status, revision, last_seen_ms) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (tenant, name) DO UPDATE SET
            status = excluded.status, revision = excluded.revision, last_seen_ms = excluded.last_seen_ms",
        vec![tenant.into(), name.into(), status.into(), revision.into(), now_ms.into()],
    )
}

/// Columns: name, status, revision, last_seen_ms.
pub fn peers(tenant: &str, limit: i64) -> Statement {
    Statement::new(
        "SELECT name, status, revision, last_seen_ms FROM a2a_peer WHERE tenant = ?1 ORDER BY name LIMIT ?2",
        vec![tenant.into(), limit.into()],
    )
}

/// What a process that can write the data file might do to a key.
#[cfg(test)]
pub const KEY_CHANGES: [&str; 7] = [
    "UPDATE a2a_key SET roles = 'owner'",
    "UPDATE a2a_key SET tenant = 'rival'",
    "UPDATE a2a_key SET principal = 'svc:b'",
    "UPDATE a2a_key SET revoked_ms = NULL",
    "UPDATE a2a_key SET created_ms = 2000",
    "UPDATE a2a_key SET public = randomblob(32)",
    "UPDATE a2a_key SET seal = NULL",
];

/// Changes one row, or there is such a key already.
pub fn key_insert(
    kid: &str,
    (tenant, principal, roles): (&str, &str, &str),
    public: Vec<u8>,
    now_ms: i64,
    seal: Option<String>,
) -> Statement {
    Statement::new(
        "INSERT INTO a2a_key (kid, tenant, principal, roles, public, created_ms, seal)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING",
        vec![
            kid.into(),
            tenant.into(),
            principal.into(),
            roles.into(),
            public.into(),
            now_ms.into(),
            seal.into(),
        ],
    )
}

/// Changes one row, or there is no such key, or it ends earlier anyway.
pub fn key_revoke(kid: &str, revoked_ms: i64, seal: Option<String>) -> Statement {
    Statement::new(
        "UPDATE a2a_key SET revoked_ms = ?2, seal = ?3 WHERE kid = ?1 AND (revoked_ms IS NULL OR revoked_ms >= ?2)",
        vec![kid.into(), revoked_ms.into(), seal.into()],
    )
}

/// A key says whose it is, so it is found before a tenant is known.
/// Columns: kid, tenant, principal, roles, public, created_ms, revoked_ms, seal.
pub fn key_find(kid: &str) -> Statement {
    Statement::new(
        "SELECT kid, tenant, principal, roles, public, created_ms, revoked_ms, seal FROM a2a_key WHERE kid = ?1",
        vec![kid.into()],
    )
}

/// The same columns, after a kid, for the person who runs this server.
pub fn keys(tenant: Option<&str>, after: &str, limit: i64) -> Statement {
    Statement::new(
        "SELECT kid, tenant, principal, roles, public, created_ms, revoked_ms, seal FROM a2a_key
         WHERE kid > ?1 AND (?2 IS NULL OR tenant = ?2) ORDER BY kid LIMIT ?3",
        vec![after.into(), tenant.into(), limit.into()],
    )
}

/// Changes one row, or the nonce was used before.
pub fn nonce_use(kid: &str, nonce: &str, expires_ms: i64) -> Statement {
    Statement::new(
        "INSERT INTO a2a_nonce (kid, nonce, expires_ms) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        vec![kid.into(), nonce.into(), expires_ms.into()],
    )
}

pub fn artifact_put(tenant: &str, hash: &str, mime_type: &str, body: Vec<u8>, expires_ms: i64) -> Statement {
    Statement::new(
        "INSERT INTO a2a_artifact (tenant, hash, mime_type, body, expires_ms) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (tenant, hash) DO UPDATE SET mime_type = excluded.mime_type, expires_ms = excluded.expires_ms",
        vec![tenant.into(), hash.into(), mime_type.into(), body.into(), expires_ms.into()],
    )
}

/// Columns: mime_type, body.
pub fn artifact_find(tenant: &str, hash: &str, now_ms: i64) -> Statement {
    Statement::new(
        "SELECT mime_type, body FROM a2a_artifact WHERE tenant = ?1 AND hash = ?2 AND expires_ms > ?3",
        vec![tenant.into(), hash.into(), now_ms.into()],
    )
}

/// What an older version kept in clear.
pub fn secret_delete(name: &str) -> Statement {
    Statement::new("DELETE FROM a2a_secret WHERE name = ?1", vec![name.into()])
}

/// Changes one row, or this notice was given in this period.
pub fn notice_give(name: &str, period: &str, now_ms: i64) -> Statement {
    Statement::new(
        "INSERT INTO a2a_notice (name, period, at_ms) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        vec![name.into(), period.into(), now_ms.into()],
    )
}

/// The notices of a period: name, when.
pub fn notices(period: &str) -> Statement {
    Statement::new("SELECT name, at_ms FROM a2a_notice WHERE period = ?1 ORDER BY name", vec![period.into()])
}

/// Adds to a figure of an hour, counted from 1970.
pub fn hour_add(hour: i64, action: &str, figure: &str, count: i64) -> Statement {
    Statement::new(
        "INSERT INTO a2a_hour (hour, action, figure, count) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (hour, action, figure) DO UPDATE SET count = a2a_hour.count + excluded.count",
        vec![hour.into(), action.into(), figure.into(), count.into()],
    )
}

/// Columns: action, figure, sum, since an hour.
pub fn hours(since: i64) -> Statement {
    Statement::new(
        "SELECT action, figure, SUM(count) FROM a2a_hour WHERE hour >= ?1 GROUP BY action, figure",
        vec![since.into()],
    )
}

pub fn hours_forget(before: i64) -> Statement {
    Statement::new("DELETE FROM a2a_hour WHERE hour < ?1", vec![before.into()])
}

/// What may go when it is old enough. Both statements take a time and a number of rows, and mean the same rows.
pub struct Sweep {
    pub age: Age,
    count: &'static str,
    delete: &'static str,
}

/// When a row of a table is too old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// It says when.
    Expired,
    Request,
    Sequence,
}

pub const SWEEPS: [Sweep; 4] = [
    Sweep {
        age: Age::Expired,
        count: "SELECT COUNT(*) FROM (SELECT 1 FROM a2a_nonce WHERE expires_ms <= ?1 LIMIT ?2)",
        delete: "DELETE FROM a2a_nonce WHERE (kid, nonce) IN
            (SELECT kid, nonce FROM a2a_nonce WHERE expires_ms <= ?1 ORDER BY expires_ms LIMIT ?2)",
    },
    Sweep {
        age: Age::Expired,
        count: "SELECT COUNT(*) FROM (SELECT 1 FROM a2a_artifact WHERE expires_ms <= ?1 LIMIT ?2)",
        delete: "DELETE FROM a2a_artifact WHERE (tenant, hash) IN
            (SELECT tenant, hash FROM a2a_artifact WHERE expires_ms <= ?1 ORDER BY expires_ms LIMIT ?2)",
    },
    Sweep {
        age: Age::Request,
        count: "SELECT COUNT(*) FROM (SELECT 1 FROM a2a_request WHERE updated_ms <= ?1 LIMIT ?2)",
        delete: "DELETE FROM a2a_request WHERE (tenant, id) IN
            (SELECT tenant, id FROM a2a_request WHERE updated_ms <= ?1 ORDER BY updated_ms LIMIT ?2)",
    },
    Sweep {
        age: Age::Sequence,
        count: "SELECT COUNT(*) FROM (SELECT 1 FROM a2a_sequence WHERE at_ms <= ?1 LIMIT ?2)",
        delete: "DELETE FROM a2a_sequence WHERE (tenant, principal, subject) IN
            (SELECT tenant, principal, subject FROM a2a_sequence WHERE at_ms <= ?1 ORDER BY at_ms LIMIT ?2)",
    },
];

impl Sweep {
    /// Column: how many rows are due, up to this many.
    pub fn due(&self, until_ms: i64, rows: i64) -> Statement {
        Statement::new(self.count, vec![Cell::Int(until_ms), Cell::Int(rows)])
    }

    pub fn delete(&self, until_ms: i64, rows: i64) -> Statement {
        Statement::new(self.delete, vec![Cell::Int(until_ms), Cell::Int(rows)])
    }
}
