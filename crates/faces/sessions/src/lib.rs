//! The sessions face: commands of the session protocol in, actions of the kernel out, on WebSocket and on stdio.
//!
//! ```text
//! frame -> strict -> from_wire (Command) -> pursuit (kernel.start) -> to_wire (Response) -> outbox -> client
//!                                             | Follow: accepted, started
//!                                             v
//!                                          audience: everybody of the tenant
//! ```
//!
//! What a command is called, takes and promises is read from the action `session.<command>` in the kernel's registry;
//! this crate only has the words for it.

mod audience;
mod buckets;
mod catch_up;
mod commands;
mod connection;
mod face;
mod following;
mod from_wire;
pub mod limits;
mod lines;
mod metrics;
mod outbox;
mod pursuit;
mod rules;
mod serve_stdio;
mod serve_websocket;
mod settings;
mod strict;
mod to_wire;
mod wire;
mod wording;

pub use commands::Commands;
pub use face::Face;
pub use from_wire::check as check_command;
pub use serve_stdio::Ended;
pub use settings::Settings;
