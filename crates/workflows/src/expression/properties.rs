//! What holds for every expression (WF-19.5).

use proptest::prelude::*;
use serde_json::{Value, json};

use super::tests::{World, template};
use super::{Condition, Fuel, Reference, Template};
use crate::definition::Place;
use crate::limits;

/// Texts that look like expressions often enough to reach deep into the parser.
fn expression_like() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "${",
        "}",
        "steps",
        ".",
        "a",
        "output",
        "variables",
        "env",
        "item",
        "[",
        "]",
        "0",
        "12",
        "??",
        " ",
        "\"",
        "'",
        "\\",
        "$",
        "$$",
        "{",
        "true",
        "null",
        "1.5",
        "__proto__",
        "é",
        "==",
        "!=",
        "<",
        "&&",
        "||",
        "!",
        "(",
        ")",
    ]);
    prop_oneof![
        prop::collection::vec(token, 0..40).prop_map(|tokens| tokens.concat()),
        ".{0,200}",
        reference(),
    ]
}

fn default() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        (-1000_i32..1000).prop_map(|number| format!(" ?? {number}")),
        "[ -~]{0,30}".prop_map(|text| format!(" ?? {}", json!(text))),
        "[a-z]{1,10}( [a-z]{1,5})?".prop_map(|text| format!("??{text}")),
        prop::collection::vec(any::<i8>(), 0..5).prop_map(|list| format!("?? {} ", json!(list))),
        "[ -&(-\\[\\]-~]{0,20}".prop_map(|text| format!(" ?? '{text}'")),
    ]
}

/// A well-formed expression.
fn reference() -> impl Strategy<Value = String> {
    let root = prop_oneof![
        "[a-zA-Z0-9_-]{1,12}".prop_map(|id| format!("steps.{id}.output")),
        "[a-zA-Z0-9_-]{1,12}".prop_map(|name| format!("variables.{name}")),
        prop::sample::select(super::LOCALS.to_vec()).prop_map(String::from),
    ];
    let part = prop_oneof![
        "[a-zA-Z0-9_]{1,8}".prop_map(|name| format!(".{name}")),
        (0..100_u32).prop_map(|n| format!("[{n}]"))
    ];
    (root, prop::collection::vec(part, 0..=limits::PATH_DEPTH), default())
        .prop_map(|(root, path, default)| format!("${{{root}{}{default}}}", path.concat()))
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        expression_like().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(".{0,6}", inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Where a generated value is found: as the output of `a`, the variable `name` and the local `item`.
fn world(value: &Value) -> World {
    let mut world = World::new();
    world.outputs.insert(String::from("a"), value.clone());
    world.variables.insert(String::from("name"), value.clone());
    world.locals.insert(String::from("item"), value.clone());
    world
}

fn longest_text(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(longest_text).max().unwrap_or(0),
        Value::Object(fields) => fields.values().map(longest_text).max().unwrap_or(0),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn wf_19_5_no_template_panics_and_resolving_is_deterministic(source in any_json(), value in any_json()) {
        let mut problems = Vec::new();
        let template = Template::parse(&source, &Place::ROOT, &mut problems);
        let world = world(&value);
        let first = template.resolve(&world, &mut Fuel::evaluation()).map_err(|fault| fault.to_string());
        let second = template.clone().resolve(&world, &mut Fuel::evaluation()).map_err(|fault| fault.to_string());
        prop_assert_eq!(&first, &second);
        if let (Some(constant), Ok(resolved)) = (template.constant(), &first) {
            prop_assert_eq!(constant, resolved);
        }
        prop_assert_eq!(template.source(), &source);
    }

    #[test]
    fn wf_19_5_no_condition_panics(text in expression_like(), value in any_json()) {
        let mut problems = Vec::new();
        let condition = Condition::parse(&text, &Place::ROOT, &mut problems);
        let world = world(&value);
        let first = condition.test(&world, &mut Fuel::evaluation()).map_err(|fault| fault.to_string());
        prop_assert_eq!(first, condition.test(&world, &mut Fuel::evaluation()).map_err(|fault| fault.to_string()));
    }

    #[test]
    fn wf_19_5_what_is_printed_reads_the_same(text in reference()) {
        prop_assume!(!super::DANGEROUS.iter().any(|name| text.contains(name)));
        let first = template(&json!(text)).map_err(|problems| TestCaseError::fail(format!("{text}: {problems:?}")))?;
        let printed = first.references().map(Reference::to_string).collect::<String>();
        let second = template(&json!(printed)).map_err(|problems| TestCaseError::fail(format!("{printed}: {problems:?}")))?;
        prop_assert!(first.references().eq(second.references()), "{} and {}", text, printed);
    }

    #[test]
    fn wf_19_5_the_type_of_a_value_is_kept(value in any_json()) {
        for source in ["${steps.a.output}", "${variables.name}", "${item}"] {
            let resolved = template(&json!(source)).unwrap().resolve(&world(&value), &mut Fuel::evaluation()).unwrap();
            prop_assert_eq!(&resolved, &value);
        }
        let text = template(&json!("<${steps.a.output}>")).unwrap().resolve(&world(&value), &mut Fuel::evaluation()).unwrap();
        let inside = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        prop_assert_eq!(text, json!(format!("<{inside}>")));
    }

    #[test]
    fn wf_19_5_a_text_never_grows_beyond_its_limit(length in 0..40_000_usize, times in 1..5_usize) {
        let mut world = World::new();
        world.variables.insert(String::from("name"), json!("x".repeat(length)));
        let resolved = template(&json!(["${variables.name}".repeat(times)])).unwrap().resolve(&world, &mut Fuel::evaluation());
        prop_assert_eq!(resolved.is_ok(), length * times <= limits::EXPANSION_BYTES);
        prop_assert!(longest_text(&resolved.unwrap_or_default()) <= limits::EXPANSION_BYTES);
    }

    #[test]
    fn wf_19_5_a_text_without_expressions_is_left_alone(text in "[^$]{0,100}") {
        let template = template(&json!(text)).unwrap();
        prop_assert!(template.is_literal());
        prop_assert_eq!(template.resolve(&World::new(), &mut Fuel::evaluation()).unwrap(), json!(text));
    }
}
