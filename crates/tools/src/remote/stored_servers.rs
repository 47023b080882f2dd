//! Servers that were added at run time, in the store. A row can start a program, so it carries a seal (ADR 44).

use orchestr8_contract::Fault;
use orchestr8_contract::id::Tenant;
use orchestr8_kernel::Kernel;
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::store::{Row, Statement};
use serde_json::json;

use super::entry::ServerEntry;
use crate::tables;

const TABLE: &str = "mcp_servers";

/// A server that a tenant has added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredServer {
    pub tenant: Tenant,
    pub name: String,
    pub entry: ServerEntry,
    pub created_by: String,
    pub created_ms: i64,
}

impl StoredServer {
    /// The statement that stores it.
    pub fn insert(&self, kernel: &Kernel) -> Result<Statement, Fault> {
        let definition = json!(self.entry).to_string();
        let cells = [self.tenant.as_str(), &self.name, &definition, &self.created_by];
        let seal = kernel.row_seal().seal(TABLE, &cells.map(Some))?;
        Ok(tables::server_insert(cells, self.created_ms, seal))
    }

    fn read(row: &Row, kernel: &Kernel) -> Result<Self, Fault> {
        let cells = [0, 1, 2, 3].map(|column| row.text(column));
        let [tenant, name, definition, created_by] = cells;
        let cells = [
            tenant.map_err(store_fault)?,
            name.map_err(store_fault)?,
            definition.map_err(store_fault)?,
            created_by.map_err(store_fault)?,
        ];
        kernel.row_seal().check(TABLE, &cells.map(Some), row.optional_text(5).map_err(store_fault)?)?;
        let [tenant, name, definition, created_by] = cells;
        let corrupt = |what: String| Fault::internal(format!("a stored MCP server cannot be read: {what}"));
        Ok(Self {
            tenant: Tenant::parse(tenant).map_err(|error| corrupt(error.to_string()))?,
            name: name.to_owned(),
            entry: serde_json::from_str(definition).map_err(|error| corrupt(error.to_string()))?,
            created_by: created_by.to_owned(),
            created_ms: row.int(4).map_err(store_fault)?,
        })
    }
}

/// All that are stored. One that was changed in the data file is left out and reported.
pub async fn load(kernel: &Kernel) -> Result<Vec<StoredServer>, Fault> {
    let rows = kernel.ports().store.query(tables::servers_all()).await.map_err(store_fault)?;
    let mut stored = Vec::with_capacity(rows.len());
    for row in &rows {
        match StoredServer::read(row, kernel) {
            Ok(server) => stored.push(server),
            Err(fault) => {
                let name = row.text(1).unwrap_or_default();
                let fields = json!({"server": name, "error": orchestr8_kernel::log::error(&fault)});
                kernel.log().error("a stored MCP server is not used", fields);
            }
        }
    }
    Ok(stored)
}

/// Whether a tenant has added a server of this name.
pub async fn is_added(kernel: &Kernel, tenant: &Tenant, name: &str) -> Result<bool, Fault> {
    let rows = kernel.ports().store.query(tables::server_named(tenant.as_str(), name)).await;
    Ok(!rows.map_err(store_fault)?.is_empty())
}
