//! What it costs to check a value against a JSON Schema, known before anything is checked.
//!
//! Schemas come from definitions of workflows, from clients and from other servers. Alternatives that refer to each other double the
//! work with each level, so a few kilobytes could keep a core busy for ever. Three figures bound the work: how many subschemas there are once all references are written
//! out (`expansion`), by how much a level of nesting multiplies the work of a schema that refers to itself (`branching`), and the patterns.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

/// Subschemas of one schema with its references written out. The largest that tools in use have is in the hundreds.
pub const EXPANSION: u64 = 20_000;

/// Subschemas that one check may look at: about a second of work.
pub const CHECKED: u64 = 20_000_000;

/// Patterns of one schema, and the length of each: they are compiled when the schema is.
pub const PATTERNS: usize = 256;
pub const PATTERN_BYTES: usize = 4_096;

/// Steps of one match of a pattern that needs backtracking: far more than the patterns of schema libraries take, and few enough that
/// thousands of strings are checked within a second.
pub const BACKTRACK_STEPS: usize = 10_000;

/// What one compiled pattern may take in memory, which also bounds the time to compile it.
pub const COMPILED_PATTERN_BYTES: usize = 262_144;

/// Keywords whose subschema, or list of subschemas, or map of subschemas, looks at the same value.
const IN_PLACE: [&str; 9] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"];
/// Keywords whose subschemas look at any member or item of the value.
const EVERY_MEMBER: [&str; 8] = [
    "additionalProperties",
    "items",
    "prefixItems",
    "additionalItems",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Maps from the name of a member, or a pattern of names, to a subschema.
const BY_NAME: [&str; 2] = ["properties", "patternProperties"];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// A schema, known by its address in the source.
type Node = *const Value;

/// Why a schema is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TooCostly {
    #[error("has more than {EXPANSION} subschemas once its references are written out")]
    Expansion,
    #[error("refers to itself without looking at a part of the value")]
    Endless,
    #[error("refers to {0}, which it does not contain")]
    Reference(String),
    #[error("has more than {PATTERNS} patterns, or one of more than {PATTERN_BYTES} bytes")]
    Patterns,
}

/// The figures of one schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaCost {
    expansion: u64,
    branching: u64,
}

impl SchemaCost {
    pub fn of(source: &Value) -> Result<Self, TooCostly> {
        let mut survey = Survey::new(source)?;
        let mut expansion = survey.expand(source)?;
        let leading_back = survey.leading_back();
        let mut branching = 1;
        for node in survey.recursive.values() {
            let mut descents = Descents {
                leading_back: &leading_back,
                above: HashSet::new(),
                visited: 0,
                counts: BTreeMap::new(),
            };
            survey.descend(node, &mut descents)?;
            let everywhere = descents.counts.remove(&None).unwrap_or(0);
            let most = descents.counts.values().max().copied().unwrap_or(0);
            branching = branching.max(everywhere.saturating_add(most));
            expansion = expansion.max(descents.visited);
        }
        Ok(Self { expansion, branching })
    }

    /// Whether a value may be checked: the work is within its limit whatever the value says.
    pub fn allows(self, value: &Value) -> bool {
        let (nodes, depth) = extent(value);
        let per_value = match self.branching {
            0 | 1 => 1,
            more => more.saturating_pow(depth),
        };
        nodes.saturating_mul(self.expansion).saturating_mul(per_value) <= CHECKED
            // Small values of schemas that are plain are the rule.
            || (self.branching <= 1 && nodes <= 16)
    }
}

/// How many values there are in a value, and how deep it nests.
fn extent(value: &Value) -> (u64, u32) {
    let fold = |(nodes, depth): (u64, u32), inner: &Value| {
        let (more, deeper) = extent(inner);
        (nodes + more, depth.max(deeper + 1))
    };
    match value {
        Value::Array(items) => items.iter().fold((1, 0), fold),
        Value::Object(map) => map.values().fold((1, 0), fold),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (1, 0),
    }
}

