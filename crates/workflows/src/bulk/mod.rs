//! Operations on many executions: what is stored for them.

pub mod tables;
