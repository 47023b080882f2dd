//! What expressions and conditions mean, example by example (WF-19.5).

use std::borrow::Cow;
use std::collections::HashMap;

use orchestr8_contract::Code;
use orchestr8_testing::Table;
use serde_json::{Value, json};

use super::{Condition, Found, Fuel, Reference, Scope, Template};
use crate::definition::{Place, Problem};
use crate::limits;

/// A small world: step `a` has an output, step `b` has none yet.
pub(super) struct World {
    pub outputs: HashMap<String, Value>,
    pub variables: HashMap<String, Value>,
    pub locals: HashMap<String, Value>,
}

impl World {
    pub fn new() -> Self {
        let output = json!({"text": "hi", "number": 5, "flag": true, "nothing": null, "list": [{"x": 1}, "two"],
            "empty": [], "deep": {"a": {"b": "c"}}, "0": "zero", "quote": "say \"x\""});
        Self {
            outputs: HashMap::from([("a".into(), output)]),
            variables: HashMap::from([("name".into(), json!("Ada")), ("null".into(), Value::Null)]),
            locals: HashMap::from([("item".into(), json!({"id": 7})), ("index".into(), json!(3))]),
        }
    }
}

impl Scope for World {
    fn output(&self, step: &str) -> Found<'_> {
        match self.outputs.get(step) {
            Some(output) => Found::Output(output),
            None if step == "b" => Found::NotCompleted,
            None => Found::Unknown,
        }
    }

    fn error(&self, step: &str) -> Option<Value> {
        (step == "c").then(|| json!({"code": "TIMEOUT", "message": "too slow", "attempts": 3}))
    }

    fn variable(&self, name: &str) -> Option<&Value> {
        self.variables.get(name)
    }

    fn env(&self, name: &str) -> Option<Cow<'_, str>> {
        (name == "HOME").then_some(Cow::Borrowed("/home/ada"))
    }

    fn secret(&self, name: &str) -> Option<Cow<'_, str>> {
        (name == "KEY").then(|| Cow::Owned(String::from("s3cret")))
    }

    fn local(&self, name: &str, _: &mut Fuel) -> Option<Cow<'_, Value>> {
        self.locals.get(name).map(Cow::Borrowed)
    }
}

pub(super) fn template(value: &Value) -> Result<Template, Vec<Problem>> {
    let mut problems = Vec::new();
    let template = Template::parse(value, &Place::ROOT, &mut problems);
    if problems.is_empty() { Ok(template) } else { Err(problems) }
}

fn resolve(text: &str) -> Result<Value, Code> {
    template(&json!(text))
        .unwrap()
        .resolve(&World::new(), &mut Fuel::evaluation())
        .map_err(|fault| fault.code)
}

fn table(title: &str) -> Table {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/workflows/tables/expressions.md");
    Table::read(file, title)
}

/// Every text of the table gives what it says.
fn gives(title: &str) {
    table(title).holds(&["gives"], |row| {
        vec![resolve(row.get("text")).map_or_else(|code| code.to_string(), |value| value.to_string())]
    });
}

fn refused(text: &str) -> String {
    let problems = template(&json!(text)).expect_err(text);
    assert_eq!(problems[0].code, Code::ExprInvalidSyntax);
    assert!(problems[0].hint.ends_with('.'), "{text}: {}", problems[0].hint);
    problems[0].message.clone()
}

#[test]
fn wf_19_5_one_expression_keeps_its_type() {
    gives("Values");
    assert_eq!(resolve("${steps.a.output}"), Ok(World::new().outputs["a"].clone()));
}

#[test]
fn wf_19_5_embedded_expressions_become_text() {
    gives("Texts");
}

