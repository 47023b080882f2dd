//! Everything of other servers that is no tool: resources, templates, prompts, completions, updates and log messages.
//!
//! Each instance of a server has a catalog, which a relay keeps up to date while it is connected. Faces reach all of it through
//! the actions below, with the tenant of their caller.

pub mod address;
pub mod catalog;
mod exchange;
mod list;
mod prompts;
pub mod relay;
mod resources;

use std::sync::Arc;

use orchestr8_contract::Fault;
use orchestr8_contract::id::Tenant;
use orchestr8_kernel::{Action, schema};

use super::desk::{Desk, InstanceUse};
use super::limits::{ENTRY_TIMEOUT_MS, GRACE_MS};
use super::servers::ServerRegistry;

/// What the actions below use of the registry: the instances of the tenant of their caller.
#[derive(Clone)]
pub struct Upstreams(Arc<ServerRegistry>);

impl Upstreams {
    pub fn new(registry: &Arc<ServerRegistry>) -> Self {
        Self(registry.clone())
    }

    /// The instance of a server that serves a tenant, in use until the answer is dropped. One that does not run is started. None:
    /// the tenant has no such server.
    pub fn instance(&self, tenant: &Tenant, server: &str) -> Option<Result<InstanceUse, Fault>> {
        let served = self.0.find(tenant, server).ok()?;
        Some(self.0.instance(&served, tenant))
    }

    /// The instances that serve a tenant, in order of name. Those that do not run are started, and listed once they have told what
    /// they offer.
    pub fn all(&self, tenant: &Tenant) -> Vec<Arc<Desk>> {
        let uses = self.0.visible(tenant).into_iter().map(|served| {
            // At the limit of instances it is listed as it was when it last ran.
            let in_use = self.0.instance(&served, tenant).ok();
            in_use.map(|in_use| in_use.desk().clone()).or_else(|| self.0.known_instance(&served, tenant))
        });
        uses.flatten().collect()
    }
}

/// The actions by which faces reach what other servers offer beside tools.
pub fn actions(registry: &Arc<ServerRegistry>) -> Result<Vec<Action>, schema::Error> {
    let upstreams = Upstreams::new(registry);
    // Each server's own limit is the one that counts.
    let longest_ms = ENTRY_TIMEOUT_MS.saturating_add(GRACE_MS);
    Ok(vec![
        list::action(upstreams.clone())?,
        resources::read_action(upstreams.clone(), longest_ms)?,
        resources::follow_action(upstreams.clone())?,
        prompts::get_action(upstreams.clone(), longest_ms)?,
        prompts::complete_action(upstreams, longest_ms)?,
    ])
}
