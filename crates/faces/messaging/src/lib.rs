//! The messaging face: messages between agents (AACP) over HTTP and server-sent events.
//!
//! ```text
//! request -> Call (who, correlation, body) -> endpoint -> one action -> to_wire -> response
//! ```
//!
//! The body of a message goes to its action as it came: the domain reads both shapes of envelopes, for every face alike.

mod actions;
mod answer;
mod call;
mod endpoints;
mod failure;
mod inbox;
mod openapi;
mod routes;
mod settings;
mod to_wire;
mod wire;

pub use openapi::document;
pub use routes::{PREFIX, router};
pub use settings::Settings;
