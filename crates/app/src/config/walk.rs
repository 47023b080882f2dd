//! Reads a configuration document against the table: every value to its setting, everything else is a problem.

use serde_json::Value;

use super::layers::{Origin, Problem};
use super::place::{Place, Step};
use super::suggest::suggestion;
use super::table::{SETTINGS, Setting};

/// What was found: values with their places, and what is wrong.
#[derive(Default)]
pub struct Found {
    pub values: Vec<(Place, &'static Setting, Value)>,
    pub problems: Vec<Problem>,
}

pub fn walk(document: &Value, origin: &Origin) -> Found {
    let mut walk = Walk { origin, found: Found::default() };
    let all: Vec<Candidate> = SETTINGS
        .iter()
        .map(|setting| Candidate { setting, segments: setting.segments().collect() })
        .collect();
    walk.node(document, &Place::default(), &all);
    walk.found
}

/// A setting that a place may still turn out to be.
#[derive(Clone)]
struct Candidate {
    setting: &'static Setting,
    segments: Vec<&'static str>,
}

impl Candidate {
    /// Whether a place of this depth is one item of a list, or one of several named ones.
    fn is_item(&self, depth: usize) -> bool {
        depth > 0 && matches!(self.segments[depth - 1], "[]" | "*")
    }
}

struct Walk<'a> {
    origin: &'a Origin,
    found: Found,
}

impl Walk<'_> {
    fn node(&mut self, value: &Value, place: &Place, candidates: &[Candidate]) {
        let depth = place.depth();
        if let Some(leaf) = candidates.iter().find(|candidate| candidate.segments.len() == depth) {
            self.found.values.push((place.clone(), leaf.setting, value.clone()));
            return;
        }
        let is_list = candidates.iter().any(|candidate| candidate.segments[depth] == "[]");
        match (value, is_list) {
            (Value::Array(items), true) => {
                for (index, item) in items.iter().enumerate() {
                    self.node(item, &place.then(Step::Index(index)), candidates);
                }
            }
            (Value::Object(members), false) => {
                if members.is_empty() && candidates.iter().any(|candidate| candidate.is_item(depth)) {
                    self.complain(place, "is empty; it must say what it is");
                }
                for (name, member) in members {
                    self.member(name, member, place, candidates);
                }
            }
            (_, true) => self.complain(place, "must be a list"),
            (_, false) => self.complain(place, "must be an object with settings inside"),
        }
    }

    fn member(&mut self, name: &str, value: &Value, parent: &Place, candidates: &[Candidate]) {
        let depth = parent.depth();
        let place = parent.then_name(name);
        // Editors look there for completions; it is not ours.
        if depth == 0 && name == "$schema" {
            return;
        }
        let any_name = candidates.iter().any(|candidate| candidate.segments[depth] == "*");
        if any_name && !is_item_name(name) {
            self.complain(&place, "has a name that is not 1 to 32 of A-Z a-z 0-9 _ -");
            return;
        }
        let fits = |candidate: &&Candidate| any_name || candidate.segments[depth] == name;
        let inside: Vec<Candidate> = candidates.iter().filter(fits).cloned().collect();
        if inside.is_empty() {
            self.unknown(name, parent, candidates)
        } else {
            self.node(value, &place, &inside)
        }
    }

    fn unknown(&mut self, name: &str, parent: &Place, candidates: &[Candidate]) {
        let here = candidates.iter().map(|candidate| candidate.segments[parent.depth()]);
        let meant = match suggestion(name, here) {
            Some(near) => Some(parent.then_name(near).to_string()),
            // The right name in the wrong place.
            None => SETTINGS
                .iter()
                .find(|setting| setting.segments().last() == Some(name))
                .map(|setting| setting.key.to_owned()),
        };
        let what = match meant {
            Some(meant) => format!("is not a setting; did you mean {meant}?"),
            None => String::from("is not a setting"),
        };
        self.complain(&parent.then_name(name), &what);
    }

    fn complain(&mut self, place: &Place, what: &str) {
        let key = if place.depth() == 0 { String::from("the file") } else { place.to_string() };
        self.found.problems.push(Problem { key, what: what.to_owned(), origin: self.origin.clone() });
    }
}

/// The name of an MCP server becomes the first part of the names of its tools.
fn is_item_name(name: &str) -> bool {
    (1..=32).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
