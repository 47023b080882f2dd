//! Where a value stands in a document: `auth.tokens[0].name`.

use std::fmt;

use serde_json::{Map, Value};

use super::table::Setting;

/// A step on the way to a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    Name(String),
    Index(usize),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(pub Vec<Step>);

impl Place {
    /// The place of a setting that is in no list and no object of names.
    pub fn of(setting: &Setting) -> Self {
        Self(setting.segments().map(|segment| Step::Name(segment.to_owned())).collect())
    }

    #[must_use]
    pub fn then(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    #[must_use]
    pub fn then_name(&self, name: &str) -> Self {
        self.then(Step::Name(name.to_owned()))
    }

    pub fn depth(&self) -> usize {
        self.0.len()
    }

    /// The item of a list or object it belongs to.
    pub fn item(&self) -> &[Step] {
        self.0.split_last().map_or(&[], |(_, item)| item)
    }

    /// Puts a value there, making what is missing on the way.
    pub fn insert(&self, root: &mut Value, value: Value) {
        let mut node = root;
        for step in &self.0 {
            node = child(node, step);
        }
        *node = value;
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(item) => write!(out, "[{item}]")?,
                Step::Name(name) if index == 0 => out.write_str(name)?,
                Step::Name(name) => write!(out, ".{name}")?,
            }
        }
        Ok(())
    }
}

fn child<'a>(node: &'a mut Value, step: &Step) -> &'a mut Value {
    match step {
        Step::Name(name) => {
            if !node.is_object() {
                *node = Value::Object(Map::new());
            }
            &mut node[name.as_str()]
        }
        Step::Index(index) => {
            let mut items = match node.take() {
                Value::Array(items) => items,
                _ => Vec::new(),
            };
            items.resize(items.len().max(index + 1), Value::Null);
            *node = Value::Array(items);
            &mut node[*index]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_place_reads_like_a_path_and_is_made_on_the_way() {
        let place =
            Place::default().then_name("auth").then_name("tokens").then(Step::Index(1)).then_name("name");
        assert_eq!(place.to_string(), "auth.tokens[1].name");
        let mut root = json!({"auth": {"tokens": [{"name": "a"}]}});
        place.insert(&mut root, json!("b"));
        assert_eq!(root, json!({"auth": {"tokens": [{"name": "a"}, {"name": "b"}]}}));
    }
}
