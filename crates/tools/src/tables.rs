//! The tables of this crate and every statement over them. The only SQL of this crate.

use orchestr8_kernel::ports::store::{Cell, Statement};

/// Applied in order, once, by the store.
pub const MIGRATIONS: &[(&str, &str)] = &[
    ("tools-1", TOOLS_1),
    // Whether its server listed a tool the last time.
    ("tools-2", "ALTER TABLE tool_pins ADD COLUMN listed INTEGER NOT NULL DEFAULT 1;"),
    // Servers that were added at run time.
    (
        "tools-3",
        "CREATE TABLE mcp_servers (
            tenant TEXT NOT NULL, name TEXT NOT NULL, definition TEXT NOT NULL, created_by TEXT NOT NULL,
            created_ms INTEGER NOT NULL, seal TEXT,
            PRIMARY KEY (tenant, name)) STRICT, WITHOUT ROWID;",
    ),
];

const TOOLS_1: &str = "CREATE TABLE fixture_rows (
        seq INTEGER PRIMARY KEY, tenant TEXT NOT NULL, list TEXT NOT NULL, value TEXT NOT NULL) STRICT;
     CREATE INDEX fixture_rows_list ON fixture_rows (tenant, list, seq);
     CREATE TABLE tool_pins (
        tenant TEXT NOT NULL, server TEXT NOT NULL, tool TEXT NOT NULL,
        accepted TEXT NOT NULL, accepted_definition TEXT NOT NULL, accepted_ms INTEGER NOT NULL,
        changed TEXT, changed_definition TEXT, changed_ms INTEGER,
        PRIMARY KEY (tenant, server, tool)) STRICT, WITHOUT ROWID;";

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

/// A definition of a tool of another server, as it was seen.
pub struct PinRow<'a> {
    pub tenant: &'a str,
    pub server: &'a str,
    pub tool: &'a str,
    pub hash: &'a str,
    pub definition: &'a str,
    pub now_ms: i64,
}

/// Columns: server, tool, accepted, accepted_definition, changed, changed_definition, listed.
pub fn pins_all(tenant: &str) -> Statement {
    Statement::new(
        "SELECT server, tool, accepted, accepted_definition, changed, changed_definition, listed FROM tool_pins
         WHERE tenant = ?1 ORDER BY server, tool",
        vec![tenant.into()],
    )
}

/// Columns as of `pins_all`.
pub fn pins_of(tenant: &str, server: &str) -> Statement {
    Statement::new(
        "SELECT server, tool, accepted, accepted_definition, changed, changed_definition, listed FROM tool_pins
         WHERE tenant = ?1 AND server = ?2 ORDER BY tool",
        vec![tenant.into(), server.into()],
    )
}

impl PinRow<'_> {
    /// ?1 to ?6 of the statements that write a definition.
    fn cells(&self) -> Vec<Cell> {
        vec![
            self.tenant.into(),
            self.server.into(),
            self.tool.into(),
            self.hash.into(),
            self.definition.into(),
            self.now_ms.into(),
        ]
    }
}

/// The first definition of a tool is the accepted one.
pub fn pin_first(row: &PinRow<'_>) -> Statement {
    Statement::new(
        "INSERT INTO tool_pins (tenant, server, tool, accepted, accepted_definition, accepted_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
        row.cells(),
    )
}

pub fn pin_changed(row: &PinRow<'_>) -> Statement {
    Statement::new(
        "UPDATE tool_pins SET changed = ?4, changed_definition = ?5, changed_ms = ?6
         WHERE tenant = ?1 AND server = ?2 AND tool = ?3",
        row.cells(),
    )
}

pub fn pin_listed(tenant: &str, server: &str, tool: &str, is_listed: bool) -> Statement {
    Statement::new(
        "UPDATE tool_pins SET listed = ?4 WHERE tenant = ?1 AND server = ?2 AND tool = ?3",
        vec![tenant.into(), server.into(), tool.into(), i64::from(is_listed).into()],
    )
}

pub fn pin_unchanged(row: &PinRow<'_>) -> Statement {
    Statement::new(
        "UPDATE tool_pins SET changed = NULL, changed_definition = NULL, changed_ms = NULL
         WHERE tenant = ?1 AND server = ?2 AND tool = ?3",
        vec![row.tenant.into(), row.server.into(), row.tool.into()],
    )
}

/// Changes one row, or the definition is not this one any more.
pub fn pin_accept(tenant: &str, server: &str, tool: &str, hash: &str, now_ms: i64) -> Statement {
    Statement::new(
        "UPDATE tool_pins SET accepted = changed, accepted_definition = changed_definition, accepted_ms = ?5,
            changed = NULL, changed_definition = NULL, changed_ms = NULL
         WHERE tenant = ?1 AND server = ?2 AND tool = ?3 AND changed = ?4",
        vec![tenant.into(), server.into(), tool.into(), hash.into(), now_ms.into()],
    )
}

/// Columns: tenant, name, definition, created_by, created_ms, seal.
pub fn servers_all() -> Statement {
    Statement::new(
        "SELECT tenant, name, definition, created_by, created_ms, seal FROM mcp_servers ORDER BY tenant, name",
        vec![],
    )
}

/// Columns: name.
pub fn server_named(tenant: &str, name: &str) -> Statement {
    Statement::new(
        "SELECT name FROM mcp_servers WHERE tenant = ?1 AND name = ?2",
        vec![tenant.into(), name.into()],
    )
}

/// Tenant, name, definition and author are what its seal covers. Changes no row if there is one of this name.
pub fn server_insert(
    [tenant, name, definition, created_by]: [&str; 4],
    created_ms: i64,
    seal: Option<String>,
) -> Statement {
    Statement::new(
        "INSERT INTO mcp_servers (tenant, name, definition, created_by, created_ms, seal)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
        vec![
            tenant.into(),
            name.into(),
            definition.into(),
            created_by.into(),
            created_ms.into(),
            seal.into(),
        ],
    )
}

pub fn server_delete(tenant: &str, name: &str) -> Statement {
    Statement::new(
        "DELETE FROM mcp_servers WHERE tenant = ?1 AND name = ?2",
        vec![tenant.into(), name.into()],
    )
}

/// Forgets the definitions of a server that was removed.
pub fn pins_delete(tenant: &str, server: &str) -> Statement {
    Statement::new(
        "DELETE FROM tool_pins WHERE tenant = ?1 AND server = ?2",
        vec![tenant.into(), server.into()],
    )
}
