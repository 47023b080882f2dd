//! Statements over stored workflows. Every revision is kept; the newest one is marked.

use orchestr8_kernel::ports::store::Statement;

const COLUMNS: &str = "id, revision, version, name, about, hash, applied_ms, author, author_roles, seal";

/// The newest revision. The columns of `COLUMNS`.
pub fn newest(tenant: &str, id: &str) -> Statement {
    Statement {
        sql: format!(
            "SELECT {COLUMNS} FROM wf_workflows WHERE tenant = ?1 AND id = ?2 AND newest = 1 AND deleted = 0"
        )
        .into(),
        cells: vec![tenant.into(), id.into()],
    }
}

/// The newest revision with this version. The columns of `COLUMNS`.
pub fn with_version(tenant: &str, id: &str, version: &str) -> Statement {
    Statement {
        sql: format!(
            "SELECT {COLUMNS} FROM wf_workflows WHERE tenant = ?1 AND id = ?2 AND version = ?3 AND deleted = 0
             ORDER BY revision DESC LIMIT 1"
        )
        .into(),
        cells: vec![tenant.into(), id.into(), version.into()],
    }
}

/// The revision with this number. The columns of `COLUMNS`.
pub fn with_number(tenant: &str, id: &str, revision: i64) -> Statement {
    Statement {
        sql: format!(
            "SELECT {COLUMNS} FROM wf_workflows WHERE tenant = ?1 AND id = ?2 AND revision = ?3 AND deleted = 0"
        )
        .into(),
        cells: vec![tenant.into(), id.into(), revision.into()],
    }
}

/// All revisions, the newest first. The columns of `COLUMNS`.
pub fn revisions(tenant: &str, id: &str, limit: i64) -> Statement {
    Statement {
        sql: format!(
            "SELECT {COLUMNS} FROM wf_workflows WHERE tenant = ?1 AND id = ?2 AND deleted = 0
             ORDER BY revision DESC LIMIT ?3"
        )
        .into(),
        cells: vec![tenant.into(), id.into(), limit.into()],
    }
}

/// The first revision that was ever applied. The columns of `COLUMNS`.
pub fn first(tenant: &str, id: &str) -> Statement {
    Statement {
        sql: format!(
            "SELECT {COLUMNS} FROM wf_workflows WHERE tenant = ?1 AND id = ?2 AND deleted = 0
             ORDER BY revision LIMIT 1"
        )
        .into(),
        cells: vec![tenant.into(), id.into()],
    }
}

/// The revisions of this workflow with this hash. The columns of `COLUMNS`.
pub fn with_hash(tenant: &str, id: &str, hash: &str) -> Statement {
    Statement {
        sql: format!(
            "SELECT {COLUMNS} FROM wf_workflows WHERE tenant = ?1 AND id = ?2 AND hash = ?3 AND deleted = 0
             ORDER BY revision DESC LIMIT 10"
        )
        .into(),
        cells: vec![tenant.into(), id.into(), hash.into()],
    }
}

/// Column: the highest revision so far, deleted ones included, or null.
pub fn last_revision(tenant: &str, id: &str) -> Statement {
    Statement::new(
        "SELECT MAX(revision) FROM wf_workflows WHERE tenant = ?1 AND id = ?2",
        vec![tenant.into(), id.into()],
    )
}

/// A page of newest revisions by id. The columns of `COLUMNS`.
pub fn page(tenant: &str, after: &str, search: Option<&str>, limit: i64) -> Statement {
    Statement {
        sql: format!(
            "SELECT {COLUMNS} FROM wf_workflows WHERE tenant = ?1 AND id > ?2 AND newest = 1 AND deleted = 0
             AND (?3 IS NULL OR INSTR(LOWER(id || ' ' || name || ' ' || about), LOWER(?3)) > 0) ORDER BY id LIMIT ?4"
        )
        .into(),
        cells: vec![tenant.into(), after.into(), search.into(), limit.into()],
    }
}

pub struct Revision<'a> {
    pub tenant: &'a str,
    pub id: &'a str,
    pub revision: i64,
    pub version: &'a str,
    pub name: &'a str,
    pub about: String,
    pub hash: &'a str,
    pub applied_ms: i64,
    pub author: &'a str,
    pub author_roles: String,
    pub seal: Option<String>,
}

/// The one before is not the newest any more.
pub fn supersede(tenant: &str, id: &str) -> Statement {
    Statement::new(
        "UPDATE wf_workflows SET newest = 0 WHERE tenant = ?1 AND id = ?2 AND newest = 1",
        vec![tenant.into(), id.into()],
    )
}

/// Changes one row, or somebody else has added this revision meanwhile.
pub fn add(row: Revision<'_>) -> Statement {
    Statement::new(
        "INSERT INTO wf_workflows (tenant, id, revision, version, name, about, hash, applied_ms, author, author_roles,
            seal) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT DO NOTHING",
        vec![
            row.tenant.into(),
            row.id.into(),
            row.revision.into(),
            row.version.into(),
            row.name.into(),
            row.about.into(),
            row.hash.into(),
            row.applied_ms.into(),
            row.author.into(),
            row.author_roles.into(),
            row.seal.into(),
        ],
    )
}

pub fn delete(tenant: &str, id: &str) -> Statement {
    Statement::new(
        "UPDATE wf_workflows SET deleted = 1, newest = 0 WHERE tenant = ?1 AND id = ?2 AND deleted = 0",
        vec![tenant.into(), id.into()],
    )
}
