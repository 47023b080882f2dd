//! What clients may ask of agents: one file per action, one line per action here.

mod get_state;
mod list;
mod send_message;

use orchestr8_contract::id::AgentId;
use orchestr8_contract::{Fault, limits};
use orchestr8_kernel::schema;
use orchestr8_kernel::{Action, Args};

use crate::coordinator::Coordinator;

/// What an installation sets for agents.
#[derive(Debug, Clone)]
pub struct Settings {
    /// A state beyond this many bytes is shown by its names only (`tools.maxStateBytes`).
    pub state_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { state_bytes: limits::STATE_BYTES }
    }
}

/// Every action of this crate.
pub fn all(coordinator: &Coordinator, settings: &Settings) -> Result<Vec<Action>, schema::Error> {
    Ok(vec![
        list::action(coordinator.clone())?,
        get_state::action(coordinator.clone(), settings.state_bytes)?,
        send_message::action(coordinator.clone())?,
    ])
}

/// The agent an argument names.
fn agent_id(args: &Args, name: &str) -> Result<AgentId, Fault> {
    AgentId::parse(args.text(name).unwrap_or_default())
        .map_err(|wrong| Fault::invalid(format!("/{name}: {wrong}")).with("path", format!("/{name}")))
}
