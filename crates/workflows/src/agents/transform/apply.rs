//! Applies operations to a value. Each takes time in proportion to the value, sorting n log n.

use std::collections::HashSet;

use orchestr8_contract::json::kind;
use orchestr8_contract::{Fault, canonical};
use serde_json::{Map, Number, Value};

use super::compare;
use super::meter::{Meter, weight};
use super::operation::{Operation, Path, Step};

/// Applies all of them, each to what the one before gave.
pub fn all(steps: &[Step], value: Value, meter: &mut Meter) -> Result<Value, Fault> {
    steps.iter().try_fold(value, |value, step| {
        let made = one(step, value, meter)?;
        meter.made(&made)?;
        Ok(made)
    })
}

fn one(step: &Step, value: Value, meter: &mut Meter) -> Result<Value, Fault> {
    match &step.operation {
        Operation::Pick(names) => objects(step, value, |map| {
            map.into_iter().filter(|(name, _)| names.binary_search(name).is_ok()).collect()
        }),
        Operation::Omit(names) => objects(step, value, |map| {
            map.into_iter().filter(|(name, _)| names.binary_search(name).is_err()).collect()
        }),
        Operation::Merge(more) => merge(step, value, more, meter),
        Operation::MapPath(path) => {
            Ok(list(step, value)?.into_iter().map(|item| path.out_of(item)).collect())
        }
        Operation::MapEach(steps) => {
            list(step, value)?.into_iter().map(|item| all(steps, item, meter)).collect()
        }
        Operation::Filter(test) => {
            Ok(list(step, value)?.into_iter().filter(|item| test.passes(item)).collect())
        }
        Operation::Sort { by, descending } => sort(step, value, by, *descending),
        Operation::Group(by) => group(step, value, by),
        Operation::Join(between) => join(step, value, between),
        Operation::Split(between) => {
            Ok(text(step, value)?.split(between.as_str()).map(Value::from).collect())
        }
        Operation::Count => count(step, &value),
        Operation::Flatten => Ok(flatten(list(step, value)?)),
        Operation::Unique(by) => unique(step, value, by),
        Operation::Sum(of) => sum(step, value, of),
        Operation::Min(of) => Ok(list(step, value)?
            .into_iter()
            .map(|item| of.out_of(item))
            .filter(|item| !item.is_null())
            .min_by(compare::order)
            .unwrap_or_default()),
        Operation::Max(of) => Ok(list(step, value)?
            .into_iter()
            .map(|item| of.out_of(item))
            .filter(|item| !item.is_null())
            .max_by(compare::order)
            .unwrap_or_default()),
        Operation::ParseJson => parse(step, &text(step, value)?),
        Operation::Stringify => Ok(Value::String(value.to_string())),
    }
}

/// Changes an object, or each object of a list.
fn objects(
    step: &Step,
    value: Value,
    mut change: impl FnMut(Map<String, Value>) -> Map<String, Value>,
) -> Result<Value, Fault> {
    match value {
        Value::Object(map) => Ok(Value::Object(change(map))),
        Value::Array(items) => items
            .into_iter()
            .map(|item| match item {
                Value::Object(map) => Ok(Value::Object(change(map))),
                other => Err(unfit(step, "objects", &other)),
            })
            .collect(),
        other => Err(unfit(step, "an object or a list of objects", &other)),
    }
}

fn merge(step: &Step, value: Value, more: &Map<String, Value>, meter: &mut Meter) -> Result<Value, Fault> {
    let times = value.as_array().map_or(1, Vec::len);
    let bytes: usize = more.iter().map(|(name, value)| name.len() + weight(value)).sum();
    meter.spend(bytes.saturating_mul(times))?;
    objects(step, value, |mut map| {
        map.extend(more.iter().map(|(name, value)| (name.clone(), value.clone())));
        map
    })
}

