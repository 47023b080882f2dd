//! The definition of a workflow.

pub mod model;
