//! Agents: who they are, how messages reach them one at a time, and what clients may ask of them.
//!
//! An agent inside the process is a piece of code with a state of its own. Each has a mailbox, and takes one message after the
//! other from it; different agents work at the same time (seed 000, "Agent Concurrency Model", MCP-PROP-10). `aacp` brings
//! messages to them and to agents elsewhere, durably.

pub mod aacp;
mod actions;
mod agent;
mod coordinator;
mod echo;
pub mod limits;
mod mailbox;
mod state;
pub mod tables;

#[cfg(test)]
mod tests;

pub use actions::{Settings, all, of_messages};
pub use agent::{Agent, Message, Surroundings};
pub use coordinator::{Coordinator, STATE_CHANGED};
pub use echo::Echo;
pub use state::State;
