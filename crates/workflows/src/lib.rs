//! Durable workflows (seed 004): definitions, expressions, the engine, its agents, and the actions over them.

mod actions;
pub mod agents;
mod authors;
pub mod definition;
pub mod engine;
pub mod expression;
pub mod journal;
pub mod limits;
pub mod merkle;
mod runtime;
mod schedules;
mod stored;
pub mod tables;

pub use actions::all;
pub use runtime::{AllowedEnv, Depth, Hub, Settings};
pub use schedules::Spec as Schedule;
