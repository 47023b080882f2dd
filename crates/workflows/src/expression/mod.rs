//! Expressions in workflows (WF-19.5): `${steps.<id>.output.<path> ?? default}` and its siblings.
//!
//! A template or condition is parsed once, with its definition; at run time it only looks values up. There is no evaluation
//! of code, no function and no access to anything but the outputs, variables and names a scope offers.

mod condition;
mod equality;
mod fuel;
mod look_up;
mod reader;
mod reference;
mod template;
mod text;

#[cfg(test)]
mod fuel_tests;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::Value;

pub use condition::Condition;
pub use equality::{is_equal, is_equal_within};
pub use fuel::{EvaluationCost, Fuel, OutOfFuel};
pub use reference::{Literal, Part, Reference, Root};
pub use template::Template;

/// What expressions may see when they are resolved.
pub trait Scope {
    fn output(&self, step: &str) -> Found<'_>;
    /// The error of a step that failed.
    fn error(&self, step: &str) -> Option<Value>;
    fn variable(&self, name: &str) -> Option<&Value>;
    fn env(&self, name: &str) -> Option<Cow<'_, str>>;
    fn secret(&self, name: &str) -> Option<Cow<'_, str>>;
    /// `item`, `index`, `iteration`, `last`, `output`, `input`, `execution`, `failure`, `schedule`, as far as there are any here. What must be
    /// evaluated for it uses the same fuel.
    fn local(&self, name: &str, fuel: &mut Fuel) -> Option<Cow<'_, Value>>;
}

/// The output of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Found<'a> {
    Output(&'a Value),
    /// The step exists and has no output: it has not run yet, failed, or was skipped.
    NotCompleted,
    /// There is no such step.
    Unknown,
}

/// Names that reach behind an object in other languages: refused everywhere, so that no consumer is ever surprised.
pub const DANGEROUS: [&str; 5] = ["__proto__", "prototype", "constructor", "toString", "valueOf"];

/// What a name that stands for itself may be.
pub const LOCALS: [&str; 12] = [
    "item",
    "index",
    "iteration",
    "last",
    "output",
    "input",
    "outcome",
    "execution",
    "failure",
    SCHEDULE,
    // In triggers only.
    "hook",
    "event",
];

/// The schedule that started the execution, and the moment for which it did.
pub const SCHEDULE: &str = "schedule";
