//! Reads a session from a file, whoever wrote it.

use std::collections::HashMap;

use jiff::Timestamp;
use orchestr8_contract::{Code, Fault};
use serde_json::Value;

use super::{Imported, VERSION, messages};
use crate::limits;
use crate::record::{Body, Entry, Place};
use crate::tree::{Node, Tree};

/// What the first line says.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    pub id: String,
    pub created_ms: i64,
    pub cwd: String,
    pub parent: Option<String>,
}

/// The session of a file.
pub fn read(text: &str) -> Result<Imported, Fault> {
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > limits::FILE_BYTES {
        return Err(too_large());
    }
    let mut lines = text
        .trim_start_matches('\u{feff}')
        .split('\n')
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty());
    let (number, first) = lines.next().ok_or_else(|| damaged(1, "the file is empty"))?;
    let head = Head::read(first).map_err(|what| damaged(number, &what))?;
    let mut reading = Reading { at_ms: head.created_ms, ..Reading::default() };
    for (number, line) in lines {
        if line.len() > limits::LINE_BYTES {
            return Err(damaged(number, &format!("it is longer than {} bytes", limits::LINE_BYTES)));
        }
        let value = serde_json::from_str(line).map_err(|error| damaged(number, &not_json(&error)))?;
        reading.take(value).map_err(|what| damaged(number, &what))?;
        if reading.tree.next() > limits::ENTRIES {
            return Err(Fault::new(
                Code::ResourceExhausted,
                format!(
                    "the file has more than {} entries, which is the limit of a session",
                    limits::ENTRIES
                ),
            ));
        }
    }
    let Reading { tree, leaf, name, skipped, .. } = reading;
    Ok(Imported { head, name, tree, leaf, skipped })
}

pub fn too_large() -> Fault {
    Fault::new(
        Code::ResourceExhausted,
        format!("a session file may have at most {} bytes", limits::FILE_BYTES),
    )
}

fn damaged(line: usize, what: &str) -> Fault {
    Fault::invalid(format!("line {line}: {what}")).with("line", line).with("path", "/sessionPath")
}

fn not_json(error: &serde_json::Error) -> String {
    format!("it is not JSON at column {}", error.column())
}

impl Head {
    pub fn read(line: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(line).map_err(|error| not_json(&error))?;
        if value["type"] != "session" {
            return Err(String::from("a session file begins with a line of the type 'session'"));
        }
        // The first version of the format did not say that it was one.
        let version = value.get("version").map_or(Some(1), Value::as_u64);
        if !version.is_some_and(|version| (1..=VERSION).contains(&version)) {
            return Err(format!("version {} of the format is not known here", value["version"]));
        }
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        Ok(Self {
            id: text("id").unwrap_or_default(),
            created_ms: moment(&value).unwrap_or(0),
            cwd: text("cwd").unwrap_or_default(),
            parent: text("parentSession"),
        })
    }
}

/// A line that was read.
#[derive(Clone, Copy)]
struct Seen {
    /// The place of its entry; if it has none, the place of the next one.
    at: Place,
    /// What its children hang on.
    holds: Option<Place>,
}

#[derive(Default)]
struct Reading {
    tree: Tree,
    by_id: HashMap<String, Seen>,
    in_order: Vec<Seen>,
    /// What the last line hangs on or is.
    leaf: Option<Place>,
    name: Option<String>,
    skipped: usize,
    at_ms: i64,
}

impl Reading {
    fn take(&mut self, mut value: Value) -> Result<(), String> {
        let kind = value["type"].as_str().ok_or("it has no type")?.to_owned();
        let parent = self.parent(&value)?;
        self.at_ms = moment(&value).unwrap_or(self.at_ms);
        let at = self.tree.next();
        let body = self.body(&kind, &mut value)?;
        let holds = match body {
            Some(body) => {
                let entry = Entry { parent, at_ms: self.at_ms, body };
                self.tree.push(Node { label: None, entry });
                Some(at)
            }
            None => parent,
        };
        let seen = Seen { at, holds };
        if let Some(id) = value["id"].as_str()
            && self.by_id.insert(id.to_owned(), seen).is_some()
        {
            return Err(format!("its id '{}' was used before", short(id)));
        }
        self.in_order.push(seen);
        self.leaf = holds;
        Ok(())
    }

