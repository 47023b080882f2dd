//! Writes one entry as one line of JSON: redacted, without hidden characters, and never longer than its limit.
//!
//! Values are written straight from where they are, without a copy: what is secret or too long is never even converted.

use orchestr8_contract::limits;
use orchestr8_contract::visible::{is_hidden, push_json_escape};
use serde_json::{Map, Value};

use super::{Context, Core, Level};
use crate::ports::clock::iso;
use crate::redact::{self, REDACTED};

/// No line is longer: a reader of logs can count on it, and a careless call site cannot fill a disk.
pub const LINE_BYTES: usize = 32 * 1024;

/// A text is cut here.
const TEXT_BYTES: usize = 8 * 1024;

/// A name of a field is cut here.
const NAME_BYTES: usize = 256;

/// Once a line is as long, nothing more is begun. It leaves room for one more text and for the closing of what is open.
const FULL_BYTES: usize = 18 * 1024;

/// A secret that reaches over the cut of a text is recognised if it begins this long before the end of what is searched.
const SEARCH_MARGIN_BYTES: usize = 4 * 1024;

/// What is written in the place of what does not fit.
const CUT: &str = "[truncated]";

/// Names that an entry has of itself.
const OWN_NAMES: [&str; 3] = ["timestamp", "level", "message"];

/// The line of an entry, with its line end.
pub(super) fn render(
    core: &Core,
    level: Level,
    message: &str,
    fields: &Map<String, Value>,
    mut context: Option<&Context>,
) -> String {
    let mut line = Line { out: String::with_capacity(256), core };
    line.out.push_str("{\"timestamp\":\"");
    line.out.push_str(&iso(core.clock.now_ms()));
    line.out.push_str("\",\"level\":\"");
    line.out.push_str(level.as_str());
    line.out.push_str("\",\"message\":");
    line.text(message, TEXT_BYTES);
    let mut nearer = vec![fields];
    line.fields(fields, &[]);
    while let Some(here) = context {
        line.fields(&here.fields, &nearer);
        nearer.push(&here.fields);
        context = here.parent.as_deref();
    }
    line.out.push_str("}\n");
    line.out
}

struct Line<'c> {
    out: String,
    core: &'c Core,
}

impl Line<'_> {
    /// Writes the fields that nothing nearer has: an entry's own count before its log's, and those before its parent's.
    fn fields(&mut self, fields: &Map<String, Value>, nearer: &[&Map<String, Value>]) {
        for (name, value) in
            fields.iter().filter(|(name, _)| !nearer.iter().any(|map| map.contains_key(*name)))
        {
            self.out.push(',');
            if self.is_full() {
                return self.cut_member();
            }
            if OWN_NAMES.contains(&name.as_str()) {
                // An entry has these already, and a name twice in an object means something else to each reader.
                self.text(&format!("{name}_"), NAME_BYTES);
            } else {
                self.text(name, NAME_BYTES);
            }
            self.out.push(':');
            self.member(name, value, 0);
        }
    }

    fn member(&mut self, name: &str, value: &Value, depth: usize) {
        if self.core.redactor.is_secret(name) { self.quote(REDACTED) } else { self.value(value, depth) }
    }

    fn value(&mut self, value: &Value, depth: usize) {
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Bool(true) => self.out.push_str("true"),
            Value::Bool(false) => self.out.push_str("false"),
            Value::Number(number) if redact::is_card_number(number) => self.quote(REDACTED),
            Value::Number(number) => self.out.push_str(&number.to_string()),
            Value::String(text) => self.text(text, TEXT_BYTES),
            Value::Array(_) | Value::Object(_) if depth >= limits::JSON_DEPTH => self.quote(REDACTED),
            Value::Array(items) => self.items(items, depth),
            Value::Object(map) => self.map(map, depth),
        }
    }

    fn items(&mut self, items: &[Value], depth: usize) {
        self.out.push('[');
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            if self.is_full() {
                self.quote(CUT);
                break;
            }
            self.value(item, depth + 1);
        }
        self.out.push(']');
    }

    fn map(&mut self, map: &Map<String, Value>, depth: usize) {
        self.out.push('{');
        for (index, (key, value)) in map.iter().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            if self.is_full() {
                self.cut_member();
                break;
            }
            self.text(key, NAME_BYTES);
            self.out.push(':');
            self.member(key, value, depth + 1);
        }
        self.out.push('}');
    }

    fn is_full(&self) -> bool {
        self.out.len() >= FULL_BYTES
    }

    fn cut_member(&mut self) {
        self.quote(CUT);
        self.out.push_str(":true");
    }

    fn quote(&mut self, plain: &str) {
        self.out.push('"');
        self.out.push_str(plain);
        self.out.push('"');
    }

    /// A text without secrets and hidden characters, cut when what is written of it gets too long.
    fn text(&mut self, text: &str, limit: usize) {
        let searched = &text[..text.floor_char_boundary(limit + SEARCH_MARGIN_BYTES)];
        let clean = self.core.redactor.text(searched);
        self.out.push('"');
        let begin = self.out.len();
        let mut cut = searched.len() < text.len();
        for c in clean.chars() {
            if self.out.len() - begin >= limit {
                cut = true;
                break;
            }
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                c if is_hidden(c) => {
                    // Escaped twice: a reader that decodes the line still meets no hidden character.
                    let mut escape = String::new();
                    push_json_escape(&mut escape, c);
                    self.out.push_str(&escape.replace('\\', "\\\\"));
                }
                c => self.out.push(c),
            }
        }
        if cut {
            self.out.push_str(CUT);
        }
        self.out.push('"');
    }
}
