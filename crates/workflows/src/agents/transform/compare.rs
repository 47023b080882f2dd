//! Which of two JSON values comes first.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// A total order: null, false, true, numbers, texts, then lists and objects, which are all alike.
pub fn order(a: &Value, b: &Value) -> Ordering {
    rank(a).cmp(&rank(b)).then_with(|| like(a, b).unwrap_or(Ordering::Equal))
}

/// The order of two values of one sort; none where they cannot be compared.
pub fn like(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::Number(a), Value::Number(b)) => Some(numbers(a, b)),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Null, Value::Null) => Some(Ordering::Equal),
        (
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_),
            _,
        ) => None,
    }
}

/// Equal in meaning: 1 and 1.0 are.
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => numbers(a, b) == Ordering::Equal,
        (
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_),
            _,
        ) => a == b,
    }
}

fn numbers(a: &Number, b: &Number) -> Ordering {
    if let (Some(a), Some(b)) = (whole(a), whole(b)) {
        return a.cmp(&b);
    }
    a.as_f64().unwrap_or(0.0).total_cmp(&b.as_f64().unwrap_or(0.0))
}

/// The number, if it is whole and exact.
pub fn whole(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) | Value::Object(_) => 4,
    }
}
