//! A JSON file of somebody else, changed in one place: formatting, key order, comments and other entries stay as they are.

use std::ops::Range;

use indexmap::IndexMap;
use orchestr8_contract::json;
use orchestr8_contract::place::Place;
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

/// An entry, its members in the order in which they are written.
pub type Entry = IndexMap<&'static str, Value>;

/// Why the file cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("it cannot be read as JSON: {0}")]
    Syntax(String),
    #[error("{0} is not an object")]
    NotAnObject(String),
}

/// A JSON object as text. Comments and trailing commas are allowed, as editors allow them in their own files.
pub struct Document {
    text: String,
    /// The text with blanks in the place of comments and trailing commas: plain JSON of the same length.
    plain: String,
    value: Value,
}

impl Document {
    /// An empty text counts as an empty object.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let text = if text.trim().is_empty() { String::from("{\n}\n") } else { text.to_owned() };
        let plain = blank_out(&text);
        let text_of_json = plain.trim_start_matches('\u{feff}');
        // A reader that takes the first of two equal names and one that takes the last would see different files.
        let doubled = |_: &Place<'_>, name: &str| Err(format!("the name \"{name}\" is there twice"));
        let value: Value =
            json::read(text_of_json.as_bytes(), doubled).map_err(|error| Error::Syntax(error.to_string()))?;
        if !value.is_object() {
            return Err(Error::NotAnObject(String::from("the whole")));
        }
        Ok(Self { text, plain, value })
    }

    /// What stands under `section` and `name`.
    pub fn entry(&self, section: &str, name: &str) -> Result<Option<&Value>, Error> {
        match self.value.get(section) {
            None => Ok(None),
            Some(Value::Object(entries)) => Ok(entries.get(name)),
            Some(_) => Err(Error::NotAnObject(format!("\"{section}\""))),
        }
    }

    /// The text with one more entry. There must be none of that name.
    pub fn with_entry(&self, section: &str, name: &str, entry: &Entry) -> String {
        let root = Object::at(&self.plain, self.plain.find('{').unwrap_or(0));
        match root.members.iter().rev().find(|member| member.name == section) {
            Some(member) => self.insert(&Object::at(&self.plain, member.value.start), name, entry, 2),
            None => self.insert(&root, section, &IndexMap::from([(name, entry)]), 1),
        }
    }

    /// The text with this text as the value of a member of the whole, in the place of the old value if there is one.
    pub fn with_text(&self, name: &str, value: &str) -> String {
        let root = Object::at(&self.plain, self.plain.find('{').unwrap_or(0));
        match root.members.iter().rev().find(|member| member.name == name) {
            Some(member) => {
                let mut text = self.text.clone();
                text.replace_range(member.value.clone(), &Value::from(value).to_string());
                text
            }
            None => self.insert(&root, name, &value, 1),
        }
    }

    fn insert(&self, object: &Object, name: &str, value: &impl Serialize, depth: usize) -> String {
        let inside = &self.text[object.open + 1..object.close];
        let one_line = !inside.contains('\n') && !object.members.is_empty();
        let line_end = if self.text.contains("\r\n") { "\r\n" } else { "\n" };
        let key = Value::from(name);
        let mut text = self.text.clone();
        if one_line {
            let at = self.end_of(object);
            let comma = if self.text[..at].ends_with(',') { " " } else { ", " };
            text.insert_str(at, &format!("{comma}{key}: {}", compact(value)));
            return text;
        }
        let unit = self.indent_unit();
        let indent = match object.members.first() {
            Some(first) => self.indent_of(first.start).to_owned(),
            None => unit.repeat(depth),
        };
        let pretty = pretty(value, &unit).replace('\n', &format!("{line_end}{indent}"));
        let member = format!("{line_end}{indent}{key}: {pretty}");
        match object.members.last() {
            None => {
                let kept = inside.trim_end();
                let outer = self.indent_of(object.open).to_owned();
                let start = object.open + 1 + kept.len();
                text.replace_range(start..object.close, &format!("{member}{line_end}{outer}"));
            }
            Some(last) => {
                text.insert_str(self.end_of(object), &member);
                if self.comma_after(last, object).is_none() {
                    text.insert(last.value.end, ',');
                }
            }
        }
        text
    }

    /// Behind everything the object holds, comments included.
    fn end_of(&self, object: &Object) -> usize {
        object.open + 1 + self.text[object.open + 1..object.close].trim_end().len()
    }

    /// A trailing comma is blank in the plain text and there in the real one.
    fn comma_after(&self, last: &Member, object: &Object) -> Option<usize> {
        let real = self.text[last.value.end..object.close].char_indices();
        real.zip(self.plain[last.value.end..object.close].chars())
            .find(|((_, real), plain)| *real == ',' && *plain == TRAILING)
            .map(|((at, _), _)| last.value.end + at)
    }

    /// The blanks with which the line of this place begins.
    fn indent_of(&self, at: usize) -> &str {
        let line = &self.text[self.text[..at].rfind('\n').map_or(0, |end| end + 1)..];
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    }

    fn indent_unit(&self) -> String {
        let root = Object::at(&self.plain, self.plain.find('{').unwrap_or(0));
        let first = root.members.first().map_or("", |member| self.indent_of(member.start));
        if first.is_empty() { String::from("  ") } else { first.to_owned() }
    }
}

