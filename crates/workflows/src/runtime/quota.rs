//! How many executions of each tenant run or wait for their turn, so that one tenant cannot fill the queue of all.

use std::collections::HashMap;
use std::sync::Arc;

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};
use parking_lot::Mutex;

use super::trees::TreeLimits;

pub(crate) struct ExecutionQuota {
    table: Arc<Mutex<HashMap<Tenant, usize>>>,
    trees: TreeLimits,
}

/// One execution that counts; dropped with its last handle, it no longer does. An execution that only waits for a timer, a
/// message or a person has none.
pub struct ExecutionPermit {
    table: Arc<Mutex<HashMap<Tenant, usize>>>,
    tenant: Tenant,
    trees: TreeLimits,
}

impl ExecutionQuota {
    /// What it counts down may let children of these trees begin.
    pub fn new(trees: TreeLimits) -> Self {
        Self { table: Arc::default(), trees }
    }

    /// Whether this tenant has as many executions as it may have.
    pub fn is_full(&self, tenant: &Tenant, limit: usize) -> bool {
        self.table.lock().get(tenant).is_some_and(|count| *count >= limit)
    }

    /// Counts one more. With a limit it is refused beyond it; what an execution begins and waits for has none: refusing it
    /// would fail what was accepted, so the limits of its tree hold it back.
    pub fn take(&self, tenant: &Tenant, limit: Option<usize>) -> Result<Arc<ExecutionPermit>, Fault> {
        let mut table = self.table.lock();
        let count = table.entry(tenant.clone()).or_default();
        if limit.is_some_and(|limit| *count >= limit) {
            let count = *count;
            return Err(Fault::new(
                Code::ResourceExhausted,
                format!("{count} executions of this tenant run or wait for their turn; send again later"),
            )
            .with("reason", "tenant_quota")
            .with("executions", count));
        }
        *count += 1;
        let (table, trees) = (self.table.clone(), self.trees.clone());
        Ok(Arc::new(ExecutionPermit { table, tenant: tenant.clone(), trees }))
    }
}

impl Drop for ExecutionPermit {
    fn drop(&mut self) {
        let mut table = self.table.lock();
        if let Some(count) = table.get_mut(&self.tenant) {
            *count -= 1;
            if *count == 0 {
                table.remove(&self.tenant);
            }
        }
        drop(table);
        self.trees.admit_throttled(&self.tenant);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_has_a_limit_of_its_own_and_places_come_back() {
        let quota = ExecutionQuota::new(TreeLimits::new(1, 1));
        let (acme, rival) = (Tenant::parse("acme").unwrap(), Tenant::parse("rival").unwrap());
        let first = quota.take(&acme, Some(1)).unwrap();
        let refused = quota.take(&acme, Some(1)).map(drop).unwrap_err();
        assert_eq!(refused.code, Code::ResourceExhausted);
        let child = quota.take(&acme, None).unwrap();
        assert!(quota.take(&rival, Some(1)).is_ok());
        drop((first, child));
        assert!(quota.take(&acme, Some(1)).is_ok());
        assert!(quota.table.lock().is_empty());
    }
}
