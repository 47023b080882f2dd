//! Counts what a transform makes, so that a short list of operations cannot make more than memory holds.

use orchestr8_contract::{Code, Fault};
use serde_json::Value;

use crate::limits::TRANSFORMED_BYTES;

pub struct Meter {
    left: usize,
}

impl Meter {
    pub fn new() -> Self {
        Self { left: TRANSFORMED_BYTES }
    }

    /// Counts what an operation gave.
    pub fn made(&mut self, value: &Value) -> Result<(), Fault> {
        self.spend(weight(value))
    }

    /// Counts before it is made.
    pub fn spend(&mut self, bytes: usize) -> Result<(), Fault> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(Fault::new(
                Code::PayloadTooLarge,
                format!("the operations make more than {TRANSFORMED_BYTES} bytes together"),
            )),
        }
    }
}

/// About what a value takes in memory.
pub fn weight(value: &Value) -> usize {
    const VALUE: usize = 32;
    VALUE
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(weight).sum(),
            Value::Object(map) => map.iter().map(|(name, value)| name.len() + VALUE + weight(value)).sum(),
        }
}
