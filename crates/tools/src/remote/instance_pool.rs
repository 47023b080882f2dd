//! The instances of all servers: which exist, how many run, and which one makes room for another.

use std::collections::HashMap;
use std::sync::Arc;

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, FailureCategory, Fault};
use orchestr8_kernel::ports::Clock;
use parking_lot::Mutex;

use super::desk::{Desk, InstanceUse};
use super::limits;
use super::served_server::{ServedServer, ServerKey};

/// How many instances may run at once, without those that run for as long as the program.
#[derive(Debug, Clone, Copy)]
pub struct InstanceLimits {
    pub total: usize,
    pub per_tenant: usize,
}

impl Default for InstanceLimits {
    fn default() -> Self {
        Self { total: limits::INSTANCES, per_tenant: limits::INSTANCES_PER_TENANT }
    }
}

pub struct InstancePool {
    limits: InstanceLimits,
    clock: Arc<dyn Clock>,
    table: Mutex<Table>,
}

type Table = HashMap<(ServerKey, Tenant), Arc<Desk>>;

impl InstancePool {
    pub fn new(limits: InstanceLimits, clock: Arc<dyn Clock>) -> Self {
        Self { limits, clock, table: Mutex::default() }
    }

    /// The instance that serves a tenant. One that does not run is started, within the limits. `spawn` starts the supervisor of a new
    /// instance.
    pub fn acquire(
        &self,
        served: &Arc<ServedServer>,
        caller: &Tenant,
        spawn: impl FnOnce(Arc<Desk>),
    ) -> Result<InstanceUse, Fault> {
        let tenant = served.instance_tenant(caller);
        let key = (served.key.clone(), tenant.clone());
        let mut table = self.table.lock();
        if served.stop.is_cancelled() {
            let what = format!("the MCP server '{}' was removed", served.server.name);
            return Err(Fault::new(Code::NotFound, what).with("server", served.server.name.as_str()));
        }
        if let Some(desk) = table.get(&key).filter(|desk| desk.is_live()) {
            return Ok(InstanceUse::new(desk.clone()));
        }
        self.make_room(&table, served, &tenant)?;
        let known = table.get(&key).cloned();
        let desk = known.unwrap_or_else(|| {
            forget_idle(&mut table);
            let desk = Arc::new(Desk::new(served, tenant, self.clock.clone()));
            table.insert(key, desk.clone());
            spawn(desk.clone());
            desk
        });
        let in_use = InstanceUse::new(desk.clone());
        desk.wake();
        Ok(in_use)
    }

    /// The instance that serves a tenant, if there is one.
    pub fn find(&self, served: &ServedServer, caller: &Tenant) -> Option<Arc<Desk>> {
        let key = (served.key.clone(), served.instance_tenant(caller));
        self.table.lock().get(&key).cloned()
    }

    /// All instances of a server.
    pub fn instances_of(&self, served: &ServedServer) -> Vec<Arc<Desk>> {
        let table = self.table.lock();
        let mut found: Vec<Arc<Desk>> =
            table.values().filter(|desk| desk.served.key == served.key).cloned().collect();
        found.sort_by(|a, b| a.tenant.as_str().cmp(b.tenant.as_str()));
        found
    }

    /// Ends the instances of a server that was removed, and starts no more.
    pub fn remove(&self, served: &ServedServer) {
        let mut table = self.table.lock();
        served.stop.cancel();
        table.retain(|_, desk| !std::ptr::eq(&*desk.served, served));
    }

    /// Makes an instance idle that was unused for so long.
    pub fn retire_unused(&self, desk: &Desk, timeout_ms: u64) -> bool {
        let _table = self.table.lock();
        let now_us = self.clock.elapsed_us();
        let is_unused = |since_us: u64| now_us.saturating_sub(since_us) >= timeout_ms.saturating_mul(1000);
        desk.unused_since_us().is_some_and(is_unused) && desk.retire()
    }

    /// Makes sure that one more instance may run: the one that was not used for the longest time is stopped if it must be.
    fn make_room(&self, table: &Table, served: &ServedServer, tenant: &Tenant) -> Result<(), Fault> {
        if served.is_permanent(tenant) {
            return Ok(());
        }
        let counted = |desk: &&Arc<Desk>| desk.is_live() && !desk.served.is_permanent(&desk.tenant);
        let all: Vec<&Arc<Desk>> = table.values().filter(counted).collect();
        let own: Vec<&Arc<Desk>> = all.iter().copied().filter(|desk| desk.tenant == *tenant).collect();
        for (running, max, whose) in
            [(&own, self.limits.per_tenant, "of this tenant"), (&all, self.limits.total, "of all tenants")]
        {
            // The first round may have stopped one.
            let live = || running.iter().filter(|desk| desk.is_live());
            if live().count() < max {
                continue;
            }
            let oldest =
                live().filter_map(|desk| Some((desk.unused_since_us()?, desk))).min_by_key(|(at, _)| *at);
            if !oldest.is_some_and(|(_, desk)| desk.retire()) {
                let what = format!(
                    "the MCP server '{}' cannot be started: {max} servers {whose} run, which is the limit, and all have calls to do",
                    served.server.name
                );
                return Err(Fault::new(Code::ResourceExhausted, what)
                    .in_category(FailureCategory::Throttled)
                    .with("reason", "instance_limit_exceeded")
                    .with("maxInstances", max)
                    .with("server", served.server.name.as_str()));
            }
        }
        Ok(())
    }
}

/// Keeps the number of remembered instances within its limit: an idle one has nothing but its last errors.
fn forget_idle(table: &mut Table) {
    if table.len() < limits::REMEMBERED_INSTANCES {
        return;
    }
    let idle = table.iter().filter(|(_, desk)| !desk.is_live());
    let oldest =
        idle.filter_map(|(key, desk)| Some((desk.unused_since_us()?, key.clone()))).min_by_key(|(at, _)| *at);
    if let Some((_, key)) = oldest
        && let Some(desk) = table.remove(&key)
    {
        desk.stop.cancel();
    }
}
