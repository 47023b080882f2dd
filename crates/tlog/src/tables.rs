//! The table of heads that a witness remembers, and every statement over it.

use orchestr8_kernel::ports::store::Statement;

use crate::witness::WitnessedHead;

/// Applied in order, once, by the store.
pub const MIGRATIONS: &[(&str, &str)] = &[(
    "witness-1",
    "CREATE TABLE witness_heads (
        tenant TEXT NOT NULL, principal TEXT NOT NULL, origin TEXT NOT NULL, at_ms INTEGER NOT NULL,
        key TEXT NOT NULL, size INTEGER NOT NULL, root BLOB NOT NULL, note TEXT NOT NULL, received_ms INTEGER NOT NULL,
        PRIMARY KEY (tenant, principal, origin, at_ms)) STRICT, WITHOUT ROWID;",
)];

/// Inserts a head, unless the newest one is no longer the one that it was compared with (-1: there was none).
pub fn head_insert(
    tenant: &str,
    principal: &str,
    head: &WitnessedHead,
    before_ms: i64,
    now_ms: i64,
) -> Statement {
    Statement::new(
        "INSERT INTO witness_heads (tenant, principal, origin, at_ms, key, size, root, note, received_ms)
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9
         WHERE COALESCE((SELECT MAX(at_ms) FROM witness_heads WHERE tenant = ?1 AND principal = ?2 AND origin = ?3), -1) = ?10
         ON CONFLICT DO NOTHING",
        vec![
            tenant.into(),
            principal.into(),
            head.origin.as_str().into(),
            head.at_ms.into(),
            head.key.as_str().into(),
            i64::try_from(head.size).unwrap_or(i64::MAX).into(),
            head.root.to_vec().into(),
            head.note.as_str().into(),
            now_ms.into(),
            before_ms.into(),
        ],
    )
}

/// Columns: principal, origin, key, size, root, at_ms, note, received_ms. The newest first.
pub fn heads_of(tenant: &str, principal: &str, origin: &str, limit: i64) -> Statement {
    Statement::new(
        "SELECT principal, origin, key, size, root, at_ms, note, received_ms FROM witness_heads
         WHERE tenant = ?1 AND principal = ?2 AND origin = ?3 ORDER BY at_ms DESC LIMIT ?4",
        vec![tenant.into(), principal.into(), origin.into(), limit.into()],
    )
}

/// The newest head of each log. Columns as those of `heads_of`.
pub fn newest_heads(tenant: &str, limit: i64) -> Statement {
    Statement::new(
        "SELECT principal, origin, key, size, root, MAX(at_ms), note, received_ms FROM witness_heads
         WHERE tenant = ?1 GROUP BY principal, origin ORDER BY principal, origin LIMIT ?2",
        vec![tenant.into(), limit.into()],
    )
}

/// Columns: how many logs of a principal there are.
pub fn logs_count(tenant: &str, principal: &str) -> Statement {
    Statement::new(
        "SELECT COUNT(DISTINCT origin) FROM witness_heads WHERE tenant = ?1 AND principal = ?2",
        vec![tenant.into(), principal.into()],
    )
}

/// Leaves the newest heads of a log.
pub fn heads_trim(tenant: &str, principal: &str, origin: &str, kept: i64) -> Statement {
    Statement::new(
        "DELETE FROM witness_heads WHERE tenant = ?1 AND principal = ?2 AND origin = ?3 AND at_ms <=
            (SELECT at_ms FROM witness_heads WHERE tenant = ?1 AND principal = ?2 AND origin = ?3
             ORDER BY at_ms DESC LIMIT 1 OFFSET ?4)",
        vec![tenant.into(), principal.into(), origin.into(), kept.into()],
    )
}

pub fn heads_delete(tenant: &str, principal: &str, origin: &str) -> Statement {
    Statement::new(
        "DELETE FROM witness_heads WHERE tenant = ?1 AND principal = ?2 AND origin = ?3",
        vec![tenant.into(), principal.into(), origin.into()],
    )
}
