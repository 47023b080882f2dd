//! The workflows face: REST, server-sent events and WebSocket over the actions of workflows.
//!
//! ```text
//! request -> Call (who, correlation, parameters) -> endpoint: from_wire -> one action -> to_wire -> response
//! ```
//!
//! Everything is served under both `/v1` and `/api/v1`, on the edge like every face. An endpoint translates to one action of
//! the kernel and knows nothing of how it works; `to_wire.rs` has the words of this face for every error.

mod actions;
mod answer;
mod call;
mod endpoints;
mod etag;
mod face;
mod failure;
mod headers;
mod live;
mod openapi;
mod routes;
mod settings;
mod to_wire;
mod voice;
mod wire;

pub use openapi::document;
pub use routes::{APPROVAL_LINKS, HOOKS, PREFIXES, router};
pub use settings::Settings;
pub use voice::voice;
