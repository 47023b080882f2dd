//! Writes the data of an entry: field by field, hidden or shown, and cut where it is too long.

use std::borrow::Cow;

use orchestr8_contract::limits::JSON_DEPTH;
use orchestr8_kernel::redact::REDACTED;
use serde_json::{Map, Number, Value};

use super::{fields, look, rules, shorten};
use crate::agents::Secrets;
use crate::definition::model::{JournalRules, RedactionRule, RuleAction};
use crate::limits::{CUT_FIELDS_NAMED, ENTRY_BYTES, ENTRY_FRAME_BYTES, FIELD_BYTES, FIELD_NAME_BYTES};

/// What an entry leaves for its data.
const DATA_BYTES: usize = ENTRY_BYTES - ENTRY_FRAME_BYTES;

/// No card number is smaller.
const SMALLEST_CARD: u64 = 1_000_000_000_000;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Bounds {
    /// Those of the journal.
    Journal,
    /// None, to measure what was cut.
    None,
}

pub struct Writer<'w> {
    rules: &'w JournalRules,
    secrets: &'w Secrets,
    bounds: Bounds,
    out: Vec<u8>,
    /// Where we are, with dots.
    path: String,
}

pub struct Written {
    pub text: String,
    /// The names of the fields that were cut or left out.
    pub cut: Vec<String>,
}

/// How a field is to be written.
enum Show<'r> {
    As(&'r str),
    Hash,
    Nothing,
    /// Its value is looked through in turn.
    Through,
}

impl<'w> Writer<'w> {
    pub fn new(rules: &'w JournalRules, secrets: &'w Secrets, bounds: Bounds) -> Self {
        Self { rules, secrets, bounds, out: Vec::with_capacity(256), path: String::new() }
    }

    pub fn write(mut self, data: &Value) -> Written {
        let cut = match data {
            Value::Object(map) => self.top(map),
            Value::Null => self.top(&Map::new()),
            other => self.top(&Map::from_iter([(String::from("value"), other.clone())])),
        };
        // Whole characters were written, whole texts taken back.
        Written { text: String::from_utf8(self.out).unwrap_or_else(|_| String::from("{}")), cut }
    }

    fn top(&mut self, map: &Map<String, Value>) -> Vec<String> {
        let mut cut = Vec::new();
        let mut seen_hidden = false;
        self.out.push(b'{');
        for (name, value) in map {
            let before = self.out.len();
            let Some(start) = self.field(name, value, 0, &mut seen_hidden) else { continue };
            if self.bounds == Bounds::None {
                continue;
            }
            let mut shortened = false;
            if self.out.len() - start > FIELD_BYTES {
                shortened = true;
                self.replace(start, shorten::field);
            }
            if self.out.len() >= DATA_BYTES {
                shortened = true;
                self.replace(start, shorten::field_to_nothing);
            }
            if self.out.len() >= DATA_BYTES {
                // Even names are too many: what is left is left out.
                self.out.truncate(before);
                note(&mut cut, "*");
                break;
            }
            if shortened {
                note(&mut cut, &self.shown_name(name));
            }
        }
        self.out.push(b'}');
        cut
    }

    fn replace(&mut self, start: usize, short: fn(&[u8]) -> Vec<u8>) {
        let short = short(&self.out[start..]);
        self.out.truncate(start);
        self.out.extend_from_slice(&short);
    }

    /// Writes one field; says where its value begins, or nothing if the field is not written.
    fn field(&mut self, name: &str, value: &Value, depth: usize, seen_hidden: &mut bool) -> Option<usize> {
        let outside = self.path.len();
        if outside > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        let start = self.field_here(name, value, depth, seen_hidden);
        self.path.truncate(outside);
        start
    }

    fn field_here(
        &mut self,
        name: &str,
        value: &Value,
        depth: usize,
        seen_hidden: &mut bool,
    ) -> Option<usize> {
        let (show, ours) = self.show(name, value, depth);
        if matches!(show, Show::Nothing) {
            return None;
        }
        let shown = if ours { Cow::Borrowed(name) } else { Cow::Owned(self.shown_name(name)) };
        // Several names may be hidden in one object; one of them stands for all.
        if shown == REDACTED && std::mem::replace(seen_hidden, true) {
            return None;
        }
        if !matches!(self.out.last(), Some(b'{')) {
            self.out.push(b',');
        }
        self.text_as_it_is(&shown);
        self.out.push(b':');
        let start = self.out.len();
        match show {
            Show::As(text) => self.text_as_it_is(text),
            Show::Hash => self.text_as_it_is(&rules::hash(value)),
            Show::Through => self.value(value, ours && depth == 0, depth + 1),
            Show::Nothing => {}
        }
        Some(start)
    }

