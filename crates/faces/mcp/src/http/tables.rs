//! The table of HTTP sessions and every statement over it.

use orchestr8_kernel::ports::store::Statement;

/// Applied in order, once, by the store.
pub const MIGRATIONS: &[(&str, &str)] = &[(
    "mcp-sessions-1",
    "CREATE TABLE mcp_sessions (
        tenant TEXT NOT NULL, id_hash TEXT NOT NULL, principal TEXT NOT NULL,
        number INTEGER NOT NULL, saved TEXT NOT NULL, used_ms INTEGER NOT NULL,
        PRIMARY KEY (tenant, id_hash)) STRICT, WITHOUT ROWID;
     CREATE INDEX mcp_sessions_used ON mcp_sessions (used_ms);",
)];

/// Which session: its id is a secret of its client, so only a hash of it is kept.
#[derive(Clone, Copy)]
pub struct SessionKey<'a> {
    pub tenant: &'a str,
    pub id_hash: &'a str,
}

pub fn session_insert(key: SessionKey<'_>, principal: &str, saved: String, now_ms: i64) -> Statement {
    Statement::new(
        "INSERT INTO mcp_sessions (tenant, id_hash, principal, number, saved, used_ms) VALUES (?1, ?2, ?3, 0, ?4, ?5)",
        vec![key.tenant.into(), key.id_hash.into(), principal.into(), saved.into(), now_ms.into()],
    )
}

/// Writes a newer state; an older one that comes late changes nothing, nor does one of a session that has ended.
pub fn session_update(key: SessionKey<'_>, number: i64, saved: String, now_ms: i64) -> Statement {
    Statement::new(
        "UPDATE mcp_sessions SET number = ?3, saved = ?4, used_ms = ?5
         WHERE tenant = ?1 AND id_hash = ?2 AND number < ?3",
        vec![key.tenant.into(), key.id_hash.into(), number.into(), saved.into(), now_ms.into()],
    )
}

pub fn session_touch(key: SessionKey<'_>, now_ms: i64) -> Statement {
    Statement::new(
        "UPDATE mcp_sessions SET used_ms = ?3 WHERE tenant = ?1 AND id_hash = ?2",
        vec![key.tenant.into(), key.id_hash.into(), now_ms.into()],
    )
}

pub fn session_delete(key: SessionKey<'_>) -> Statement {
    Statement::new(
        "DELETE FROM mcp_sessions WHERE tenant = ?1 AND id_hash = ?2",
        vec![key.tenant.into(), key.id_hash.into()],
    )
}

/// Columns: number, saved. Only for whoever made it, and only if it was used since.
pub fn session_find(key: SessionKey<'_>, principal: &str, since_ms: i64) -> Statement {
    Statement::new(
        "SELECT number, saved FROM mcp_sessions
         WHERE tenant = ?1 AND id_hash = ?2 AND principal = ?3 AND used_ms >= ?4",
        vec![key.tenant.into(), key.id_hash.into(), principal.into(), since_ms.into()],
    )
}

/// Of every tenant: what nobody has used since is over, whoever made it.
pub fn sessions_expire(since_ms: i64) -> Statement {
    Statement::new("DELETE FROM mcp_sessions WHERE used_ms < ?1", vec![since_ms.into()])
}
