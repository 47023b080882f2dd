//! API tokens: created, listed, rotated and revoked by actions, kept in the store as hashes, checked in memory.
//!
//! ```text
//! face: makes the secret -> tokens.create (its SHA-256 only) -> store, then TokenTable -> edge: every request looks there
//! ```
//!
//! The secret itself never enters the kernel, so no journal, ledger or audit entry can hold it. See ADR 33.

mod actions;
mod configured;
pub mod limits;
mod record;
pub mod roles;
pub mod tables;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use orchestr8_contract::Fault;
use orchestr8_contract::id::Tenant;
use orchestr8_kernel::audit::SecurityEvent;
use orchestr8_kernel::grant::TokenTable;
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::store::Batch;
use orchestr8_kernel::{Action, Kernel, schema};
use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;

pub use configured::ConfiguredPrincipal;
use record::TokenRecord;

/// The API tokens of this server. Clones share them.
#[derive(Clone)]
pub struct ApiTokens(Arc<Inner>);

pub(crate) struct Inner {
    kernel: Kernel,
    table: TokenTable,
    /// Principals that tokens of the settings stand for: no API token may take their place.
    configured: Vec<ConfiguredPrincipal>,
    loaded: AtomicBool,
    /// What the store knows of the last use of each token.
    written: Mutex<HashMap<Arc<str>, i64>>,
}

impl ApiTokens {
    pub fn new(kernel: Kernel, configured: Vec<ConfiguredPrincipal>) -> Self {
        let table = TokenTable::new(kernel.ports().clock.clone());
        Self(Arc::new(Inner {
            kernel,
            table,
            configured,
            loaded: AtomicBool::new(false),
            written: Mutex::default(),
        }))
    }

    /// What requests are checked against. Empty until `load`.
    pub fn table(&self) -> TokenTable {
        self.0.table.clone()
    }

    pub fn actions(&self) -> Result<Vec<Action>, schema::Error> {
        actions::all(&self.0)
    }

    /// Reads the tokens of the store into memory, once.
    pub async fn load(&self) -> Result<(), Fault> {
        if self.0.loaded.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let store = &self.0.kernel.ports().store;
        self.0.claim_names().await?;
        for row in &store.query(tables::revoked_names()).await.map_err(store_fault)? {
            let tenant = Tenant::parse(row.text(0).map_err(store_fault)?);
            if let Ok(tenant) = tenant {
                self.0.table.remember(tenant, row.text(1).map_err(store_fault)?);
            }
        }
        let rows = store.query(tables::active()).await.map_err(store_fault)?;
        for row in &rows {
            let record = TokenRecord::read(row)?;
            if let Err(fault) = record.check_seal(self.0.kernel.row_seal()) {
                self.0.report(&record, &fault).await;
                continue;
            }
            for (hash, grant) in record.grants()? {
                self.0.table.insert(hash, grant);
            }
        }
        self.0.table.retire();
        Ok(())
    }

    /// Writes down when tokens were last used, at most once a minute each, until told to stop.
    pub async fn track_use(self, stop: CancellationToken) {
        let clock = self.0.kernel.ports().clock.clone();
        loop {
            let stopping = tokio::select! {
                () = stop.cancelled() => true,
                () = clock.sleep(Duration::from_millis(limits::LAST_USED_EVERY_MS)) => false,
            };
            if let Err(fault) = self.write_use().await {
                self.0
                    .kernel
                    .log()
                    .warn("the last use of tokens could not be written", json!({"cause": fault.message}));
            }
            if stopping {
                return;
            }
        }
    }

    /// Writes what has changed since the last time.
    async fn write_use(&self) -> Result<(), Fault> {
        let used = self.0.table.last_used();
        let changed: Vec<(Arc<str>, i64)> = {
            let written = self.0.written.lock();
            used.into_iter().filter(|(id, at_ms)| written.get(id) != Some(at_ms)).collect()
        };
        if changed.is_empty() {
            return Ok(());
        }
        let mut batch = Batch::new();
        for (id, at_ms) in &changed {
            batch.then(tables::used(id, *at_ms));
        }
        self.0.kernel.ports().store.commit(batch).await.map_err(store_fault)?;
        self.0.written.lock().extend(changed);
        Ok(())
    }
}

impl Inner {
    /// A token that was changed in the data file grants nothing, and its name counts as revoked.
    async fn report(&self, record: &TokenRecord, fault: &Fault) {
        self.table.remember(record.tenant.clone(), &record.name);
        let detail =
            json!({"id": record.id, "name": record.name, "roles": record.roles, "cause": fault.message});
        self.kernel.log().error("a token of the data file is refused", detail.clone());
        let event = SecurityEvent {
            action: "tokens.refused",
            tenant: record.tenant.clone(),
            principal: record.name.clone(),
            source: String::from("data file"),
            code: fault.code,
            detail,
        };
        if let Err(fault) = self.kernel.record_security_event(&event).await {
            let fields = json!({"cause": fault.message});
            self.kernel.log().error("a refused token could not be written into the audit trail", fields);
        }
    }
}

#[cfg(test)]
mod tests;
