//! Principals that tokens of the settings stand for. Their names are remembered, so that another token does not inherit what they own.

use std::collections::HashSet;

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::audit::StateChange;
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::store::Batch;
use serde_json::json;

use crate::{Inner, tables};

/// What the audit trail calls the explicit reuse of a name.
pub(crate) const REUSE: &str = "tokens.reuse_name";

/// A principal of the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredPrincipal {
    pub tenant: String,
    pub name: String,
    /// It may take over the name of an API token, with everything that belongs to that name.
    pub reuse_name: bool,
}

impl Inner {
    /// Remembers the principals of the settings. One that is new and has the name of an API token is refused unless it says so.
    pub(crate) async fn claim_names(&self) -> Result<(), Fault> {
        if self.configured.is_empty() {
            return Ok(());
        }
        let (store, now_ms) = (&self.kernel.ports().store, self.kernel.ports().clock.now_ms());
        let mut known = HashSet::new();
        for row in &store.query(tables::configured()).await.map_err(store_fault)? {
            let (tenant, name) = (row.text(0).map_err(store_fault)?, row.text(1).map_err(store_fault)?);
            known.insert((tenant.to_owned(), name.to_owned()));
        }
        let mut batch = Batch::new();
        for ConfiguredPrincipal { tenant, name, reuse_name } in &self.configured {
            if known.contains(&(tenant.clone(), name.clone())) {
                continue;
            }
            let holders = store.query(tables::earlier_holders(tenant, name)).await.map_err(store_fault)?;
            if !holders.is_empty() {
                if !reuse_name {
                    return Err(Fault::new(
                        Code::IdConflict,
                        format!(
                            "auth.tokens: the name '{name}' belongs to an API token of the tenant {tenant}; choose another \
                             name, or set reuseName to take over what belongs to it"
                        ),
                    ));
                }
                batch.link(reuse(tenant, name, "server").link(now_ms));
            }
            batch.then(tables::configure(tenant, name, now_ms));
        }
        if batch.is_empty() {
            return Ok(());
        }
        store.commit(batch).await.map_err(store_fault)
    }
}

/// The audit entry of a name that another token takes over.
pub(crate) fn reuse<'a>(tenant: &'a str, name: &'a str, by: &'a str) -> StateChange<'a> {
    StateChange {
        principal: by,
        detail: json!({"name": name}),
        ..StateChange::by_server(REUSE, tenant, Some(name))
    }
}
