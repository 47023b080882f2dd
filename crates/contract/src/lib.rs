//! Shared words of orchestr8: ids, errors, content, events and limits. Pure data, no IO.

pub mod access;
pub mod api_token;
pub mod canonical;
pub mod chain;
pub mod content;
pub mod envelope;
pub mod error;
pub mod event;
mod failure_category;
pub mod id;
pub mod json;
pub mod limits;
pub mod merkle;
pub mod place;
pub mod topic;
pub mod trace;
pub mod visible;

#[cfg(test)]
mod properties;

pub use access::{AccessRole, AllowedRoles, RoleSet};
pub use content::{Content, Output};
pub use envelope::Envelope;
pub use error::{Code, Fault, Kind};
pub use event::{Event, Priority};
pub use failure_category::FailureCategory;
pub use trace::TraceParent;
