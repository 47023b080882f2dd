//! JSON Schemas, compiled once. That of a tool is compiled when it is registered, and a call only uses it (MCP-SCHEMA-1..5);
//! that of an action which no list shows is compiled when it is first asked for, which in most processes never happens.

use std::sync::LazyLock;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, Validator};
use orchestr8_contract::json::bytes as json_size;
use orchestr8_contract::{Code, Fault, limits};
use serde_json::{Value, json};

use crate::schema_cost::{BACKTRACK_STEPS, COMPILED_PATTERN_BYTES, SchemaCost, TooCostly};

/// A schema is refused beyond this size: compiling must stay cheap, and lists of tools must stay readable.
pub const SCHEMA_BYTES: usize = 262_144;

/// A refusal names at most this many mistakes.
pub const MISTAKES: usize = 20;

/// The one form of a UUID that JSON Schema takes: with hyphens.
const UUID_CHARACTERS: usize = 36;

/// A quoted piece of somebody's data in an error is cut after this many characters.
const QUOTED_CHARACTERS: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Name(String),
    #[error("the schema's root must be of type \"object\"; it is {0}")]
    Root(String),
    #[error("the schema does not compile: at {path}: {message}")]
    Broken { path: String, message: String },
    #[error("the schema is larger than {SCHEMA_BYTES} bytes")]
    TooLarge,
    #[error("the schema is nested deeper than {} levels", limits::JSON_DEPTH)]
    TooDeep,
    #[error("a tool named {0} exists already")]
    Taken(String),
    #[error("the schema {0}")]
    Costly(#[from] TooCostly),
    #[error("the action {0} has no row in the access table")]
    NoAccessRow(String),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::new(Code::InvalidArgument, error.to_string())
    }
}

/// A schema and its compiled form.
#[derive(Debug)]
pub struct Schema {
    pub source: Value,
    /// Nothing if it is one of our own and wrong.
    validator: LazyLock<Option<Validator>, Make>,
    /// What a check costs, for schemas that are not our own.
    cost: Option<SchemaCost>,
    /// It refuses nothing here: it takes any object, or the work looks at its arguments itself.
    anything: bool,
}

/// What gives the compiled form when it is first asked for.
type Make = Box<dyn FnOnce() -> Option<Validator> + Send>;

/// The schema that takes any object.
pub fn any_object() -> Value {
    json!({"type": "object"})
}

impl Schema {
    pub fn compile(source: Value) -> Result<Self, Error> {
        bounded(&source)?;
        let cost = Some(SchemaCost::of(&source)?);
        let built = build(&source)?;
        let validator = LazyLock::new(Box::new(move || Some(built)) as Make);
        let anything = source == any_object();
        Ok(Self { source, validator, cost, anything })
    }

    /// One that is part of the program and compiled when it is first needed. A test proves them all, since a wrong one would
    /// only be found then.
    pub fn own(source: Value) -> Result<Self, Error> {
        bounded(&source)?;
        let text = source.to_string();
        let make = move || build(&serde_json::from_str(&text).ok()?).ok();
        let (validator, anything) = (LazyLock::new(Box::new(make) as Make), source == any_object());
        Ok(Self { source, validator, cost: None, anything })
    }

    /// Whether it compiles, which `own` has left open.
    pub fn prove(&self) -> Result<(), Error> {
        build(&self.source).map(|_| ())
    }

    /// A schema that is told to clients and left to the work to check, for work that must hear of every call, wrong ones
    /// too.
    pub fn told(source: Value) -> Result<Self, Error> {
        Ok(Self { anything: true, ..Self::own(source)? })
    }

