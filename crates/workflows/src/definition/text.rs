//! Text to JSON, strictly: no double members, no depth or size beyond the limits, and mistakes with line and column.

use std::cell::RefCell;
use std::fmt;

use orchestr8_contract::Code;
use orchestr8_contract::limits::JSON_DEPTH;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::limits;
use super::place::Place;
use super::problems::{LISTED, Problem, Problems};

/// What XML and YAML are told (ADR-002).
const JSON_ONLY: &str = "Workflows must use JSON format (ADR-002)";

/// Reads a text. Gives what it says, and a problem for each member that is written twice; the last of them counts.
pub fn parse(text: &str) -> Result<(Value, Vec<Problem>), Problems> {
    if text.len() > limits::DEFINITION_BYTES {
        return Err(too_large());
    }
    // Some editors begin files with a byte order mark.
    let text = text.trim_start_matches('\u{feff}');
    let doubled = RefCell::new(Vec::new());
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Strict { at: Place::ROOT, doubled: &doubled }
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|error| broken(text, &error))?;
    Ok((value, doubled.into_inner()))
}

/// What to say of a text where an object should be; it may be another format that somebody wrapped in JSON.
pub fn other_format(text: &str) -> Option<Problem> {
    is_other_format(text).then(|| {
        Problem::new(
            Place::ROOT,
            Code::InvalidWorkflow,
            JSON_ONLY,
            "Write the workflow as a JSON object; `orchestr8 create workflow NAME` makes one to begin with.",
        )
    })
}

pub fn too_large() -> Problems {
    single(
        format!("the definition is larger than {} bytes", limits::DEFINITION_BYTES),
        "Move parts of it into workflows of their own.",
    )
}

pub fn too_deep() -> Problems {
    single(format!("the definition is nested deeper than {JSON_DEPTH} levels"), "Flatten it.")
}

/// Looks without calling itself, so that any depth is safe to look at.
pub fn is_deeper_than(value: &Value, limit: usize) -> bool {
    let mut open = vec![(value, 1)];
    while let Some((value, depth)) = open.pop() {
        if depth > limit {
            return true;
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => open.extend(members.values().map(|member| (member, depth + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    false
}

/// At least how many bytes a value takes as JSON text.
pub fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(_) => 1,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| weight(item) + 1).sum::<usize>(),
        Value::Object(members) => {
            2 + members.iter().map(|(name, member)| name.len() + 4 + weight(member)).sum::<usize>()
        }
    }
}

fn single(message: String, hint: &str) -> Problems {
    Problems(vec![Problem::new(Place::ROOT, Code::InvalidWorkflow, message, hint)])
}

fn broken(text: &str, error: &serde_json::Error) -> Problems {
    if let Some(problem) = other_format(text) {
        return Problems(vec![problem]);
    }
    let said = error.to_string();
    let what = said.rsplit_once(" at line ").map_or(said.as_str(), |(what, _)| what);
    single(
        format!("the JSON is broken at line {}, column {}: {what}", error.line(), error.column()),
        "Correct the text there; a comma or a quote too many or too few is the usual cause.",
    )
}

/// XML begins with `<`. YAML begins with a marker, a comment, a list, or a bare name and a colon.
fn is_other_format(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let named = first.split_once(':').is_some_and(|(name, rest)| {
        let bare = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        bare && !name.is_empty() && (rest.is_empty() || rest.starts_with(' '))
    });
    named || ["<", "---", "%YAML", "# ", "- "].iter().any(|mark| first.starts_with(mark))
}

/// Builds a value and names the members that come twice.
struct Strict<'a> {
    at: Place<'a>,
    doubled: &'a RefCell<Vec<Problem>>,
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(flag.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) =
            items.next_element_seed(Strict { at: self.at.item(list.len()), doubled: self.doubled })?
        {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let at = self.at.field(&name);
            let value = members.next_value_seed(Strict { at, doubled: self.doubled })?;
            if object.contains_key(&name) && self.doubled.borrow().len() < LISTED {
                self.doubled.borrow_mut().push(Problem::new(
                    at,
                    Code::InvalidWorkflow,
                    format!("{name} is written twice"),
                    "Only one of them can count: remove the other.",
                ));
            }
            object.insert(name, value);
        }
        Ok(object.into())
    }
}