#[test]
fn wf_19_5_expressions_are_found_anywhere_in_a_value() {
    let value = json!({"a": ["${index}", {"b": "n=${index}"}], "c": 1, "${index}": "$${"});
    let template = template(&value).unwrap();
    assert_eq!(
        template.resolve(&World::new(), &mut Fuel::evaluation()).unwrap(),
        json!({"a": [3, {"b": "n=3"}], "c": 1, "${index}": "${"})
    );
    assert_eq!(template.source(), &value);
    assert!(!template.is_literal());
    let places: Vec<&str> = template.located().map(|(place, _)| place).collect();
    assert_eq!(places, ["$.a[0]", "$.a[1].b"]);
}

#[test]
fn wf_19_5_a_literal_is_taken_as_it_is() {
    let template = Template::literal(json!("${index}"));
    assert!(template.is_literal());
    assert_eq!(template.resolve(&World::new(), &mut Fuel::evaluation()).unwrap(), json!("${index}"));
    let escaped = super::tests::template(&json!({"a": "$${x}"})).unwrap();
    assert_eq!(escaped.constant(), Some(&json!({"a": "${x}"})));
}

#[test]
fn wf_19_5_a_default_stands_in_for_what_is_missing_or_null() {
    gives("Defaults");
}

#[test]
fn wf_19_5_what_is_missing_without_a_default_fails_at_once() {
    table("Missing").holds(&["fails with"], |row| {
        vec![resolve(row.get("text")).map_or_else(|code| code.to_string(), |value| value.to_string())]
    });
}

#[test]
fn wf_19_5_other_syntax_is_refused() {
    table("Refused").holds(&["message"], |row| vec![refused(row.get("text"))]);
    for (text, message) in [
        ("${index ??\r \r}", "the default has '\\r', which is not printable ASCII"),
        ("${index ?? \"a\nb\"}", "a quoted text is not well formed"),
    ] {
        assert_eq!(refused(text), message, "{text}");
    }
}

#[test]
fn wf_19_5_dangerous_names_are_refused_everywhere() {
    for name in super::DANGEROUS {
        for text in [
            format!("${{steps.a.output.{name}}}"),
            format!("${{steps.a.output.x.{name}.y}}"),
            format!("${{steps.{name}.output}}"),
            format!("${{variables.{name}}}"),
        ] {
            assert_eq!(refused(&text), format!("Dangerous property access: {name}"));
        }
    }
}

#[test]
fn wf_19_5_every_mistake_of_a_text_is_named() {
    let problems = template(&json!({"x": "${a} ${index} ${b}"})).unwrap_err();
    let messages: Vec<_> = problems.iter().map(|one| (one.path.as_str(), one.message.as_str())).collect();
    assert_eq!(
        messages,
        [("$.x", "a is not a name expressions know"), ("$.x", "b is not a name expressions know")]
    );
}

#[test]
fn wf_19_5_the_largest_is_taken_and_one_more_is_not() {
    table("Limits").holds(&["one more"], |row| {
        let limit: usize = row.get("limit").parse().unwrap();
        let long = |bytes: usize| {
            let mut world = World::new();
            world.variables.insert("long".into(), json!("x".repeat(bytes)));
            let found =
                template(&json!("${variables.long}")).unwrap().resolve(&world, &mut Fuel::evaluation());
            found.map(|_| ()).map_err(|fault| fault.code.to_string())
        };
        let path = |depth: usize| format!("${{steps.a.output{}}}", ".x".repeat(depth));
        let default =
            |quote: &str, length: usize| format!("${{index ?? {quote}{}{quote}}}", "x".repeat(length));
        let message = |text: String| match template(&json!(text)) {
            Ok(_) => String::from("taken"),
            Err(problems) => problems[0].message.clone(),
        };
        let (largest, larger) = match row.get("what") {
            "levels of a path" => (message(path(limit)), message(path(limit + 1))),
            "characters of a default" => {
                for quote in ["\"", "'"] {
                    assert_eq!(message(default(quote, limit)), "taken");
                    assert_eq!(message(default(quote, limit + 1)), row.get("one more"));
                }
                (message(default("", limit)), message(default("", limit + 1)))
            }
            what => {
                assert_eq!(what, "bytes of one expanded text");
                (long(limit).map_or_else(|code| code, |()| "taken".into()), long(limit + 1).unwrap_err())
            }
        };
        assert_eq!(largest, "taken", "line {}", row.line);
        vec![larger]
    });
}

