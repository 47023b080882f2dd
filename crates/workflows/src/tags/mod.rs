//! Tags of executions, such as `customer=42`: given at the start or by the definition, and found again through an index.
//!
//! The tags themselves are part of what an execution was started with, which its journal covers. The table of tags is only the
//! index over them.

pub mod tables;

use std::collections::BTreeMap;

use orchestr8_contract::Fault;
use orchestr8_contract::json::kind;
use orchestr8_kernel::ports::store::Store;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::engine::scope::Frame;
use crate::engine::state::State;
use crate::expression::{Fuel, Template};
use crate::limits::{TAG_KEY_CHARACTERS, TAG_SEARCH_COUNTED, TAG_VALUE_BYTES, TAGS};
use crate::runtime::fault;
use crate::tables::Wanted;

/// The tags of one execution, in the order of their keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExecutionTags(BTreeMap<String, String>);

/// Where the tags of a new execution come from. What is given goes before what its definition says, and that before what is inherited.
#[derive(Debug, Clone, Default)]
pub struct TagSources {
    /// Those of the execution that starts it.
    pub inherited: ExecutionTags,
    pub given: ExecutionTags,
}

impl ExecutionTags {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Adds tags, in place of those with the same keys.
    #[must_use]
    pub fn with(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// Reads the member of a request that holds tags. `at` is its JSON path.
    pub fn read(value: Option<&Value>, at: &str) -> Result<Self, Fault> {
        let members = match value {
            None | Some(Value::Null) => return Ok(Self::default()),
            Some(Value::Object(members)) => members,
            Some(other) => return Err(wrong(at, &format!("must be an object, and is {}", kind(other)))),
        };
        let mut tags = BTreeMap::new();
        for (key, value) in members {
            let place = format!("{at}/{}", key.chars().take(TAG_KEY_CHARACTERS).collect::<String>());
            check_key(key).map_err(|what| wrong(&place, what))?;
            let Value::String(text) = value else {
                return Err(wrong(&place, &format!("a tag's value must be a text, and is {}", kind(value))));
            };
            check_value(text).map_err(|what| wrong(&place, &what))?;
            tags.insert(key.clone(), text.clone());
        }
        within_limit(Self(tags), at)
    }
}

/// What is wrong with a key, if anything is.
pub fn check_key(key: &str) -> Result<(), &'static str> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    match (1..=TAG_KEY_CHARACTERS).contains(&key.len()) && key.bytes().all(is_allowed) {
        true => Ok(()),
        false => Err("a tag's key has 1 to 64 of the characters A-Z a-z 0-9 _ . -"),
    }
}

fn check_value(value: &str) -> Result<(), String> {
    match (1..=TAG_VALUE_BYTES).contains(&value.len()) && !value.chars().any(char::is_control) {
        true => Ok(()),
        false => Err(format!("a tag's value has 1 to {TAG_VALUE_BYTES} bytes of printable text")),
    }
}

fn wrong(at: &str, what: &str) -> Fault {
    Fault::invalid(format!("{at}: {what}")).with("path", at)
}

fn within_limit(tags: ExecutionTags, at: &str) -> Result<ExecutionTags, Fault> {
    match tags.0.len() <= TAGS {
        true => Ok(tags),
        false => Err(wrong(at, &format!("an execution has at most {TAGS} tags"))),
    }
}

/// The tags of a new execution. `state` is the one it begins with.
pub fn resolve(
    template: Option<&Template>,
    sources: TagSources,
    state: impl FnOnce() -> State,
) -> Result<ExecutionTags, Fault> {
    let defined = match template {
        Some(template) => defined(template, &state())?,
        None => ExecutionTags::default(),
    };
    within_limit(sources.inherited.with(defined).with(sources.given), "/tags")
}

/// What the definition says for these inputs. A tag that is null is left out: its input may be optional.
fn defined(template: &Template, state: &State) -> Result<ExecutionTags, Fault> {
    const AT: &str = "/policies/tags";
    let members: Map<String, Value> = match template.resolve(&Frame::of(state), &mut Fuel::inline())? {
        Value::Object(members) => members,
        other => return Err(wrong(AT, &format!("must give an object, and gives {}", kind(&other)))),
    };
    let mut texts = Map::new();
    for (key, value) in members {
        match value {
            Value::Null => {}
            Value::Bool(_) | Value::Number(_) => {
                texts.insert(key, value.to_string().into());
            }
            Value::String(_) | Value::Array(_) | Value::Object(_) => {
                texts.insert(key, value);
            }
        }
    }
    ExecutionTags::read(Some(&Value::Object(texts)), AT)
}

/// The filter that the fewest executions pass, as far as they are counted: a search along it looks at the fewest rows.
pub async fn rarest_filter(store: &dyn Store, wanted: &Wanted<'_>) -> Result<tables::SearchIndex, Fault> {
    let candidates = tables::candidates(wanted);
    let mut best = (i64::MAX, tables::SearchIndex::Tag(0));
    if candidates.len() > 1 {
        for index in candidates {
            let count = tables::count_up_to(wanted, index, TAG_SEARCH_COUNTED);
            let rows = store.query(count).await.map_err(fault)?;
            let count = rows.first().map_or(Ok(0), |row| row.int(0)).map_err(fault)?;
            if count < best.0 {
                best = (count, index);
            }
        }
    }
    Ok(best.1)
}

#[cfg(test)]
mod tests;
