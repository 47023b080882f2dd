//! The operations of a transform, as they are written and as they are read.

use orchestr8_contract::Fault;
use serde_json::Value;

use super::super::members::wrong;
use super::test::Test;
use crate::limits::{OPERATION_DEPTH, OPERATIONS, PATH_DEPTH};

/// One operation. Where a path may be given it says what of each item counts; an empty path is the item itself.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// Keeps these members of an object, or of each object of a list.
    Pick(Vec<String>),
    /// Leaves out these members of an object, or of each object of a list.
    Omit(Vec<String>),
    /// Puts these members into an object, or into each object of a list.
    Merge(serde_json::Map<String, Value>),
    /// Replaces each item of a list by what is at the path in it, or null.
    MapPath(Path),
    /// Applies operations to each item of a list.
    MapEach(Vec<Step>),
    /// Keeps the items of a list that pass a test.
    Filter(Test),
    /// Orders a list; items that are equal keep their order.
    Sort {
        by: Path,
        descending: bool,
    },
    /// An object with a list of items for each value at the path.
    Group(Path),
    /// One text out of a list, with this between the items.
    Join(String),
    /// A list out of a text, cut at this.
    Split(String),
    /// How many items, members or characters.
    Count,
    /// A list of lists as one list.
    Flatten,
    /// The first of all items that are equal.
    Unique(Path),
    Sum(Path),
    Min(Path),
    Max(Path),
    /// A text of JSON as the value it means.
    ParseJson,
    /// A value as a text of JSON.
    Stringify,
}

/// An operation and where it is written, for messages.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub operation: Operation,
    pub place: String,
}

/// How many operations are written, those inside others included.
pub fn count(written: &Value, depth: usize) -> usize {
    let Some(items) = written.as_array().filter(|_| depth > 0) else { return 0 };
    let inner = |one: &Value| one.get("map").map_or(0, |inner| count(inner, depth - 1));
    items.iter().take(OPERATIONS).map(|one| 1 + inner(one)).sum::<usize>().min(OPERATIONS)
}

/// Names of members and places in lists, from the outside in.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Path(Vec<String>);

impl Path {
    fn read(text: &str, place: &str) -> Result<Self, Fault> {
        let parts: Vec<String> = text.split('.').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        if parts.len() > PATH_DEPTH {
            return Err(
                Fault::invalid(format!("`{place}` has more than {PATH_DEPTH} parts")).with("path", place)
            );
        }
        Ok(Self(parts))
    }

    pub fn of<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(value, |value, part| match value {
            Value::Object(map) => map.get(part),
            Value::Array(items) => items.get(part.parse::<usize>().ok()?),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        })
    }

    /// The same, taken out without a copy where the path leads through objects only.
    pub fn out_of(&self, value: Value) -> Value {
        self.0
            .iter()
            .try_fold(value, |value, part| match value {
                Value::Object(mut map) => map.remove(part),
                Value::Array(mut items) => {
                    let index = part.parse::<usize>().ok().filter(|index| *index < items.len())?;
                    Some(items.swap_remove(index))
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
            })
            .unwrap_or_default()
    }
}

/// Reads a list of operations: objects of one member each, whose name is the operation.
pub fn read(written: &Value) -> Result<Vec<Step>, Fault> {
    let mut left = OPERATIONS;
    list(written, "operations", &mut left, OPERATION_DEPTH)
}

fn list(written: &Value, place: &str, left: &mut usize, depth: usize) -> Result<Vec<Step>, Fault> {
    let items = written.as_array().ok_or_else(|| wrong(place, "a list of operations", written))?;
    let Some(rest) = left.checked_sub(items.len()) else {
        return Err(Fault::invalid(format!("a transform has at most {OPERATIONS} operations")));
    };
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Fault::invalid(format!("operations are nested deeper than {OPERATION_DEPTH}")));
    };
    *left = rest;
    let step = |(index, item): (usize, &Value)| {
        let at = format!("{place}[{index}]");
        let (name, argument) = match item.as_object().map(|map| (map.len(), map.iter().next())) {
            Some((1, Some(only))) => only,
            _ => return Err(wrong(&at, "an object with one member, the name of an operation", item)),
        };
        let place = format!("{at}.{name}");
        Ok(Step { operation: one(name, argument, &place, left, depth)?, place })
    };
    items.iter().enumerate().map(step).collect()
}