/// Stands for a trailing comma in the plain text: white space to JSON, and never part of ours otherwise.
const TRAILING: char = '\r';

struct Member {
    name: String,
    start: usize,
    value: Range<usize>,
}

struct Object {
    open: usize,
    close: usize,
    members: Vec<Member>,
}

impl Object {
    /// Reads the object that begins at `open` in valid JSON.
    fn at(json: &str, open: usize) -> Self {
        let bytes = json.as_bytes();
        let mut members = Vec::new();
        let mut at = skip_space(bytes, open + 1);
        while at < bytes.len() && bytes[at] != b'}' {
            let start = at;
            let name_end = value_end(bytes, start);
            let name = serde_json::from_str(&json[start..name_end]).unwrap_or_default();
            let colon = skip_space(bytes, name_end);
            let value_start = skip_space(bytes, colon + 1);
            let end = value_end(bytes, value_start);
            members.push(Member { name, start, value: value_start..end });
            at = skip_space(bytes, end);
            if bytes.get(at) == Some(&b',') {
                at = skip_space(bytes, at + 1);
            }
        }
        Self { open, close: at, members }
    }
}

fn skip_space(bytes: &[u8], from: usize) -> usize {
    let blanks = bytes[from.min(bytes.len())..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    from + blanks
}

/// Where the JSON value that begins here ends.
fn value_end(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0usize;
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = string_end(bytes, at),
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => {
                depth -= 1;
                at += 1;
            }
            b',' | b':' if depth == 0 => return at,
            byte if depth == 0 && byte.is_ascii_whitespace() => return at,
            _ => {
                at += 1;
                continue;
            }
        }
        if depth == 0 {
            return at;
        }
    }
    at
}

fn string_end(bytes: &[u8], quote: usize) -> usize {
    let mut at = quote + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// Plain JSON of the same length: comments become blanks, trailing commas become `TRAILING`.
fn blank_out(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = bytes.to_vec();
    let mut comma = None;
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'"', _) => {
                at = string_end(bytes, at);
                comma = None;
                continue;
            }
            (b'/', Some(b'/' | b'*')) => {
                let end = comment_end(bytes, at);
                plain[at..end].fill(b' ');
                at = end;
                continue;
            }
            (b',', _) => comma = Some(at),
            (b'}' | b']', _) => {
                if let Some(comma) = comma.take() {
                    plain[comma] = TRAILING as u8;
                }
            }
            (byte, _) if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        at += 1;
    }
    String::from_utf8(plain).unwrap_or_default()
}

fn comment_end(bytes: &[u8], start: usize) -> usize {
    let end: &[u8] = if bytes[start + 1] == b'/' { b"\n" } else { b"*/" };
    let rest = &bytes[start + 2..];
    let found = rest.windows(end.len()).position(|window| window == end);
    // A line comment leaves its line end in place.
    found.map_or(bytes.len(), |at| start + 2 + at + if end == b"*/" { 2 } else { 0 })
}

/// Writing JSON into memory cannot fail, and the keys are texts.
fn compact(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn pretty(value: &impl Serialize, unit: &str) -> String {
    let mut out = Vec::new();
    let mut writer = Serializer::with_formatter(&mut out, PrettyFormatter::with_indent(unit.as_bytes()));
    match value.serialize(&mut writer) {
        Ok(()) => String::from_utf8_lossy(&out).into_owned(),
        Err(_) => compact(value),
    }
}

#[cfg(test)]
mod tests;
