//! Reliable messages between agents (AACP): numbered per pair, acknowledged, sent again, never worked on twice.
//!
//! ```text
//! action -> Hub -> post: gather, desk (pure: window, ledger) -> one commit (tail) -> whoever waits, deliver
//! ```
//!
//! What is in memory is a part of what is in the store: dropped after a failed commit, and read anew.

pub(crate) mod audit;
mod callback;
mod delivery;
pub(crate) mod desk;
mod envelope;
mod hub;
mod ledger;
mod members;
mod needs;
mod post;
mod queue;
pub(crate) mod record;
mod registry;
pub(crate) mod rows;
mod runs;
mod tail;
mod telling;
mod upkeep;
mod window;

#[cfg(test)]
mod tests;

pub use envelope::{EVERYONE, Envelope, Kind, MEMBERS, Target, check_ids};
pub(crate) use hub::topic;
pub use hub::{Hub, MESSAGE_COMPLETED, MESSAGE_FAILED, MESSAGE_PLACED, MESSAGE_RECEIVED, Settings};
pub use ledger::{Act, Answer, Backoff, Entry, Fact, Moment, RetryPolicy, Status, next};
pub use registry::{Agents, Condition, Registered, Registration, Secret, check_reserved};
pub use window::{Acked, Arrival, Receiving, Sending};
