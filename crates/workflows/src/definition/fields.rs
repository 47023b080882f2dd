//! One JSON object of a definition, read member by member. Whatever is wrong is noted with its place; reading goes on.

use std::cell::RefCell;
use std::ops::RangeInclusive;

use orchestr8_contract::Code;
use orchestr8_contract::json::kind;
use serde_json::{Map, Value};

use super::Place;
use super::limits;
use super::problems::{LISTED, Problem};
use super::words::{either, id_hint, is_id, nearest, quoted};
use crate::expression::{Condition, Template};

/// Where problems are noted.
pub(super) type Sink = RefCell<Vec<Problem>>;

/// Members an object may have, and what to say of those that belong elsewhere.
#[derive(Clone, Copy)]
pub(super) struct Known<'k> {
    pub names: &'k [&'k str],
    pub elsewhere: Elsewhere<'k>,
}

/// Members that another form has, each with what this one has instead.
#[derive(Clone, Copy, Default)]
pub(super) struct Elsewhere<'k> {
    /// The other form, and this one.
    pub forms: (&'k str, &'k str),
    pub instead: &'k [(&'k str, &'k str)],
}

#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    members: &'a Map<String, Value>,
    pub at: Place<'a>,
    pub sink: &'a Sink,
}

/// Notes a problem of the structure.
pub(super) fn note(sink: &Sink, at: &Place<'_>, message: impl Into<String>, hint: impl Into<String>) {
    if !is_full(sink) {
        sink.borrow_mut().push(Problem::new(at, Code::InvalidWorkflow, message, hint));
    }
}

/// Enough is known; what is noted beyond this nobody reads, and it would take time to find the words.
pub(super) fn is_full(sink: &Sink) -> bool {
    sink.borrow().len() >= LISTED
}

impl<'a> Fields<'a> {
    /// Takes an object, and refuses members nobody knows.
    pub fn of(value: &'a Value, at: Place<'a>, known: Known<'_>, sink: &'a Sink) -> Option<Self> {
        let Some(members) = value.as_object() else {
            let hint = format!("Write an object with {}.", either(known.names));
            note(sink, &at, format!("it must be an object, and is {}", kind(value)), hint);
            return None;
        };
        let fields = Self { members, at, sink };
        for name in members.keys().filter(|name| !known.names.contains(&name.as_str())) {
            fields.stranger(name, known);
        }
        Some(fields)
    }

    fn stranger(&self, name: &str, known: Known<'_>) {
        if is_full(self.sink) {
            return;
        }
        if let Some((_, instead)) = known.elsewhere.instead.iter().find(|(other, _)| *other == name) {
            let (theirs, ours) = known.elsewhere.forms;
            let message = format!("it belongs to the {theirs} form, and this workflow is in the {ours} form");
            return self.wrong(name, message, format!("Use one form throughout: write {instead}."));
        }
        let hint = match nearest(name, known.names.iter().copied()) {
            Some(meant) => format!("Did you mean {meant}?"),
            None => format!("Remove it; known here: {}.", known.names.join(", ")),
        };
        self.wrong(name, format!("the field {} is not known", quoted(name)), hint);
    }

    pub fn wrong(&self, name: &str, message: impl Into<String>, hint: impl Into<String>) {
        note(self.sink, &self.at.field(name), message, hint);
    }

