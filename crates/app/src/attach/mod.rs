//! Several processes on one data directory. One owns it; the others attach to it over a unix socket, and each speaks MCP with it
//! as itself.
//!
//! ```text
//! editor <-stdio-> attached process (LineProxy) <-unix socket-> owner (AttachListener -> face of its own -> kernel, store)
//! ```
//!
//! The owner writes the place of its socket and a secret beside the data file. Both sides prove that they know the secret, and the
//! kernel says that they are the same user. When the owner ends, one of the attached processes takes over. See ADR 56.

mod client;
mod handshake;
mod lines;
mod listener;
mod proxy;
mod record;
mod replay;

pub use client::{Attached, Unattached, attach, owner_line};
pub use handshake::{GovernedRole, Hello};
pub use listener::{AttachListener, principal};
pub use proxy::LineProxy;

use std::time::Duration;

/// The version of what both sides say before MCP begins. Programs of another version attach too, as long as this is the same.
const PROTOCOL: u64 = 1;

/// Processes attached at once: each costs its owner two threads and a few descriptors.
const CONNECTIONS: usize = 64;

/// How long each side waits for a line of the handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// Bytes of one line of the handshake: instructions and a tool filter have room in it.
const HANDSHAKE_BYTES: u64 = 1 << 20;

/// Settings that differ and are named; more are only counted.
const NAMED_SETTINGS: usize = 20;