fn sort(step: &Step, value: Value, by: &Path, descending: bool) -> Result<Value, Fault> {
    let mut items = list(step, value)?;
    let at = |item: &Value| by.of(item).cloned().unwrap_or_default();
    let plain = |value: Value| match value {
        // Lists and objects are all alike, so there is no need to carry them about.
        Value::Array(_) => Value::Array(Vec::new()),
        Value::Object(_) => Value::Array(Vec::new()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    };
    items.sort_by_cached_key(|item| Key { value: plain(at(item)), descending });
    Ok(Value::Array(items))
}

/// What an item is sorted by.
struct Key {
    value: Value,
    descending: bool,
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let order = compare::order(&self.value, &other.value);
        if self.descending { order.reverse() } else { order }
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}

fn group(step: &Step, value: Value, by: &Path) -> Result<Value, Fault> {
    let mut groups: Map<String, Value> = Map::new();
    for item in list(step, value)? {
        let name = plain_text(by.of(&item).unwrap_or(&Value::Null));
        match groups.entry(name).or_insert_with(|| Value::Array(Vec::new())) {
            Value::Array(items) => items.push(item),
            // Only lists are put in.
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {}
        }
    }
    Ok(Value::Object(groups))
}

fn join(step: &Step, value: Value, between: &str) -> Result<Value, Fault> {
    let texts: Vec<String> = list(step, value)?.iter().map(plain_text).collect();
    Ok(Value::String(texts.join(between)))
}

fn count(step: &Step, value: &Value) -> Result<Value, Fault> {
    match value {
        Value::Array(items) => Ok(items.len().into()),
        Value::Object(map) => Ok(map.len().into()),
        Value::String(text) => Ok(text.chars().count().into()),
        Value::Null => Ok(0.into()),
        other @ (Value::Bool(_) | Value::Number(_)) => Err(unfit(step, "a list, an object or a text", other)),
    }
}

fn flatten(items: Vec<Value>) -> Value {
    let mut flat = Vec::with_capacity(items.len());
    for item in items {
        match item {
            Value::Array(inner) => flat.extend(inner),
            other => flat.push(other),
        }
    }
    Value::Array(flat)
}

fn unique(step: &Step, value: Value, by: &Path) -> Result<Value, Fault> {
    let mut seen = HashSet::new();
    let mut items = list(step, value)?;
    items.retain(|item| seen.insert(canonical::text(by.of(item).unwrap_or(&Value::Null))));
    Ok(Value::Array(items))
}

/// Exact for whole numbers, as far as JSON numbers are.
fn sum(step: &Step, value: Value, of: &Path) -> Result<Value, Fault> {
    let (mut whole, mut broken, mut exact) = (0_i128, 0.0_f64, true);
    for item in list(step, value)? {
        match of.of(&item) {
            None | Some(Value::Null) => {}
            Some(Value::Number(number)) => {
                broken += number.as_f64().unwrap_or(0.0);
                match compare::whole(number) {
                    Some(number) => whole += number,
                    None => exact = false,
                }
            }
            Some(other) => return Err(unfit(step, "numbers", other)),
        }
    }
    let number = match exact {
        true => {
            i64::try_from(whole).map(Number::from).or_else(|_| u64::try_from(whole).map(Number::from)).ok()
        }
        false => None,
    };
    let number = number.or_else(|| Number::from_f64(broken));
    number.map(Value::Number).ok_or_else(|| Fault::invalid("the sum is too large for a number"))
}

fn parse(step: &Step, text: &str) -> Result<Value, Fault> {
    // The message of the parser names line and column, and nothing of the text.
    serde_json::from_str(text).map_err(|wrong| {
        Fault::invalid(format!("`{}`: the text is not JSON: {wrong}", step.place))
            .with("path", step.place.as_str())
    })
}

/// A text as it is, anything else as JSON.
fn plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

fn list(step: &Step, value: Value) -> Result<Vec<Value>, Fault> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(unfit(step, "a list", &other)),
    }
}

fn text(step: &Step, value: Value) -> Result<String, Fault> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(unfit(step, "a text", &other)),
    }
}

fn unfit(step: &Step, wanted: &str, found: &Value) -> Fault {
    Fault::invalid(format!("`{}` works on {wanted}; it got {}", step.place, kind(found)))
        .with("path", step.place.as_str())
}
