//! The table of API tokens and every statement over it.

use orchestr8_kernel::ports::store::Statement;

/// Applied in order, once, by the store.
pub const MIGRATIONS: &[(&str, &str)] = &[(
    "tokens-1",
    "CREATE TABLE api_tokens (
        id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, roles TEXT NOT NULL, scope TEXT NOT NULL,
        sha256 TEXT NOT NULL, created_ms INTEGER NOT NULL, created_by TEXT NOT NULL, expires_ms INTEGER,
        rotated_ms INTEGER, old_sha256 TEXT, old_until_ms INTEGER,
        revoked_ms INTEGER, revoked_by TEXT, last_used_ms INTEGER) STRICT, WITHOUT ROWID;
     CREATE UNIQUE INDEX api_tokens_name ON api_tokens (tenant, name) WHERE revoked_ms IS NULL;
     CREATE INDEX api_tokens_tenant ON api_tokens (tenant, id);",
), (
    "tokens-2",
    "CREATE TABLE configured_principals (
        tenant TEXT NOT NULL, name TEXT NOT NULL, since_ms INTEGER NOT NULL, PRIMARY KEY (tenant, name)) STRICT, WITHOUT ROWID;
     CREATE INDEX api_tokens_names ON api_tokens (tenant, name);
     ALTER TABLE api_tokens ADD COLUMN seal TEXT;",
)];

/// Columns: how many tokens there are that are not revoked.
pub const ACTIVE_COUNT: &str = "SELECT COUNT(*) FROM api_tokens WHERE revoked_ms IS NULL";

/// The columns of every statement that gives whole tokens, in the order in which `TokenRecord` reads them.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, tenant, name, roles, scope, sha256, created_ms, created_by, expires_ms, rotated_ms, old_sha256, \
             old_until_ms, revoked_ms, revoked_by, last_used_ms, seal FROM api_tokens ",
            $rest
        )
    };
}

/// A token as it is created.
pub struct NewToken<'a> {
    pub id: &'a str,
    pub tenant: &'a str,
    pub name: &'a str,
    pub roles: String,
    pub scope: String,
    pub sha256: &'a str,
    pub created_ms: i64,
    pub created_by: &'a str,
    pub expires_ms: Option<i64>,
    pub seal: Option<String>,
}

pub fn insert(token: &NewToken<'_>) -> Statement {
    Statement::new(
        "INSERT INTO api_tokens (id, tenant, name, roles, scope, sha256, created_ms, created_by, expires_ms, seal)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT DO NOTHING",
        vec![
            token.id.into(),
            token.tenant.into(),
            token.name.into(),
            token.roles.clone().into(),
            token.scope.clone().into(),
            token.sha256.into(),
            token.created_ms.into(),
            token.created_by.into(),
            token.expires_ms.into(),
            token.seal.as_deref().into(),
        ],
    )
}

/// All that are not revoked, of every tenant.
pub fn active() -> Statement {
    Statement::new(select!("WHERE revoked_ms IS NULL"), vec![])
}

/// Columns: tenant, name. Of principals that had a token.
pub fn revoked_names() -> Statement {
    Statement::new("SELECT DISTINCT tenant, name FROM api_tokens WHERE revoked_ms IS NOT NULL", vec![])
}

/// Columns: the id of a token that had this name, none if it was one of the settings, and whether it is revoked.
pub fn earlier_holders(tenant: &str, name: &str) -> Statement {
    Statement::new(
        "SELECT id, CASE WHEN revoked_ms IS NULL THEN 0 ELSE 1 END FROM api_tokens WHERE tenant = ?1 AND name = ?2
         UNION ALL SELECT NULL, 1 FROM configured_principals WHERE tenant = ?1 AND name = ?2",
        vec![tenant.into(), name.into()],
    )
}

/// Columns: tenant, name. Of all principals that tokens of the settings ever stood for.
pub fn configured() -> Statement {
    Statement::new("SELECT tenant, name FROM configured_principals", vec![])
}

/// Remembers that a token of the settings stands for a principal.
pub fn configure(tenant: &str, name: &str, now_ms: i64) -> Statement {
    Statement::new(
        "INSERT INTO configured_principals (tenant, name, since_ms) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        vec![tenant.into(), name.into(), now_ms.into()],
    )
}

/// Columns: how many a tenant has.
pub fn count(tenant: &str) -> Statement {
    Statement::new(
        "SELECT COUNT(*) FROM api_tokens WHERE tenant = ?1 AND revoked_ms IS NULL",
        vec![tenant.into()],
    )
}

pub fn find(id: &str) -> Statement {
    Statement::new(select!("WHERE id = ?1"), vec![id.into()])
}

/// Those of one tenant, or with none those of all, in the order of their ids.
pub fn page(tenant: Option<&str>, after: &str, limit: i64) -> Statement {
    match tenant {
        Some(tenant) => Statement::new(
            select!("WHERE tenant = ?1 AND id > ?2 ORDER BY id LIMIT ?3"),
            vec![tenant.into(), after.into(), limit.into()],
        ),
        None => {
            Statement::new(select!("WHERE id > ?1 ORDER BY id LIMIT ?2"), vec![after.into(), limit.into()])
        }
    }
}

/// Another secret for a token that still has the one that was read; the seal is of the row as it is then.
pub fn rotate(
    id: &str,
    old_sha256: &str,
    sha256: &str,
    (now_ms, until_ms): (i64, i64),
    seal: Option<&str>,
) -> Statement {
    Statement::new(
        "UPDATE api_tokens SET sha256 = ?3, rotated_ms = ?4, old_sha256 = ?2, old_until_ms = ?5, seal = ?6
         WHERE id = ?1 AND sha256 = ?2 AND revoked_ms IS NULL",
        vec![id.into(), old_sha256.into(), sha256.into(), now_ms.into(), until_ms.into(), seal.into()],
    )
}

pub fn revoke(id: &str, now_ms: i64, by: &str, seal: Option<&str>) -> Statement {
    Statement::new(
        "UPDATE api_tokens SET revoked_ms = ?2, revoked_by = ?3, old_sha256 = NULL, seal = ?4 WHERE id = ?1 AND revoked_ms IS NULL",
        vec![id.into(), now_ms.into(), by.into(), seal.into()],
    )
}

pub fn used(id: &str, at_ms: i64) -> Statement {
    Statement::new(
        "UPDATE api_tokens SET last_used_ms = ?2 WHERE id = ?1 AND (last_used_ms IS NULL OR last_used_ms < ?2)",
        vec![id.into(), at_ms.into()],
    )
}
