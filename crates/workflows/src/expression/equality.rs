//! When two JSON values are equal, and which of two numbers comes first.

use std::cmp::Ordering;

use serde_json::Value;

use super::{Fuel, OutOfFuel};

/// As JSON values, but 1 and 1.0 are the same number. Pays for each pair of values that is looked at.
pub fn is_equal_within(left: &Value, right: &Value, fuel: &mut Fuel) -> Result<bool, OutOfFuel> {
    fuel.spend(1)?;
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => Ok(order(a, b) == Some(Ordering::Equal)),
        (Value::String(a), Value::String(b)) if a.len() == b.len() => {
            fuel.spend_text(a.len())?;
            Ok(a == b)
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (a, b) in a.iter().zip(b) {
                if !is_equal_within(a, b, fuel)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Object(a), Value::Object(b)) if a.len() == b.len() => {
            for (name, a) in a {
                fuel.spend_text(name.len())?;
                let Some(b) = b.get(name) else { return Ok(false) };
                if !is_equal_within(a, b, fuel)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::String(_), Value::String(_))
        | (Value::Array(_), Value::Array(_))
        | (Value::Object(_), Value::Object(_)) => Ok(false),
        _ => Ok(left == right),
    }
}

/// The same for values of a definition, whose size is bounded.
pub fn is_equal(left: &Value, right: &Value) -> bool {
    is_equal_within(left, right, &mut Fuel::evaluation()).unwrap_or(false)
}

/// Whole numbers compare exactly, others as doubles.
pub(super) fn order(left: &serde_json::Number, right: &serde_json::Number) -> Option<Ordering> {
    let whole = |number: &serde_json::Number| {
        number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
    };
    match (whole(left), whole(right)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}