struct Survey<'s> {
    source: &'s Value,
    /// Schemas that have a name: `$id`, `$anchor`, `$dynamicAnchor`.
    named: Vec<(String, &'s Value)>,
    costs: HashMap<Node, u64>,
    under_way: HashSet<Node>,
    /// Schemas that lead back to themselves.
    recursive: HashMap<Node, &'s Value>,
    /// The schemas that have one as a subschema.
    parents: HashMap<Node, Vec<Node>>,
}

/// What a recursive schema looks at, one level further down.
struct Descents<'a, 's> {
    leading_back: &'a HashSet<Node>,
    above: HashSet<Node>,
    visited: u64,
    /// For each name of a member, how many subschemas look at it that lead back to a recursive schema. None: at every member.
    counts: BTreeMap<Option<&'s str>, u64>,
}

impl<'s> Survey<'s> {
    fn new(source: &'s Value) -> Result<Self, TooCostly> {
        let mut named = Vec::new();
        let mut patterns = 0;
        collect(source, &mut named, &mut patterns)?;
        Ok(Self {
            source,
            named,
            costs: HashMap::new(),
            under_way: HashSet::new(),
            recursive: HashMap::new(),
            parents: HashMap::new(),
        })
    }

    /// The number of subschemas with references written out; a reference back to a schema that is being counted is one.
    fn expand(&mut self, node: &'s Value) -> Result<u64, TooCostly> {
        if let Some(cost) = self.costs.get(&(node as Node)) {
            return Ok(*cost);
        }
        let Value::Object(map) = node else { return Ok(1) };
        if !self.under_way.insert(node) {
            self.recursive.insert(node, node);
            return Ok(1);
        }
        let mut cost: u64 = 1;
        for (_, inner) in self.subschemas(map)? {
            self.parents.entry(inner).or_default().push(node);
            cost = cost.saturating_add(self.expand(inner)?);
            if cost > EXPANSION {
                return Err(TooCostly::Expansion);
            }
        }
        self.under_way.remove(&(node as Node));
        self.costs.insert(node, cost);
        Ok(cost)
    }

    /// The schemas that lead to a recursive one.
    fn leading_back(&self) -> HashSet<Node> {
        let mut unread: Vec<Node> = self.recursive.keys().copied().collect();
        let mut leading: HashSet<Node> = unread.iter().copied().collect();
        while let Some(node) = unread.pop() {
            for parent in self.parents.get(&node).into_iter().flatten() {
                if leading.insert(*parent) {
                    unread.push(*parent);
                }
            }
        }
        leading
    }

    /// Follows the subschemas that look at the same value, and counts those that look at its members.
    fn descend(&self, node: &'s Value, descents: &mut Descents<'_, 's>) -> Result<(), TooCostly> {
        let Value::Object(map) = node else { return Ok(()) };
        if !descents.above.insert(node) {
            return Err(TooCostly::Endless);
        }
        descents.visited += 1;
        if descents.visited > EXPANSION {
            return Err(TooCostly::Expansion);
        }
        for (place, inner) in self.subschemas(map)? {
            match place {
                Place::Same => self.descend(inner, descents)?,
                Place::Member(name) if descents.leading_back.contains(&(inner as Node)) => {
                    *descents.counts.entry(name).or_insert(0) += 1;
                }
                Place::Member(_) => {}
            }
        }
        descents.above.remove(&(node as Node));
        Ok(())
    }