    /// Every mistake with its path, up to a limit (MCP-ORDER-7).
    pub fn check(&self, value: &Value) -> Result<(), Fault> {
        if self.anything {
            return Ok(());
        }
        let Some(validator) = self.validator.as_ref() else {
            return Err(Fault::new(Code::Internal, "the schema of this action is wrong"));
        };
        if self.cost.is_some_and(|cost| !cost.allows(value)) {
            let text = "the value is too large, or nested too deeply, to be checked against its schema";
            return Err(Fault::new(Code::ResourceExhausted, text).with("reason", "schema_cost"));
        }
        if validator.is_valid(value) {
            return Ok(());
        }
        let mut first_mistake = Mistake::Value;
        let mistakes: Vec<(String, String)> = validator
            .iter_errors(value)
            .take(MISTAKES)
            .enumerate()
            .inspect(|(index, error)| {
                if *index == 0 {
                    first_mistake = Mistake::of(error.kind());
                }
            })
            .map(|(_, error)| (place(&error.instance_path().to_string()), cut(&error.to_string())))
            .collect();
        let first =
            mistakes.first().map_or_else(String::new, |(path, message)| format!(": {path}: {message}"));
        let errors: Vec<Value> =
            mistakes.iter().map(|(path, message)| json!({"path": path, "message": message})).collect();
        Err(Fault::new(Code::InvalidArgument, format!("the arguments do not match the schema{first}"))
            .with("reason", "schema_validation_failed")
            .with("errors", errors)
            .because(first_mistake))
    }
}

/// What sort of mistake the first one is, for those who tell them apart (ERR-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    #[error("a value has the wrong type")]
    Type,
    #[error("a value is missing")]
    Missing,
    #[error("a value has the wrong form")]
    Format,
    #[error("a value is not allowed")]
    Value,
}

impl Mistake {
    fn of(kind: &ValidationErrorKind) -> Self {
        match kind {
            ValidationErrorKind::Type { .. } => Mistake::Type,
            ValidationErrorKind::Required { .. } => Mistake::Missing,
            ValidationErrorKind::Format { .. } | ValidationErrorKind::Pattern { .. } => Mistake::Format,
            _ => Mistake::Value,
        }
    }

    pub fn code(self) -> Code {
        match self {
            Mistake::Type => Code::InvalidInputType,
            Mistake::Missing => Code::MissingRequiredField,
            Mistake::Format => Code::InvalidInputFormat,
            Mistake::Value => Code::InvalidInputValue,
        }
    }
}

/// What can be said without compiling it.
fn bounded(source: &Value) -> Result<(), Error> {
    if source.get("type").and_then(Value::as_str) != Some("object") {
        let found = source.get("type").map_or_else(|| String::from("missing"), Value::to_string);
        return Err(Error::Root(found));
    }
    if depth(source) > limits::JSON_DEPTH {
        return Err(Error::TooDeep);
    }
    if json_size(source) > SCHEMA_BYTES {
        return Err(Error::TooLarge);
    }
    Ok(())
}

/// Formats are asserted, patterns match in bounded time, and nothing is fetched from elsewhere. Patterns of ECMA-262 that cannot
/// match in linear time (look-around, back-references) are matched by backtracking, in a limited number of steps.
fn build(source: &Value) -> Result<Validator, Error> {
    let linear = PatternOptions::regex().size_limit(COMPILED_PATTERN_BYTES);
    build_with(source, linear).or_else(|error| {
        let backtracking =
            PatternOptions::fancy_regex().size_limit(COMPILED_PATTERN_BYTES).backtrack_limit(BACKTRACK_STEPS);
        build_with(source, backtracking).map_err(|_| error)
    })
}

fn build_with<E>(source: &Value, patterns: PatternOptions<E>) -> Result<Validator, Error> {
    jsonschema::options()
        .should_validate_formats(true)
        // Draft-07 does not know this one, and tools written for it use it all the same.
        .with_format("uuid", |text: &str| {
            uuid::Uuid::try_parse(text).is_ok() && text.len() == UUID_CHARACTERS
        })
        .with_pattern_options(patterns)
        .offline()
        .build(source)
        .map_err(|error| Error::Broken {
            path: place(&error.instance_path().to_string()),
            message: cut(&error.to_string()),
        })
}

