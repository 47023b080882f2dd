//! The MCP face: JSON-RPC in, actions of the kernel out, both eras of the protocol, on stdio and Streamable HTTP.

pub mod connection;
pub mod face;
pub mod http;

pub use connection::{Connection, Facts, Incoming, Pending, Phase, Received, Reply, Saved};
pub use face::{Eras, Face, Outlet, Settings, ToolFilter};