    /// How to write a field, and whether its name is one of our own lists and so needs no look.
    fn show(&self, name: &str, value: &Value, depth: usize) -> (Show<'w>, bool) {
        let ours = fields::is_allowed(name) || (depth == 0 && fields::is_of_engine(name));
        if self.rules.rules.is_empty() && self.rules.allow.is_empty() {
            return (if ours { Show::Through } else { Show::As(REDACTED) }, ours);
        }
        if let Some(rule) = rules::matching(self.rules, Some(name), &self.path, value) {
            return (by_rule(rule), ours);
        }
        if ours {
            return (Show::Through, true);
        }
        let shown = rules::shows(self.rules, name, &self.path)
            && (!look::REDACTOR.is_secret(name) || rules::names(self.rules, name, &self.path));
        (if shown { Show::Through } else { Show::As(REDACTED) }, false)
    }

    /// `ours`: a value of the engine's own making, which may well say UNAUTHORIZED.
    fn value(&mut self, value: &Value, ours: bool, depth: usize) {
        match value {
            Value::Null | Value::Bool(_) => self.as_it_is(value),
            Value::Number(number) => self.number(number, value),
            Value::String(text) => self.text(text, ours),
            // What is too deep to look at might hold anything.
            Value::Array(_) | Value::Object(_) if depth >= JSON_DEPTH => self.text_as_it_is(REDACTED),
            Value::Array(items) => self.items(items, ours, depth),
            Value::Object(map) => {
                self.out.push(b'{');
                let mut seen_hidden = false;
                for (name, value) in map {
                    self.field(name, value, depth, &mut seen_hidden);
                }
                self.out.push(b'}');
            }
        }
    }

    /// The items of a list are shown as the field they are in.
    fn items(&mut self, items: &[Value], ours: bool, depth: usize) {
        self.out.push(b'[');
        for item in items {
            let rule = match self.rules.rules.is_empty() {
                true => None,
                false => rules::matching(self.rules, None, &self.path, item),
            };
            let show = rule.map_or(Show::Through, by_rule);
            if matches!(show, Show::Nothing) {
                continue;
            }
            if !matches!(self.out.last(), Some(b'[')) {
                self.out.push(b',');
            }
            match show {
                Show::As(text) => self.text_as_it_is(text),
                Show::Hash => self.text_as_it_is(&rules::hash(item)),
                Show::Through => self.value(item, ours, depth + 1),
                Show::Nothing => {}
            }
        }
        self.out.push(b']');
    }

    fn text(&mut self, text: &str, ours: bool) {
        let known = self.secrets.redact(text);
        if (!ours && look::has_word(&known)) || look::is_secret(&known) {
            return self.text_as_it_is(REDACTED);
        }
        self.text_as_it_is(&known);
    }

    fn number(&mut self, number: &Number, value: &Value) {
        let secret = number
            .as_u64()
            .is_some_and(|number| number >= SMALLEST_CARD && look::is_secret(&number.to_string()))
            || (!self.secrets.is_empty()
                && matches!(self.secrets.redact(&number.to_string()), Cow::Owned(_)));
        if secret { self.text_as_it_is(REDACTED) } else { self.as_it_is(value) }
    }

    /// A name that is not one of ours may itself be a secret, or endless.
    fn shown_name(&self, name: &str) -> String {
        let known = self.secrets.redact(name);
        if look::is_secret(&known) {
            return REDACTED.to_owned();
        }
        if known.len() > FIELD_NAME_BYTES { shorten::name(&known) } else { known.into_owned() }
    }

    fn text_as_it_is(&mut self, text: &str) {
        // Writing to memory cannot fail.
        let _ = serde_json::to_writer(&mut self.out, text);
    }

    fn as_it_is(&mut self, value: &Value) {
        let _ = serde_json::to_writer(&mut self.out, value);
    }
}

fn by_rule(rule: &RedactionRule) -> Show<'_> {
    match rule.action {
        RuleAction::Redact => Show::As(rule.replacement.as_deref().unwrap_or(REDACTED)),
        RuleAction::Hash => Show::Hash,
        RuleAction::Remove => Show::Nothing,
    }
}

/// Names a field that was cut; after a few, `*` stands for the others.
fn note(cut: &mut Vec<String>, name: &str) {
    match cut.len() {
        0..CUT_FIELDS_NAMED => cut.push(name.to_owned()),
        CUT_FIELDS_NAMED if name != "*" => cut.push(String::from("*")),
        _ => {}
    }
}
