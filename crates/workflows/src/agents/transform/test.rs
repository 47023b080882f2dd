//! The test of a `filter`: what of an item is compared with what, and how.

use std::cmp::Ordering;

use orchestr8_contract::Fault;
use serde_json::Value;

use super::super::members::wrong;
use super::compare;
use super::operation::{Path, path};

#[derive(Debug, Clone, PartialEq)]
pub struct Test {
    path: Path,
    how: How,
    value: Value,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    /// Not null, false, 0, an empty text, list or object.
    Holds,
    Exists,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    More,
    MoreOrEqual,
    /// A text has the text in it, a list the item.
    Contains,
}

impl Test {
    /// A path, whose value must hold; or `{path, is, value}`.
    pub fn read(argument: &Value, place: &str) -> Result<Self, Fault> {
        let Value::Object(map) = argument else {
            return Ok(Self { path: path(argument, place)?, how: How::Holds, value: Value::Null });
        };
        if map.keys().any(|name| !matches!(name.as_str(), "path" | "is" | "value")) {
            return Err(Fault::invalid(format!("`{place}` is an object of `path`, `is` and `value`"))
                .with("path", place));
        }
        let path = match map.get("path") {
            Some(written) => path(written, &format!("{place}.path"))?,
            None => Path::default(),
        };
        let how = match map.get("is") {
            None => How::Equal,
            Some(word) => How::read(word, place)?,
        };
        let value = map.get("value").cloned();
        if value.is_none() && !matches!(how, How::Holds | How::Exists) {
            return Err(
                Fault::invalid(format!("`{place}` needs a `value` to compare with")).with("path", place)
            );
        }
        Ok(Self { path, how, value: value.unwrap_or_default() })
    }

    pub fn passes(&self, item: &Value) -> bool {
        let found = self.path.of(item);
        let value = found.unwrap_or(&Value::Null);
        let order = || compare::like(value, &self.value);
        match self.how {
            How::Holds => holds(value),
            How::Exists => found.is_some_and(|value| !value.is_null()),
            How::Equal => compare::equal(value, &self.value),
            How::NotEqual => !compare::equal(value, &self.value),
            How::Less => order() == Some(Ordering::Less),
            How::LessOrEqual => matches!(order(), Some(Ordering::Less | Ordering::Equal)),
            How::More => order() == Some(Ordering::Greater),
            How::MoreOrEqual => matches!(order(), Some(Ordering::Greater | Ordering::Equal)),
            How::Contains => self.is_in(value),
        }
    }

    fn is_in(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.value.as_str().is_some_and(|part| text.contains(part)),
            Value::Array(items) => items.iter().any(|item| compare::equal(item, &self.value)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
        }
    }
}

impl How {
    fn read(word: &Value, place: &str) -> Result<Self, Fault> {
        Ok(match word.as_str() {
            Some("true") => How::Holds,
            Some("exists") => How::Exists,
            Some("==") => How::Equal,
            Some("!=") => How::NotEqual,
            Some("<") => How::Less,
            Some("<=") => How::LessOrEqual,
            Some(">") => How::More,
            Some(">=") => How::MoreOrEqual,
            Some("contains") => How::Contains,
            Some(_) | None => {
                let wanted = "one of ==, !=, <, <=, >, >=, contains, exists, true";
                return Err(wrong(&format!("{place}.is"), wanted, word));
            }
        })
    }
}

/// As conditions of steps have it.
fn holds(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(holds) => *holds,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}