    /// In the first version of the format each line followed the one before, and none said so.
    fn parent(&self, value: &Value) -> Result<Option<Place>, String> {
        match value.get("parentId") {
            None => Ok(self.leaf),
            Some(Value::Null) => Ok(None),
            Some(Value::String(id)) => match self.by_id.get(id) {
                Some(seen) => Ok(seen.holds),
                None => Err(format!("its parent '{}' does not come before it", short(id))),
            },
            Some(_) => Err(String::from("its parentId must be a text or null")),
        }
    }

    /// The entry of a line, or none if the line is about other entries or not known here.
    fn body(&mut self, kind: &str, value: &mut Value) -> Result<Option<Body>, String> {
        let own = self.tree.next();
        let body = match kind {
            "message" => messages::from_file(value["message"].take(), self.at_ms)?
                .map(|message| Body::Message { message }),
            "model_change" => Some(Body::ModelChange {
                provider: text(value, "provider")?,
                model_id: text(value, "modelId")?,
            }),
            "thinking_level_change" => {
                let level = text(value, "thinkingLevel")?.parse().ok();
                level.map(|thinking_level| Body::ThinkingLevelChange { thinking_level })
            }
            "compaction" => Some(Body::Compaction {
                summary: text(value, "summary")?,
                // What it keeps may be gone; then it keeps nothing of what was before it.
                first_kept: self.first_kept(value).unwrap_or(own),
                tokens_before: value["tokensBefore"].as_u64().unwrap_or(0),
            }),
            "branch_summary" => {
                let from = self.named(value, "fromId").and_then(|seen| seen.holds);
                Some(Body::BranchSummary { summary: text(value, "summary")?, from: from.unwrap_or(own) })
            }
            "label" => {
                if let Some(target) = self.named(value, "targetId").and_then(|seen| seen.holds) {
                    self.tree.label(target, value["label"].as_str().and_then(visible));
                }
                return Ok(None);
            }
            "session_info" => {
                self.name = value["name"].as_str().and_then(visible);
                return Ok(None);
            }
            _ => None,
        };
        self.skipped += usize::from(body.is_none());
        Ok(body)
    }

    fn named(&self, value: &Value, member: &str) -> Option<Seen> {
        self.by_id.get(value[member].as_str()?).copied()
    }

    /// The first version counted lines instead of naming them; the first line is no entry.
    fn first_kept(&self, value: &Value) -> Option<Place> {
        let counted = || {
            let index = usize::try_from(value["firstKeptEntryIndex"].as_u64()?).ok()?;
            self.in_order.get(index.checked_sub(1)?).copied()
        };
        self.named(value, "firstKeptEntryId").or_else(counted).map(|seen| seen.at)
    }
}

fn text(value: &Value, member: &str) -> Result<String, String> {
    value[member].as_str().map(str::to_owned).ok_or_else(|| format!("its {member} must be a text"))
}

/// When a line was written: a text as in ISO 8601, or milliseconds.
fn moment(value: &Value) -> Option<i64> {
    match &value["timestamp"] {
        Value::String(text) => text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond),
        Value::Number(number) => number.as_i64(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A name as a session may have it: short, and nothing in it that one does not see.
fn visible(text: &str) -> Option<String> {
    let text: String = text.chars().filter(|c| !c.is_control()).take(limits::NAME_CHARS).collect();
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// So much of a text from a file as belongs into a message.
fn short(text: &str) -> String {
    text.chars().take(64).collect()
}
