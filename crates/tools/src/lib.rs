//! Built-in tools, the tools of admins, the fixtures of the conformance suites, and the tools of other MCP servers.
//!
//! One file per action, one line per action in the list below.

mod admin;
pub mod conformance;
mod echo;
mod health;
mod listing;
mod tool_search;

pub mod remote;
pub mod tables;

#[cfg(test)]
mod tests;

use orchestr8_contract::access::FOREIGN_TOOLS;
use orchestr8_contract::limits;
use orchestr8_kernel::{Action, schema};

pub use admin::Mode as AdminMode;
pub use listing::{announce, changed};

/// What an installation sets for its tools.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What `health` calls the server.
    pub server_name: String,
    pub server_version: String,
    /// `tools.maxStateBytes`, which `health` reports.
    pub state_bytes: usize,
    /// `tools.searchAbove`: with more tools than this, `tool_search` is listed too.
    pub search_above: usize,
    /// Who may register tools at run time. None, unless both `tools.adminRegistrationEnabled` and
    /// `security.dynamicRegistrationEnabled` are on: then there are no such tools at all.
    pub admin: Option<AdminMode>,
    /// Whether the fixtures of the conformance suites are there too.
    pub conformance: bool,
}

impl Settings {
    pub fn new(server_name: &str, server_version: &str) -> Self {
        Self {
            server_name: server_name.to_owned(),
            server_version: server_version.to_owned(),
            state_bytes: limits::STATE_BYTES,
            search_above: tool_search::SEARCH_ABOVE,
            admin: None,
            conformance: false,
        }
    }
}

/// Every action of this crate but those of other servers. Once they are registered, call `changed`.
pub fn all(settings: &Settings) -> Result<Vec<Action>, schema::Error> {
    let mut actions =
        vec![echo::action("echo")?, health::action("health", settings)?, tool_search::action()?];
    if let Some(mode) = settings.admin {
        actions.extend(admin::all(mode, settings)?);
    }
    if settings.conformance {
        actions.extend(conformance::all()?.into_iter().map(|action| action.allowed_to(FOREIGN_TOOLS)));
    }
    Ok(actions)
}
