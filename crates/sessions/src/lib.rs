//! Agent sessions (seed 001): message trees, the agent loop, and the commands clients send. Start reading at `commands/mod.rs`.

pub mod access;
pub mod commands;
mod compact;
pub mod complete;
pub mod files;
mod hub;
pub mod limits;
pub mod news;
mod person;
pub mod record;
mod recover;
mod roots;
pub mod run;
mod session;
pub mod shell;
mod show;
mod speak;
pub mod tables;
pub mod tools;
pub mod tree;
mod turn;

use orchestr8_kernel::{Action, schema};

pub use hub::{Hub, Settings};
pub use recover::Recovery;
pub use roots::SessionRoots;

/// Every action of this crate: the commands of the protocol, what other domains ask for, and the tools of MCP.
pub fn all(hub: &Hub) -> Result<Vec<Action>, schema::Error> {
    let mut actions = commands::all(hub)?;
    actions.extend([complete::action(hub)?, run::action(hub)?]);
    actions.extend(tools::actions(hub)?);
    Ok(actions)
}
