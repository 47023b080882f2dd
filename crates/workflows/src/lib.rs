//! Durable workflows (seed 004): definitions, expressions, the engine, its agents, and the actions over them.

mod actions;
pub mod agents;
mod authors;
pub mod bulk;
pub mod definition;
pub mod engine;
pub mod expression;
pub mod journal;
mod keyed_events;
pub mod limits;
pub mod merkle;
mod notifications;
mod runtime;
mod schedules;
mod stored;
pub mod tables;
pub mod tags;
mod triggers;

pub use actions::all;
/// The pure parts of the runtime that a driver of the engine needs: the reference model has one in memory.
pub use actions::{generations_of_fork, kept_by_fork};
pub use runtime::{AllowedEnv, Depth, Hub, Settings, child_ended, child_undone};
pub use schedules::Spec as Schedule;
