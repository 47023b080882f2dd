//! Where in a JSON document something is: `$.steps[2].input.url`. Built without allocating; only a mistake prints it.

use std::fmt;

/// One place, which knows the place it is in.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    outer: Option<&'a Place<'a>>,
    part: Part<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Part<'a> {
    Named(&'a str),
    Field(&'a str),
    Item(usize),
}

impl<'a> Place<'a> {
    /// The whole document.
    pub const ROOT: Place<'static> = Place::named("$");

    /// A place that is known by its printed form already.
    pub const fn named(path: &'a str) -> Self {
        Self { outer: None, part: Part::Named(path) }
    }

    pub fn field(&'a self, name: &'a str) -> Self {
        Self { outer: Some(self), part: Part::Field(name) }
    }

    pub fn item(&'a self, index: usize) -> Self {
        Self { outer: Some(self), part: Part::Item(index) }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(outer) = self.outer {
            outer.fmt(out)?;
        }
        match self.part {
            Part::Named(path) => out.write_str(path),
            Part::Item(index) => write!(out, "[{index}]"),
            Part::Field(name) if is_plain(name) => write!(out, ".{name}"),
            Part::Field(name) => write!(out, "[{}]", serde_json::Value::from(name)),
        }
    }
}

/// Whether a name can stand after a dot without quotes.
fn is_plain(name: &str) -> bool {
    let mut letters = name.bytes();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_' || first == b'$')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_prints_as_a_json_path() {
        let steps = Place::ROOT.field("steps");
        let step = steps.item(2);
        let input = step.field("input");
        assert_eq!(input.field("url").to_string(), "$.steps[2].input.url");
        assert_eq!(input.field("content-type").to_string(), "$.steps[2].input[\"content-type\"]");
        assert_eq!(Place::named("$.a").item(0).to_string(), "$.a[0]");
    }
}