    /// The subschemas of a schema, and which part of the value each looks at.
    fn subschemas(&self, map: &'s Map<String, Value>) -> Result<Vec<(Place<'s>, &'s Value)>, TooCostly> {
        let mut found = Vec::new();
        for (keyword, inner) in map {
            let keyword = keyword.as_str();
            if REFERENCES.contains(&keyword) {
                if let Value::String(reference) = inner {
                    found.extend(self.resolve(reference)?.into_iter().map(|node| (Place::Same, node)));
                }
            } else if IN_PLACE.contains(&keyword) {
                found.extend(nested(keyword, inner).map(|node| (Place::Same, node)));
            } else if EVERY_MEMBER.contains(&keyword) {
                found.extend(nested(keyword, inner).map(|node| (Place::Member(None), node)));
            } else if let (true, Value::Object(members)) = (BY_NAME.contains(&keyword), inner) {
                let exact = keyword == "properties";
                found.extend(
                    members.iter().map(|(name, node)| (Place::Member(exact.then_some(name.as_str())), node)),
                );
            }
        }
        Ok(found)
    }

    /// The schemas that a reference may mean: those of its pointer, or all of its name.
    fn resolve(&self, reference: &str) -> Result<Vec<&'s Value>, TooCostly> {
        let missing = || TooCostly::Reference(reference.chars().take(100).collect());
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let roots: Vec<&'s Value> = match document {
            "" => vec![self.source],
            // Those of the drafts themselves are part of the library, and finite.
            known if known.contains("://json-schema.org/") => return Ok(Vec::new()),
            name => self.named.iter().filter(|(id, _)| id.ends_with(name)).map(|(_, node)| *node).collect(),
        };
        let fragment = percent_decoded(fragment);
        let found: Vec<&'s Value> = match fragment.as_str() {
            "" => roots,
            pointer if pointer.starts_with('/') => {
                roots.iter().filter_map(|root| root.pointer(pointer)).collect()
            }
            anchor => {
                let anchor = format!("#{anchor}");
                self.named.iter().filter(|(id, _)| *id == anchor).map(|(_, node)| *node).collect()
            }
        };
        if found.is_empty() { Err(missing()) } else { Ok(found) }
    }
}

/// Which part of a value a subschema looks at.
enum Place<'s> {
    Same,
    /// A member with this name; none: any member or item.
    Member(Option<&'s str>),
}

/// The subschemas below a keyword: one, a list, or a map of them.
fn nested<'s>(keyword: &str, inner: &'s Value) -> Box<dyn Iterator<Item = &'s Value> + 's> {
    match inner {
        Value::Array(list) => Box::new(list.iter()),
        Value::Object(map) if matches!(keyword, "dependentSchemas" | "dependencies") => {
            Box::new(map.values())
        }
        Value::Object(_) => Box::new(std::iter::once(inner)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Box::new(std::iter::empty()),
    }
}

/// Collects the schemas with a name, and counts the patterns.
fn collect<'s>(
    value: &'s Value,
    named: &mut Vec<(String, &'s Value)>,
    patterns: &mut usize,
) -> Result<(), TooCostly> {
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| collect(item, named, patterns)),
        Value::Object(map) => {
            for (key, inner) in map {
                match (key.as_str(), inner) {
                    ("$id" | "id", Value::String(id)) => named.push((id.clone(), value)),
                    ("$anchor" | "$dynamicAnchor", Value::String(id)) => {
                        named.push((format!("#{id}"), value))
                    }
                    ("pattern", Value::String(pattern)) => count(pattern, patterns)?,
                    ("patternProperties", Value::Object(members)) => {
                        members.keys().try_for_each(|pattern| count(pattern, patterns))?;
                    }
                    _ => {}
                }
                collect(inner, named, patterns)?;
            }
            Ok(())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

fn count(pattern: &str, patterns: &mut usize) -> Result<(), TooCostly> {
    *patterns += 1;
    match *patterns > PATTERNS || pattern.len() > PATTERN_BYTES {
        true => Err(TooCostly::Patterns),
        false => Ok(()),
    }
}

/// A pointer in a reference is percent-encoded.
fn percent_decoded(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match (first, digits.and_then(|digits| u8::from_str_radix(digits, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| fragment.to_owned())
}

#[cfg(test)]
mod tests;
