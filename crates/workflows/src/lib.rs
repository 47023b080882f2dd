//! Durable workflows (seed 004): definitions, expressions, the engine, its agents, and the actions over them.

pub mod agents;
pub mod definition;
pub mod expression;
pub mod limits;
