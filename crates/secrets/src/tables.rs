//! The tables of the vault. The only SQL of this crate.

use orchestr8_kernel::ports::store::Statement;

use crate::record::SecretRecord;

pub const MIGRATIONS: &[(&str, &str)] = &[(
    "secrets-1",
    "CREATE TABLE vault_keys (id TEXT NOT NULL PRIMARY KEY, wrapped BLOB NOT NULL, created_ms INTEGER NOT NULL) STRICT, WITHOUT ROWID;
     CREATE TABLE vault_records (
        tenant TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, key_id TEXT NOT NULL,
        sealed BLOB NOT NULL, binding TEXT NOT NULL, created_ms INTEGER NOT NULL, rotated_ms INTEGER NOT NULL,
        changed_by TEXT NOT NULL, PRIMARY KEY (tenant, kind, name)
     ) STRICT, WITHOUT ROWID;",
)];

/// Columns: id, wrapped. There is at most one.
pub(crate) fn data_key() -> Statement {
    Statement::new("SELECT id, wrapped FROM vault_keys LIMIT 1", vec![])
}

/// Changes one row, unless there is a key already.
pub(crate) fn data_key_insert(id: &str, wrapped: Vec<u8>, now_ms: i64) -> Statement {
    Statement::new(
        "INSERT INTO vault_keys (id, wrapped, created_ms) SELECT ?1, ?2, ?3 WHERE NOT EXISTS (SELECT 1 FROM vault_keys)",
        vec![id.into(), wrapped.into(), now_ms.into()],
    )
}

pub(crate) fn data_key_delete(id: &str) -> Statement {
    Statement::new("DELETE FROM vault_keys WHERE id = ?1", vec![id.into()])
}

/// Columns: tenant, kind, name, version, sealed, binding, created_ms, rotated_ms, changed_by.
pub(crate) fn records(limit: i64) -> Statement {
    Statement::new(
        "SELECT tenant, kind, name, version, sealed, binding, created_ms, rotated_ms, changed_by FROM vault_records
         ORDER BY tenant, kind, name LIMIT ?1",
        vec![limit.into()],
    )
}

pub(crate) fn record_put(record: &SecretRecord, binding: String, key_id: &str, sealed: Vec<u8>) -> Statement {
    Statement::new(
        "INSERT INTO vault_records (tenant, kind, name, version, key_id, sealed, binding, created_ms, rotated_ms, changed_by)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
         ON CONFLICT (tenant, kind, name) DO UPDATE SET version = ?4, key_id = ?5, sealed = ?6, binding = ?7, rotated_ms = ?9,
            changed_by = ?10
         WHERE vault_records.version < ?4",
        vec![
            record.tenant.as_str().into(),
            record.kind.as_str().into(),
            record.name.as_str().into(),
            record.version.into(),
            key_id.into(),
            sealed.into(),
            binding.into(),
            record.created_ms.into(),
            record.rotated_ms.into(),
            record.changed_by.as_str().into(),
        ],
    )
}

/// Encrypts a record again under another key; its version stays.
pub(crate) fn record_reseal(record: &SecretRecord, key_id: &str, sealed: Vec<u8>) -> Statement {
    Statement::new(
        "UPDATE vault_records SET key_id = ?4, sealed = ?5 WHERE tenant = ?1 AND kind = ?2 AND name = ?3 AND version = ?6",
        vec![
            record.tenant.as_str().into(),
            record.kind.as_str().into(),
            record.name.as_str().into(),
            key_id.into(),
            sealed.into(),
            record.version.into(),
        ],
    )
}

pub(crate) fn record_delete(tenant: &str, kind: &'static str, name: &str) -> Statement {
    Statement::new(
        "DELETE FROM vault_records WHERE tenant = ?1 AND kind = ?2 AND name = ?3",
        vec![tenant.into(), kind.into(), name.into()],
    )
}
