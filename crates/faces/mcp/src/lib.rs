//! The MCP face: JSON-RPC in, actions of the kernel out, both eras of the protocol, on stdio and Streamable HTTP.

mod asks;
pub mod audience;
mod body;
mod call;
mod conclude;
pub mod connection;
mod dispatch;
pub mod era;
pub mod face;
mod from_wire;
mod handshake;
pub mod http;
mod listen;
mod lists;
mod methods;
mod outbox;
mod peer;
mod questions;
mod reads;
mod request;
mod results;
mod salvage;
mod seal;
pub mod serve_stdio;
pub mod tables;
mod task_calls;
mod tasks;
mod to_wire;
pub mod wire;

pub use call::ASKS_FIRST;
pub use connection::{Connection, Facts, Incoming, Pending, Phase, Received, Reply, Saved};
pub use face::{Eras, Face, Outlet, Settings};
pub use orchestr8_kernel::registry::ToolFilter;
pub use salvage::Salvage;
pub use to_wire::PROTOCOL_ERROR;
