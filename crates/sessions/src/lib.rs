//! Agent sessions (seed 001): message trees, the agent loop, and the commands clients send. Start reading at `commands/mod.rs`.

pub mod commands;
mod compact;
mod hub;
pub mod limits;
pub mod news;
mod person;
pub mod record;
mod recover;
mod session;
pub mod tables;
pub mod tree;
mod turn;

pub use hub::{Hub, Settings};
pub use recover::Recovery;