fn one(
    name: &str,
    argument: &Value,
    place: &str,
    left: &mut usize,
    depth: usize,
) -> Result<Operation, Fault> {
    Ok(match name {
        "pick" => Operation::Pick(names(argument, place)?),
        "omit" => Operation::Omit(names(argument, place)?),
        "merge" => match argument {
            Value::Object(map) => Operation::Merge(map.clone()),
            other => return Err(wrong(place, "an object", other)),
        },
        "map" => match argument {
            Value::Array(_) => Operation::MapEach(list(argument, place, left, depth)?),
            other => Operation::MapPath(path(other, place)?),
        },
        "filter" => Operation::Filter(Test::read(argument, place)?),
        "sort" => sort(argument, place)?,
        "group" => Operation::Group(path(argument, place)?),
        "join" => Operation::Join(text(argument, place)?.to_owned()),
        "split" => match text(argument, place)? {
            "" => return Err(wrong(place, "a text that is not empty", argument)),
            between => Operation::Split(between.to_owned()),
        },
        "count" => flag(Operation::Count, argument, place)?,
        "flatten" => flag(Operation::Flatten, argument, place)?,
        "unique" => Operation::Unique(path_or_true(argument, place)?),
        "sum" => Operation::Sum(path_or_true(argument, place)?),
        "min" => Operation::Min(path_or_true(argument, place)?),
        "max" => Operation::Max(path_or_true(argument, place)?),
        "parseJson" => flag(Operation::ParseJson, argument, place)?,
        "stringify" => flag(Operation::Stringify, argument, place)?,
        _ => return Err(unknown(name, place)),
    })
}

const NAMES: &str = "pick, omit, merge, map, filter, sort, group, join, split, count, flatten, unique, sum, min, max, \
                     parseJson, stringify";

fn unknown(name: &str, place: &str) -> Fault {
    let shown: String = name.chars().take(64).collect();
    Fault::invalid(format!("there is no operation `{shown}`; there are {NAMES}")).with("path", place)
}

fn sort(argument: &Value, place: &str) -> Result<Operation, Fault> {
    let Value::Object(map) = argument else {
        return Ok(Operation::Sort { by: path_or_true(argument, place)?, descending: false });
    };
    if let Some(name) = map.keys().find(|name| !matches!(name.as_str(), "by" | "order")) {
        return Err(wrong(place, "an object of `by` and `order`", &Value::from(name.as_str())));
    }
    let by = match map.get("by") {
        Some(by) => path(by, &format!("{place}.by"))?,
        None => Path::default(),
    };
    let descending = match map.get("order").map(Value::as_str) {
        None | Some(Some("asc")) => false,
        Some(Some("desc")) => true,
        Some(_) => {
            return Err(
                Fault::invalid(format!("`{place}.order` must be \"asc\" or \"desc\"")).with("path", place)
            );
        }
    };
    Ok(Operation::Sort { by, descending })
}

fn names(argument: &Value, place: &str) -> Result<Vec<String>, Fault> {
    let items = argument.as_array().ok_or_else(|| wrong(place, "a list of names", argument))?;
    let mut names = Vec::with_capacity(items.len());
    for item in items {
        names.push(text(item, place)?.to_owned());
    }
    // Looked up by halves, so that long lists stay cheap.
    names.sort_unstable();
    Ok(names)
}

pub fn path(argument: &Value, place: &str) -> Result<Path, Fault> {
    Path::read(text(argument, place)?, place)
}

fn path_or_true(argument: &Value, place: &str) -> Result<Path, Fault> {
    match argument {
        Value::Bool(true) => Ok(Path::default()),
        Value::String(text) => Path::read(text, place),
        other => Err(wrong(place, "true or a path", other)),
    }
}

fn flag(operation: Operation, argument: &Value, place: &str) -> Result<Operation, Fault> {
    match argument {
        Value::Bool(true) => Ok(operation),
        other => Err(wrong(place, "true", other)),
    }
}

fn text<'v>(argument: &'v Value, place: &str) -> Result<&'v str, Fault> {
    argument.as_str().ok_or_else(|| wrong(place, "a text", argument))
}
