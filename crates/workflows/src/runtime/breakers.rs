//! The circuit breakers outlive the process: what they know is kept in the store and taken up at the next start.

use std::time::Duration;

use orchestr8_contract::Fault;
use orchestr8_contract::id::Tenant;
use orchestr8_kernel::bus::{CIRCUIT_CLOSE, CIRCUIT_OPEN, Filter};
use orchestr8_kernel::log;
use orchestr8_kernel::ports::store::Batch;
use orchestr8_kernel::resilience::{Snapshot, breaker};
use serde_json::json;

use super::{Hub, Shared, fault, tables};

/// The key of the breaker of an agent and its target. Tenants have breakers of their own, so that the failures of one do not stop
/// the calls of another; those of the local tenant have the plain form of the contract.
pub fn key(tenant: &Tenant, agent: &str, target: Option<&str>) -> String {
    if *tenant == Tenant::local() {
        return breaker::key(agent, target);
    }
    breaker::key(agent, Some(&format!("~{}/{}", tenant.as_str(), target.unwrap_or_default())))
}

/// Whether a tenant may see a breaker: its own, and those of the server.
pub fn is_visible(tenant: &Tenant, key: &str) -> bool {
    let Some((_, rest)) = key.split_once(":~") else { return true };
    rest.strip_prefix(tenant.as_str()).is_some_and(|rest| rest.starts_with('/'))
}

/// Counts of failures below the threshold are kept this often; openings and closings at once.
const EVERY: Duration = Duration::from_secs(5);

pub async fn restore(shared: &Shared) -> Result<(), Fault> {
    let rows = shared.ports.store.query(tables::breakers_kept()).await.map_err(fault)?;
    let mut snapshots: Vec<Snapshot> = Vec::with_capacity(rows.len());
    for row in &rows {
        // A breaker that cannot be read begins anew, which is what it would do without a store.
        if let Ok(snapshot) = serde_json::from_str(row.text(0).map_err(fault)?) {
            snapshots.push(snapshot);
        }
    }
    shared.kernel.breakers().restore(snapshots);
    Ok(())
}

/// Keeps the store in step until the hub stops.
pub async fn keep(hub: Hub) {
    let kernel = hub.0.kernel.clone();
    let Ok(mut changes) = kernel.bus().subscribe(&Filter::names([CIRCUIT_OPEN, CIRCUIT_CLOSE])) else {
        return;
    };
    let mut kept: Vec<Snapshot> = kernel.breakers().snapshot();
    loop {
        tokio::select! {
            () = hub.0.stop.cancelled() => return,
            _ = changes.next() => {}
            () = hub.0.ports.clock.sleep(EVERY) => {}
        }
        let now = kernel.breakers().snapshot();
        if now == kept {
            continue;
        }
        match write(&hub, &now).await {
            Ok(()) => kept = now,
            Err(fault) => {
                hub.0.log().warn("breakers could not be kept", json!({"error": log::error(&fault)}))
            }
        }
    }
}

async fn write(hub: &Hub, snapshots: &[Snapshot]) -> Result<(), Fault> {
    let mut batch = Batch::new();
    batch.then(tables::breakers_clear());
    for snapshot in snapshots {
        let text = serde_json::to_string(snapshot)
            .map_err(|error| Fault::internal("a breaker cannot be stored").because(error))?;
        batch.then(tables::breaker_keep(&snapshot.key, text));
    }
    hub.0.ports.store.commit(batch).await.map_err(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_has_breakers_of_its_own_and_sees_only_those() {
        let (acme, rival) = (Tenant::parse("acme").unwrap(), Tenant::parse("acm").unwrap());
        assert_eq!(
            key(&Tenant::local(), "@orchestr8/http", Some("a.example")),
            "cb:@orchestr8/http:a.example"
        );
        let own = key(&acme, "@orchestr8/http", Some("a.example"));
        assert_ne!(own, key(&rival, "@orchestr8/http", Some("a.example")));
        assert!(is_visible(&acme, &own) && !is_visible(&rival, &own) && !is_visible(&Tenant::local(), &own));
        assert!(is_visible(&rival, "cb:@orchestr8/http:a.example"));
    }
}
