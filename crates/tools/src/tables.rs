//! The tables of this crate and every statement over them. The only SQL of this crate.

use orchestr8_kernel::ports::store::Statement;

/// Applied in order, once, by the store.
pub const MIGRATIONS: &[(&str, &str)] = &[(
    "tools-1",
    "CREATE TABLE fixture_rows (
        seq INTEGER PRIMARY KEY, tenant TEXT NOT NULL, list TEXT NOT NULL, value TEXT NOT NULL) STRICT;
     CREATE INDEX fixture_rows_list ON fixture_rows (tenant, list, seq);
     CREATE TABLE tool_pins (
        tenant TEXT NOT NULL, server TEXT NOT NULL, tool TEXT NOT NULL,
        accepted TEXT NOT NULL, accepted_definition TEXT NOT NULL, accepted_ms INTEGER NOT NULL,
        changed TEXT, changed_definition TEXT, changed_ms INTEGER,
        PRIMARY KEY (tenant, server, tool)) STRICT, WITHOUT ROWID;",
)];

/// Adds a row even where there is an equal one: a doubled effect must show.
pub fn fixture_append(tenant: &str, list: &str, value: &str) -> Statement {
    Statement::new(
        "INSERT INTO fixture_rows (tenant, list, value) VALUES (?1, ?2, ?3)",
        vec![tenant.into(), list.into(), value.into()],
    )
}

/// Columns: seq, value. In order of commit.
pub fn fixture_page(tenant: &str, list: &str, after: i64, limit: i64) -> Statement {
    Statement::new(
        "SELECT seq, value FROM fixture_rows WHERE tenant = ?1 AND list = ?2 AND seq > ?3 ORDER BY seq LIMIT ?4",
        vec![tenant.into(), list.into(), after.into(), limit.into()],
    )
}