    pub fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.members.get(name)
    }

    /// Says so when a member is missing.
    pub fn need(&self, name: &str, hint: &str) {
        if !self.has(name) {
            note(self.sink, &self.at, format!("{name} is missing"), hint);
        }
    }

    /// Says so when both are there: two members for one thing.
    pub fn only_one(&self, one: &str, other: &str) {
        if self.has(one) && self.has(other) {
            self.wrong(other, format!("{one} says this already"), format!("Keep one of {one} and {other}."));
        }
    }

    fn is_not(&self, name: &str, wanted: &str, found: &Value) {
        self.wrong(
            name,
            format!("{name} must be {wanted}, and is {}", kind(found)),
            format!("Write {wanted}."),
        );
    }

    pub fn text(&self, name: &str, longest: usize) -> Option<&'a str> {
        match self.get(name)? {
            Value::String(text) if (1..=longest).contains(&text.chars().count()) => Some(text),
            Value::String(_) => {
                let hint = format!("Write 1 to {longest} characters.");
                self.wrong(name, format!("{name} is empty or too long"), hint);
                None
            }
            other => {
                self.is_not(name, "a text", other);
                None
            }
        }
    }

    /// A text of a certain look.
    pub fn word(&self, name: &str, longest: usize, fits: fn(&str) -> bool, hint: &str) -> Option<&'a str> {
        let text = self.text(name, longest)?;
        if fits(text) {
            return Some(text);
        }
        self.wrong(name, format!("{name} cannot be {}", quoted(text)), hint);
        None
    }

    pub fn id(&self, name: &str) -> Option<&'a str> {
        let text = self.text(name, limits::NAME_CHARACTERS)?;
        self.word(name, limits::NAME_CHARACTERS, is_id, id_hint(text))
    }

    /// A time in milliseconds.
    pub fn ms(&self, name: &str, least: u64) -> Option<u64> {
        match self.get(name)? {
            Value::Number(_) => self.whole(name, least..=limits::DURATION_MS),
            other => {
                let wanted = format!("milliseconds, a whole number from {least} to {}", limits::DURATION_MS);
                self.is_not(name, &wanted, other);
                None
            }
        }
    }

    pub fn whole(&self, name: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let found = self.get(name)?;
        match whole(found) {
            Some(number) if range.contains(&number) => Some(number),
            Some(_) | None => {
                let wanted = format!("a whole number from {} to {}", range.start(), range.end());
                self.out_of_range(name, &wanted, found);
                None
            }
        }
    }

    pub fn number(&self, name: &str, range: RangeInclusive<f64>) -> Option<f64> {
        let found = self.get(name)?;
        match found.as_f64() {
            Some(number) if range.contains(&number) => Some(number),
            Some(_) | None => {
                let wanted = format!("a number from {} to {}", range.start(), range.end());
                self.out_of_range(name, &wanted, found);
                None
            }
        }
    }

    pub fn out_of_range(&self, name: &str, wanted: &str, found: &Value) {
        match found {
            Value::Number(number) => {
                self.wrong(
                    name,
                    format!("{name} must be {wanted}, and is {number}"),
                    format!("Write {wanted}."),
                );
            }
            other => self.is_not(name, wanted, other),
        }
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        let found = self.get(name)?;
        if !found.is_boolean() {
            self.is_not(name, "true or false", found);
        }
        found.as_bool()
    }

    pub fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Option<T> {
        let found = self.get(name)?;
        let chosen = found.as_str().and_then(|word| choices.iter().find(|(choice, _)| *choice == word));
        if let Some((_, meaning)) = chosen {
            return Some(*meaning);
        }
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        match found {
            Value::String(word) => {
                let hint = match nearest(word, words.iter().copied()) {
                    Some(meant) => format!("Did you mean {meant}?"),
                    None => format!("Write {}.", either(&words)),
                };
                self.wrong(name, format!("{name} cannot be {}", quoted(word)), hint);
            }
            other => self.is_not(name, &either(&words), other),
        }
        None
    }

    pub fn object<'s>(&'s self, name: &'s str, names: &[&str]) -> Option<Fields<'s>> {
        Fields::of(
            self.get(name)?,
            self.at.field(name),
            Known { names, elsewhere: Elsewhere::default() },
            self.sink,
        )
    }

    /// An object whose members are nobody's business.
    pub fn map(&self, name: &str) -> Option<&'a Map<String, Value>> {
        let found = self.get(name)?;
        if !found.is_object() {
            self.is_not(name, "an object", found);
        }
        found.as_object()
    }

    pub fn list(&self, name: &str, most: usize) -> Option<&'a [Value]> {
        match self.get(name)? {
            Value::Array(items) if items.len() <= most => Some(items),
            Value::Array(items) => {
                let message = format!("{name} has {} entries; at most {most} are allowed", items.len());
                self.wrong(name, message, "Make the list shorter.");
                None
            }
            other => {
                self.is_not(name, "a list", other);
                None
            }
        }
    }

    /// A list of texts of a certain look, each with its place in the list.
    pub fn words(
        &self,
        name: &str,
        most: usize,
        fits: fn(&str) -> bool,
        hint: &str,
    ) -> Vec<(usize, &'a str)> {
        let list = self.at.field(name);
        let mut words = Vec::new();
        for (index, item) in self.list(name, most).unwrap_or_default().iter().enumerate() {
            match item {
                Value::String(text) if fits(text) => words.push((index, text.as_str())),
                Value::String(text) => {
                    note(self.sink, &list.item(index), format!("it cannot be {}", quoted(text)), hint);
                }
                other => {
                    let message = format!("it must be a text, and is {}", kind(other));
                    note(self.sink, &list.item(index), message, hint);
                }
            }
        }
        words
    }

    /// Any value, with expressions in it.
    pub fn template(&self, name: &str) -> Option<Template> {
        Some(self.parse(name, self.get(name)?))
    }

    /// A text, with expressions in it.
    pub fn text_template(&self, name: &str) -> Option<Template> {
        match self.get(name)? {
            text @ Value::String(inside) if !inside.is_empty() => Some(self.parse(name, text)),
            Value::String(_) => {
                self.wrong(name, format!("{name} is empty"), "Write a text; it may hold expressions.");
                None
            }
            other => {
                self.is_not(name, "a text", other);
                None
            }
        }
    }

    /// An object with expressions in it; empty if there is none.
    pub fn object_template(&self, name: &str) -> Template {
        match self.get(name) {
            Some(object @ Value::Object(_)) => self.parse(name, object),
            Some(text @ Value::String(inside)) if is_one_expression(inside) => self.parse(name, text),
            Some(other) => {
                self.is_not(name, "an object, or one expression that gives an object", other);
                Template::literal(Value::Null)
            }
            None => Template::literal(Value::Object(Map::new())),
        }
    }

    pub fn condition(&self, name: &str) -> Option<Condition> {
        match self.get(name)? {
            Value::String(text) => {
                Some(Condition::parse(text, &self.at.field(name), &mut self.sink.borrow_mut()))
            }
            other => {
                self.is_not(name, "a condition in a text", other);
                None
            }
        }
    }

    fn parse(&self, name: &str, value: &Value) -> Template {
        Template::parse(value, &self.at.field(name), &mut self.sink.borrow_mut())
    }
}

/// A whole number, even if it is written as 3.0: JSON Schema takes both.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(value: &Value) -> Option<u64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        (number.fract() == 0.0 && (0.0..=EXACT).contains(&number)).then_some(number as u64)
    })
}

fn is_one_expression(text: &str) -> bool {
    text.starts_with("${") && text.ends_with('}')
}
