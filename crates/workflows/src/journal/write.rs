//! Writes the data of an entry: field by field, hidden or shown, and cut where it is too long.

use std::borrow::Cow;

use orchestr8_contract::limits::JSON_DEPTH;
use orchestr8_kernel::redact::REDACTED;
use serde_json::{Map, Number, Value};

use super::rules::Shown;
use super::{fields, look, rules, shorten};
use crate::definition::model::{JournalRules, RedactionRule, RuleAction};
use crate::limits::{CUT_FIELDS_NAMED, ENTRY_BYTES, ENTRY_FRAME_BYTES, FIELD_BYTES, FIELD_NAME_BYTES};
use orchestr8_kernel::redact::SecretMask;

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
    secrets: &'w SecretMask,
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

/// How a field or an item is to be written.
#[derive(Clone, Copy)]
enum Show<'r> {
    As(&'r str),
    Hash,
    Nothing,
    /// Its value is looked through in turn.
    Through(Trust),
}

/// What is shown of a value that is looked through.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// It is of the engine's own making, and may well say UNAUTHORIZED. Fields inside are judged one by one.
    Ours,
    /// Texts and numbers; fields inside are judged one by one.
    Judged,
    /// A sentence: what looks like a secret in it is hidden, the rest is shown.
    Reason,
    /// Everything: the author shows the field.
    Open,
    /// Only fields inside that are shown by themselves.
    Inside,
}

impl<'w> Writer<'w> {
    pub fn new(rules: &'w JournalRules, secrets: &'w SecretMask, bounds: Bounds) -> Self {
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
            let Some(start) = self.field(name, value, Trust::Judged, 0, &mut seen_hidden) else { continue };
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
    fn field(
        &mut self,
        name: &str,
        value: &Value,
        around: Trust,
        depth: usize,
        seen_hidden: &mut bool,
    ) -> Option<usize> {
        let outside = self.path.len();
        if outside > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        let start = self.field_here(name, value, around, depth, seen_hidden);
        self.path.truncate(outside);
        start
    }

    fn field_here(
        &mut self,
        name: &str,
        value: &Value,
        around: Trust,
        depth: usize,
        seen_hidden: &mut bool,
    ) -> Option<usize> {
        let (show, ours) = self.show(name, value, around);
        if matches!(show, Show::Nothing) {
            return None;
        }
        let shown = if ours { Cow::Borrowed(name) } else { Cow::Owned(self.shown_name(name)) };
        // Several names may be hidden in one object; one of them stands for all.
        if shown == REDACTED && std::mem::replace(seen_hidden, true) {
            return None;
        }
        self.comma();
        self.text_as_it_is(&shown);
        self.out.push(b':');
        let start = self.out.len();
        self.shown(show, value, depth + 1);
        Some(start)
    }

    /// How to write a field, and whether its name is of our own lists and so needs no look.
    fn show(&self, name: &str, value: &Value, around: Trust) -> (Show<'w>, bool) {
        if let Some(rule) = rules::for_field(self.rules, name, &self.path) {
            return (by_rule(rule), false);
        }
        let (trust, ours) = self.trust(name, around);
        (trust.map_or(Show::As(REDACTED), |trust| self.show_value(value, trust)), ours)
    }

    fn trust(&self, name: &str, around: Trust) -> (Option<Trust>, bool) {
        if fields::is_of_engine(&self.path) || (self.path == name && fields::is_allowed(name)) {
            return (Some(Trust::Ours), true);
        }
        if fields::is_allowed(name) {
            return (Some(if around == Trust::Open { Trust::Open } else { Trust::Judged }), true);
        }
        if fields::is_reason(&self.path) {
            return (Some(Trust::Reason), true);
        }
        if fields::is_remark(&self.path) {
            return (Some(Trust::Judged), true);
        }
        let said = rules::shown(self.rules, name, &self.path);
        let trust = match (said, around) {
            (Shown::ByName, _) => Some(Trust::Open),
            // A name like `token` hides what only a pattern shows.
            (Shown::ByPattern, _) | (_, Trust::Open) if !look::REDACTOR.is_secret(name) => Some(Trust::Open),
            (Shown::Inside, _) => Some(Trust::Inside),
            (Shown::ByPattern | Shown::Not, _) => fields::is_group(&self.path).then_some(Trust::Inside),
        };
        (trust, false)
    }

    fn show_value(&self, value: &Value, trust: Trust) -> Show<'w> {
        let rule = if trust == Trust::Inside { None } else { rules::for_value(self.rules, value) };
        rule.map_or(Show::Through(trust), by_rule)
    }

    fn shown(&mut self, show: Show<'_>, value: &Value, depth: usize) {
        match show {
            Show::As(text) => self.text_as_it_is(text),
            Show::Hash => self.text_as_it_is(&rules::hash(value)),
            Show::Through(trust) => self.value(value, trust, depth),
            Show::Nothing => {}
        }
    }

    fn value(&mut self, value: &Value, trust: Trust, depth: usize) {
        match value {
            // What is too deep to look at might hold anything.
            Value::Array(_) | Value::Object(_) if depth >= JSON_DEPTH => self.text_as_it_is(REDACTED),
            Value::Array(items) => self.items(items, trust, depth),
            Value::Object(map) => {
                self.out.push(b'{');
                let mut seen_hidden = false;
                for (name, value) in map {
                    self.field(name, value, trust, depth, &mut seen_hidden);
                }
                self.out.push(b'}');
            }
            Value::String(text) if shorten::is_mark(text) => self.text_as_it_is(text),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) if trust == Trust::Inside => {
                self.text_as_it_is(REDACTED);
            }
            Value::Null | Value::Bool(_) => self.as_it_is(value),
            Value::Number(number) => self.number(number, value),
            Value::String(text) => self.text(text, trust),
        }
    }

    /// The items of a list are shown as the field they are in.
    fn items(&mut self, items: &[Value], trust: Trust, depth: usize) {
        self.out.push(b'[');
        for item in items {
            let show = self.show_value(item, trust);
            if matches!(show, Show::Nothing) {
                continue;
            }
            self.comma();
            self.shown(show, item, depth + 1);
        }
        self.out.push(b']');
    }

    fn text(&mut self, text: &str, trust: Trust) {
        let known = self.secrets.text(text);
        if trust == Trust::Reason {
            return self.text_as_it_is(&look::without_secrets(&known));
        }
        if (trust != Trust::Ours && look::has_word(&known)) || look::is_secret(&known) {
            return self.text_as_it_is(REDACTED);
        }
        self.text_as_it_is(&known);
    }

    fn number(&mut self, number: &Number, value: &Value) {
        let large = number.as_u64().is_some_and(|number| number >= SMALLEST_CARD);
        let secret = (large || !self.secrets.is_empty()) && {
            let text = number.to_string();
            (large && look::is_secret(&text)) || matches!(self.secrets.text(&text), Cow::Owned(_))
        };
        if secret { self.text_as_it_is(REDACTED) } else { self.as_it_is(value) }
    }

    fn comma(&mut self) {
        if !matches!(self.out.last(), Some(b'{' | b'[')) {
            self.out.push(b',');
        }
    }

    /// A name that is not one of ours may itself be a secret, or endless.
    fn shown_name(&self, name: &str) -> String {
        let known = self.secrets.text(name);
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
