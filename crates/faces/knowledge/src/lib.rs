//! The knowledge face: signed envelopes for agents and plain REST for people, over the actions of knowledge.
//!
//! ```text
//! request -> Call -> authenticate (who) -> Envelope::read -> order, artifacts -> one action -> to_wire -> response
//! ```
//!
//! An envelope names an action of the registry; the face checks who sends it, in which order and how late, and leaves the
//! rest to the kernel. `to_wire.rs` has the words of this face for every error, `security` the three profiles.

mod actions;
mod answer;
mod artifact;
mod call;
mod calls;
mod deliver;
mod endpoints;
mod envelope;
mod face;
mod failure;
mod from_wire;
mod headers;
pub mod limits;
mod live;
mod metrics;
mod openapi;
mod order;
mod pubsub;
mod rates;
mod routes;
pub mod security;
mod settings;
mod slo;
pub mod tables;
mod tend;
mod to_wire;
mod tool_message;
mod versions;
mod voice;
mod wire;

pub use deliver::{Delivered, Envelopes};
pub use envelope::check as check_envelope;
pub use metrics::{Labels, Metrics};
pub use openapi::document;
pub use pubsub::{PubSub, consume};
pub use routes::{OWN_CREDENTIALS, router};
pub use settings::{Security, Settings};
pub use slo::Objectives;
pub use tend::{DEPRECATION, tend};
pub use tool_message::tool_message;
pub use voice::voice;