fn place(pointer: &str) -> String {
    if pointer.is_empty() { String::from("/") } else { pointer.to_owned() }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARACTERS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// How deep a value nests; a scalar is 1.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_must_be_an_object() {
        for schema in [json!({"type": "string"}), json!({}), json!(true), json!({"type": ["object"]})] {
            assert!(matches!(Schema::compile(schema), Err(Error::Root(_))));
        }
    }

    #[test]
    fn patterns_with_look_around_are_matched_in_a_limited_number_of_steps() {
        // As the `email()` of zod writes it.
        let email = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$";
        let schema = |pattern: &str| json!({"type": "object", "properties": {"to": {"type": "string", "pattern": pattern}}});
        let compiled = Schema::compile(schema(email)).unwrap();
        assert!(compiled.check(&json!({"to": "ada@example.org"})).is_ok());
        assert!(compiled.check(&json!({"to": "ada..l@example.org"})).is_err());
        // Exponential for a backtracking engine: it gives up instead of matching for ever.
        let hostile = Schema::compile(schema(r"^(?=(a+)+$)b")).unwrap();
        assert!(hostile.check(&json!({"to": format!("{}c", "a".repeat(5_000))})).is_err());
        let broken = Schema::compile(schema("(")).unwrap_err();
        assert!(matches!(broken, Error::Broken { .. }), "{broken}");
    }

    #[test]
    fn a_broken_schema_is_refused_when_registered() {
        let broken = json!({"type": "object", "properties": {"a": {"type": "strnig"}}});
        assert!(matches!(Schema::compile(broken), Err(Error::Broken { .. })));
        let remote = json!({"type": "object", "$ref": "https://example.com/schema.json"});
        assert!(Schema::compile(remote).is_err(), "nothing is fetched");
    }

    #[test]
    fn one_of_our_own_is_compiled_when_it_is_needed_and_does_what_a_compiled_one_does() {
        let source =
            json!({"type":"object","properties":{"a":{"type":"string","pattern":"^x"}},"required":["a"]});
        let (own, compiled) = (Schema::own(source.clone()).unwrap(), Schema::compile(source).unwrap());
        own.prove().unwrap();
        for value in [json!({"a": "xy"}), json!({"a": "y"}), json!({"a": 1}), json!({})] {
            let told = |schema: &Schema| schema.check(&value).map_err(|fault| (fault.code, fault.details));
            assert_eq!(told(&own), told(&compiled));
        }
        assert!(matches!(Schema::own(json!({"type": "string"})), Err(Error::Root(_))));
        let broken = Schema::own(json!({"type": "object", "properties": {"a": {"type": "strnig"}}})).unwrap();
        assert!(matches!(broken.prove(), Err(Error::Broken { .. })));
        assert_eq!(broken.check(&json!({})).unwrap_err().code, Code::Internal);
    }

    #[test]
    fn a_mistake_is_named_with_its_path() {
        let schema = Schema::compile(json!({"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"integer"}}}},"required":["a"]})).unwrap();
        let fault = schema.check(&json!({"a": {"b": "x"}})).unwrap_err();
        assert_eq!(fault.code, Code::InvalidArgument);
        let details = fault.details.unwrap();
        assert_eq!(details["reason"], "schema_validation_failed");
        assert_eq!(details["errors"][0]["path"], "/a/b");
        assert!(schema.check(&json!({"a": {"b": 1}})).is_ok());
    }

    #[test]
    fn formats_are_asserted_in_old_and_new_drafts() {
        for draft in
            ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"]
        {
            let schema = Schema::compile(
                json!({"$schema": draft, "type":"object","properties":{"id":{"type":"string","format":"uuid"}}}),
            )
            .unwrap();
            assert!(schema.check(&json!({"id": "no"})).is_err(), "{draft}");
        }
    }
}
