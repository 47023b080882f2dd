//! Text to JSON, strictly: no double members, no depth or size beyond the limits, and mistakes with line and column.

use orchestr8_contract::limits::JSON_DEPTH;
use orchestr8_contract::place::Place;
use orchestr8_contract::{Code, json};
use serde_json::Value;

use super::limits;
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
    let mut doubled = Vec::new();
    let value = json::read(text.as_bytes(), |at, name| {
        if doubled.len() < LISTED {
            let hint = "Only one of them can count: remove the other.";
            doubled.push(Problem::new(at, Code::InvalidWorkflow, format!("{name} is written twice"), hint));
        }
        Ok(())
    });
    match value {
        Ok(value) => Ok((value, doubled)),
        Err(json::Error::TooDeep(_)) => Err(too_deep()),
        Err(json::Error::Syntax(error)) => Err(broken(text, &error)),
    }
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
