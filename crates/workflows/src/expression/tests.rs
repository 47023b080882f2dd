//! What expressions and conditions mean, example by example (WF-19.5).

use std::borrow::Cow;
use std::collections::HashMap;

use orchestr8_contract::Code;
use serde_json::{Value, json};

use super::{Condition, Found, Reference, Scope, Template};
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

    fn variable(&self, name: &str) -> Option<&Value> {
        self.variables.get(name)
    }

    fn env(&self, name: &str) -> Option<Cow<'_, str>> {
        (name == "HOME").then_some(Cow::Borrowed("/home/ada"))
    }

    fn secret(&self, name: &str) -> Option<Cow<'_, str>> {
        (name == "KEY").then(|| Cow::Owned(String::from("s3cret")))
    }

    fn local(&self, name: &str) -> Option<Cow<'_, Value>> {
        self.locals.get(name).map(Cow::Borrowed)
    }
}

pub(super) fn template(value: &Value) -> Result<Template, Vec<Problem>> {
    let mut problems = Vec::new();
    let template = Template::parse(value, &Place::ROOT, &mut problems);
    if problems.is_empty() { Ok(template) } else { Err(problems) }
}

fn resolve(text: &str) -> Result<Value, Code> {
    template(&json!(text)).unwrap().resolve(&World::new()).map_err(|fault| fault.code)
}

fn refused(text: &str) -> String {
    let problems = template(&json!(text)).expect_err(text);
    assert_eq!(problems[0].code, Code::ExprInvalidSyntax);
    assert!(problems[0].hint.ends_with('.'), "{text}: {}", problems[0].hint);
    problems[0].message.clone()
}

#[test]
fn wf_19_5_one_expression_keeps_its_type() {
    for (text, expected) in [
        ("${steps.a.output.number}", json!(5)),
        ("${steps.a.output.flag}", json!(true)),
        ("${steps.a.output.nothing}", Value::Null),
        ("${steps.a.output.list[0]}", json!({"x": 1})),
        ("${steps.a.output.list[0].x}", json!(1)),
        ("${steps.a.output.list.1}", json!("two")),
        ("${steps.a.output.list.length}", json!(2)),
        ("${steps.a.output[0]}", json!("zero")),
        ("${ steps.a.output.deep }", json!({"a": {"b": "c"}})),
        ("${variables.name}", json!("Ada")),
        ("${env.HOME}", json!("/home/ada")),
        ("${secrets.KEY}", json!("s3cret")),
        ("${item.id}", json!(7)),
        ("${index}", json!(3)),
    ] {
        assert_eq!(resolve(text), Ok(expected), "{text}");
    }
    assert_eq!(resolve("${steps.a.output}"), Ok(World::new().outputs["a"].clone()));
}