#[test]
fn wf_19_5_expansion_has_a_limit() {
    let mut world = World::new();
    world.variables.insert("long".into(), json!("x".repeat(limits::EXPANSION_BYTES)));
    let code = |text: &str, world: &World| {
        template(&json!(text))
            .unwrap()
            .resolve(world, &mut Fuel::evaluation())
            .map(|_| ())
            .map_err(|fault| fault.code)
    };
    assert_eq!(code("${variables.long}", &world), Ok(()));
    assert_eq!(code("${variables.long}!", &world), Err(Code::PayloadTooLarge));
    world.variables.insert("longer".into(), json!("x".repeat(limits::EXPANSION_BYTES + 1)));
    assert_eq!(code("${variables.longer}", &world), Err(Code::PayloadTooLarge));
    world.variables.insert("list".into(), json!(["x".repeat(limits::EXPANSION_BYTES * 2)]));
    assert_eq!(code("${variables.list}", &world), Ok(()), "a value that stays a value is not a text");
    let many: Vec<&str> = vec!["${variables.list}"; limits::RESOLVED_BYTES / limits::EXPANSION_BYTES / 2];
    let fault = template(&json!(many)).unwrap().resolve(&world, &mut Fuel::evaluation()).unwrap_err();
    assert_eq!(fault.code, Code::PayloadTooLarge);
}

#[test]
fn wf_19_5_many_open_literals_are_read_in_linear_time() {
    // Read quadratically, this takes minutes.
    for opening in ["${index ?? [}", "${index ?? \"}", "${index ?? {\"a", "$${", "${"] {
        let text = opening.repeat(1_000_000 / opening.len());
        let mut problems = Vec::new();
        Template::parse(&json!(text), &Place::ROOT, &mut problems);
        assert_eq!(problems.is_empty(), opening == "$${");
    }
}

fn test(text: &str) -> Result<bool, Code> {
    let mut problems = Vec::new();
    let condition = Condition::parse(text, &Place::ROOT, &mut problems);
    assert!(problems.is_empty(), "{text}: {problems:?}");
    assert_eq!(condition.source(), text);
    condition.test(&World::new(), &mut Fuel::evaluation()).map_err(|fault| fault.code)
}

#[test]
fn wf_19_5_conditions_hold_or_not() {
    table("Conditions").holds(&["gives"], |row| {
        let holds = test(row.get("condition"));
        let word = |holds| String::from(if holds { "holds" } else { "does not hold" });
        vec![holds.map_or_else(|code| code.to_string(), word)]
    });
}

#[test]
fn wf_19_5_broken_conditions_are_refused() {
    let broken = |text: &str| {
        let mut problems = Vec::new();
        Condition::parse(text, &Place::ROOT.field("if"), &mut problems);
        assert_eq!(problems.len(), 1, "{text}");
        assert_eq!(problems[0].path, "$.if", "{text}");
        problems[0].message.clone()
    };
    table("Broken conditions").holds(&["message"], |row| vec![broken(row.get("condition"))]);
    let deep = "(".repeat(limits::CONDITION_DEPTH + 1);
    assert_eq!(broken(&deep), "the condition is nested deeper than 32 levels");
}

#[test]
fn wf_19_5_a_reference_prints_as_it_is_written() {
    for text in
        ["${steps.a-1.output.x[0].y ?? \"z\"}", "${variables.a}", "${item[3] ?? [1,2]}", "${execution.id}"]
    {
        let template = template(&json!(text)).unwrap();
        assert_eq!(template.references().map(Reference::to_string).collect::<Vec<_>>(), [text]);
    }
}
