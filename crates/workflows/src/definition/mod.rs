//! The definition of a workflow.

pub mod model;
pub mod place;
pub mod problems;

pub use place::Place;
pub use problems::{Problem, Problems};