#[test]
fn wf_19_5_embedded_expressions_become_text() {
    for (text, expected) in [
        ("Hello ${variables.name}!", "Hello Ada!"),
        ("${steps.a.output.number}${steps.a.output.flag}", "5true"),
        ("x${steps.a.output.nothing}", "xnull"),
        (" ${steps.a.output.list}", r#" [{"x":1},"two"]"#),
        ("$${steps.a.output.text}", "${steps.a.output.text}"),
        ("$$${x} costs $5 and ends in $", "$${x} costs $5 and ends in $"),
        ("plain { text }", "plain { text }"),
    ] {
        assert_eq!(resolve(text), Ok(json!(expected)), "{text}");
    }
}

#[test]
fn wf_19_5_expressions_are_found_anywhere_in_a_value() {
    let value = json!({"a": ["${index}", {"b": "n=${index}"}], "c": 1, "${index}": "$${"});
    let template = template(&value).unwrap();
    assert_eq!(
        template.resolve(&World::new()).unwrap(),
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
    assert_eq!(template.resolve(&World::new()).unwrap(), json!("${index}"));
    let escaped = super::tests::template(&json!({"a": "$${x}"})).unwrap();
    assert_eq!(escaped.constant(), Some(&json!({"a": "${x}"})));
}

#[test]
fn wf_19_5_a_default_stands_in_for_what_is_missing_or_null() {
    for (text, expected) in [
        (r#"${steps.b.output.x ?? "later"}"#, json!("later")),
        ("${steps.a.output.none ?? 'it\\'s \"so\"'}", json!("it's \"so\"")),
        ("${steps.a.output.nothing ?? 1.5}", json!(1.5)),
        ("${variables.null ?? [1, \"}\"]}", json!([1, "}"])),
        ("${variables.none??{\"a\":{}}}", json!({"a": {}})),
        ("${variables.none ?? bare text }", json!("bare text")),
        ("${variables.none ?? true}", json!(true)),
        ("${variables.none ?? \"\"}", json!("")),
        (r#"${variables.none ?? "\u00e9\n"}"#, json!("é\n")),
        ("${env.NONE ?? null}", Value::Null),
        ("${steps.a.output.text ?? x}", json!("hi")),
        ("${steps.a.output.text.inside ?? x}", json!("x")),
        ("a${variables.none ?? 1}b", json!("a1b")),
    ] {
        assert_eq!(resolve(text), Ok(expected), "{text}");
    }
}

#[test]
fn wf_19_5_what_is_missing_without_a_default_fails_at_once() {
    for (text, code) in [
        ("${steps.b.output.x}", Code::ExprStepNotCompleted),
        ("${steps.c.output.x}", Code::ExprStepNotFound),
        ("${steps.c.output.x ?? 1}", Code::ExprStepNotFound),
        ("${steps.a.output.none}", Code::ExprPathNotFound),
        ("${steps.a.output.list[2]}", Code::ExprPathNotFound),
        ("${steps.a.output.list.01}", Code::ExprPathNotFound),
        ("${steps.a.output.text.length}", Code::ExprPathNotFound),
        ("${variables.none}", Code::ExprPathNotFound),
        ("${env.PATH}", Code::ExprPathNotFound),
        ("${secrets.OTHER}", Code::ExprPathNotFound),
        ("${last}", Code::ExprPathNotFound),
    ] {
        assert_eq!(resolve(text), Err(code), "{text}");
    }
}

#[test]
fn wf_19_5_other_syntax_is_refused() {
    for (text, message) in [
        ("${", "the expression is not closed"),
        ("${}", "'}' is not expected in an expression"),
        ("${steps}", "steps must be followed by a name"),
        ("${steps.a}", "steps.a must be followed by .output"),
        ("${steps.a.outputs.x}", "'s' is not expected in an expression"),
        ("${steps.a.output.}", "'}' is not expected in an expression"),
        ("${steps.a.output.x()}", "'(' is not expected in an expression"),
        ("${steps.a.output.x y}", "'y' is not expected in an expression"),
        ("${steps.a.output.a-b}", "'-' is not expected in an expression"),
        ("${steps.a.output[x]}", "brackets in a path hold a number, counted from 0"),
        ("${steps.a.output[01]}", "brackets in a path hold a number, counted from 0"),
        ("${steps.a.output[-1]}", "brackets in a path hold a number, counted from 0"),
        ("${process.env.HOME}", "process is not a name expressions know"),
        ("${inputs.x}", "inputs is not a name expressions know"),
        ("${env.HOME.x}", "HOME is a text and has nothing inside"),
        ("${index ?? }", "the default is missing"),
        ("${index ?? variables.x}", "the default variables.x is not a literal"),
        ("${index ?? 1 ?? 2}", "the default 1 ?? 2 is not a literal"),
        ("${index ?? \"x}", "a quoted text is not closed"),
        ("${index ?? [1}", "[1} is not JSON"),
        ("${index ?? [[1]", "a JSON literal is not closed"),
        ("${index ??\r \r}", "the default has '\\r', which is not printable ASCII"),
        ("${index ?? é}", "the default has 'é', which is not printable ASCII"),
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
fn wf_19_5_depth_and_default_have_limits() {
    let path = |depth: usize| format!("${{steps.a.output{}}}", ".x".repeat(depth));
    assert!(template(&json!(path(limits::PATH_DEPTH))).is_ok());
    assert_eq!(refused(&path(limits::PATH_DEPTH + 1)), "the path is deeper than 10 levels");
    for quote in ["\"", "'", ""] {
        let default = |length: usize| format!("${{index ?? {quote}{}{quote}}}", "x".repeat(length));
        assert!(template(&json!(default(limits::DEFAULT_BYTES))).is_ok());
        assert_eq!(
            refused(&default(limits::DEFAULT_BYTES + 1)),
            "the default is longer than 1024 characters"
        );
    }
}

#[test]
fn wf_19_5_expansion_has_a_limit() {
    let mut world = World::new();
    world.variables.insert("long".into(), json!("x".repeat(limits::EXPANSION_BYTES)));
    let code = |text: &str, world: &World| {
        template(&json!(text)).unwrap().resolve(world).map(|_| ()).map_err(|fault| fault.code)
    };
    assert_eq!(code("${variables.long}", &world), Ok(()));
    assert_eq!(code("${variables.long}!", &world), Err(Code::PayloadTooLarge));
    world.variables.insert("longer".into(), json!("x".repeat(limits::EXPANSION_BYTES + 1)));
    assert_eq!(code("${variables.longer}", &world), Err(Code::PayloadTooLarge));
    world.variables.insert("list".into(), json!(["x".repeat(limits::EXPANSION_BYTES * 2)]));
    assert_eq!(code("${variables.list}", &world), Ok(()), "a value that stays a value is not a text");
    let many: Vec<&str> = vec!["${variables.list}"; limits::RESOLVED_BYTES / limits::EXPANSION_BYTES / 2];
    let fault = template(&json!(many)).unwrap().resolve(&world).unwrap_err();
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
    condition.test(&World::new()).map_err(|fault| fault.code)
}

#[test]
fn wf_19_5_conditions_hold_or_not() {
    for text in [
        "${steps.a.output.text}",
        "${steps.a.output.number} > 4",
        "${steps.a.output.number} >= 5.0 && ${steps.a.output.number} == 5.0",
        "!${steps.a.output.empty}",
        "!${steps.a.output.nothing}",
        "${steps.a.output.text} == \"hi\"",
        "'${steps.a.output.text}' == 'hi'",
        "\"n${steps.a.output.number}\" == \"n5\"",
        "'a' < 'b'",
        "${steps.a.output.list} == [{\"x\": 1.0}, \"two\"]",
        "${steps.a.output.text} != null",
        "false || (1 < 2 && !(2 < 1))",
        "false && false || true",
        "true || ${steps.b.output.x}",
        "${steps.b.output.x ?? true}",
        "!!1",
        "-1 < 1e3",
        "9007199254740993 > 9007199254740992",
    ] {
        assert_eq!(test(text), Ok(true), "{text}");
    }
    for text in ["0", "\"\"", "{}", "[]", "null", "false", "1 == \"1\"", "${index} <= 2", "!(true)"] {
        assert_eq!(test(text), Ok(false), "{text}");
    }
    assert_eq!(test("1 < \"a\""), Err(Code::InvalidArgument));
    assert_eq!(test("${steps.b.output.x} == 1"), Err(Code::ExprStepNotCompleted));
}

#[test]
fn wf_19_5_broken_conditions_are_refused() {
    let deep = "(".repeat(limits::CONDITION_DEPTH + 1);
    for (text, message) in [
        ("", "the condition ends too early"),
        ("${index} ==", "the condition ends too early"),
        ("(true", "the condition ends too early"),
        ("true)", "')' is not expected in a condition"),
        ("true = false", "'=' is not expected in a condition"),
        ("1 < 2 < 3", "two comparisons follow each other"),
        ("${index} == ready", "ready is neither an expression nor a JSON literal"),
        ("steps.a.output.x", "steps.a.output.x is neither an expression nor a JSON literal"),
        ("${x} == 1", "x is not a name expressions know"),
        ("'${x}' == 1", "x is not a name expressions know"),
        (deep.as_str(), "the condition is nested deeper than 32 levels"),
    ] {
        let mut problems = Vec::new();
        Condition::parse(text, &Place::ROOT.field("if"), &mut problems);
        assert_eq!(problems.len(), 1, "{text}");
        assert_eq!((problems[0].path.as_str(), problems[0].message.as_str()), ("$.if", message), "{text}");
    }
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
