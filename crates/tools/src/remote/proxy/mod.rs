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

use orchestr8_contract::id::Tenant;
use orchestr8_kernel::{Action, schema};

use super::desk::Desk;
use super::limits::GRACE_MS;

/// The instances of other servers, by tenant and name.
#[derive(Clone)]
pub struct Upstreams {
    desks: Arc<[Arc<Desk>]>,
}

impl Upstreams {
    pub fn new(desks: &[Arc<Desk>]) -> Self {
        Self { desks: desks.into() }
    }

    /// The instance of a server that a tenant has.
    pub fn instance(&self, _tenant: &Tenant, server: &str) -> Option<Arc<Desk>> {
        self.desks.iter().find(|desk| desk.server.name == server).cloned()
    }

    /// All instances of a tenant, in order of name.
    pub fn all(&self, _tenant: &Tenant) -> Vec<Arc<Desk>> {
        let mut all = self.desks.to_vec();
        all.sort_by(|a, b| a.server.name.cmp(&b.server.name));
        all
    }
}

/// The actions by which faces reach what other servers offer beside tools. `timeout_ms` is the limit where a server has none of
/// its own.
pub fn actions(upstreams: &Upstreams, timeout_ms: u64) -> Result<Vec<Action>, schema::Error> {
    let own = upstreams.desks.iter().filter_map(|desk| desk.server.timeout_ms);
    // Each server's own limit is the one that counts.
    let longest_ms = own.chain([timeout_ms]).max().unwrap_or(timeout_ms).saturating_add(GRACE_MS);
    Ok(vec![
        list::action(upstreams.clone())?,
        resources::read_action(upstreams.clone(), longest_ms)?,
        resources::follow_action(upstreams.clone())?,
        prompts::get_action(upstreams.clone(), longest_ms)?,
        prompts::complete_action(upstreams.clone(), longest_ms)?,
    ])
}
