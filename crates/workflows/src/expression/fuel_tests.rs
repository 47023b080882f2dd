//! Fuel depends on the definition and the data only, bounds what an evaluation does, and its bound is known before.

use orchestr8_contract::Code;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::tests::{World, template};
use super::{Condition, EvaluationCost, Fuel, is_equal_within};
use crate::definition::Place;
use crate::limits::{EVALUATION_FUEL, EXECUTION_FUEL, INLINE_FUEL};

fn condition(text: &str) -> Condition {
    let mut problems = Vec::new();
    let condition = Condition::parse(text, &Place::ROOT, &mut problems);
    assert!(problems.is_empty(), "{text}: {problems:?}");
    condition
}

/// Two long lists that differ in their last item.
fn long_lists(items: usize) -> World {
    let mut world = World::new();
    let mut list = vec![json!("B"); items];
    world.variables.insert(String::from("b"), json!(list));
    list[items - 1] = json!("C");
    world.variables.insert(String::from("c"), json!(list));
    world
}

fn comparisons(terms: usize) -> String {
    vec!["${variables.b} == ${variables.c}"; terms].join(" || ")
}

#[test]
fn an_evaluation_that_compares_too_much_fails_and_says_what_to_do() {
    let mut fuel = Fuel::evaluation();
    let fault = condition(&comparisons(900)).test(&long_lists(6_000), &mut fuel).unwrap_err();
    assert_eq!(fault.code, Code::ExprTooCostly);
    assert_eq!(fault.details.as_ref().unwrap()["limit"], EVALUATION_FUEL);
    assert!(fault.message.contains("compare a length or an id"), "{}", fault.message);
    assert_eq!(fuel.used(), EVALUATION_FUEL);
    assert_eq!(
        condition("1 == 1").test(&World::new(), &mut fuel).unwrap_err().code,
        Code::ExprTooCostly,
        "it stays empty"
    );
    assert!(!condition(&comparisons(50)).test(&long_lists(6_000), &mut Fuel::evaluation()).unwrap());
}

#[test]
fn texts_copies_and_keys_are_paid_for() {
    let mut world = World::new();
    world.variables.insert(String::from("b"), json!("x".repeat(4_000_000)));
    world.variables.insert(String::from("c"), json!("x".repeat(4_000_000)));
    let compared = condition(&comparisons(1).replace("==", "!="));
    let mut fuel = Fuel::evaluation();
    assert!(!compared.test(&world, &mut fuel).unwrap());
    assert!(fuel.used() > 100_000, "{}", fuel.used());
    let ordered = condition(&vec!["${variables.b} < ${variables.c}"; 20].join(" || "));
    assert_eq!(ordered.test(&world, &mut Fuel::evaluation()).unwrap_err().code, Code::ExprTooCostly);
    let fields: serde_json::Map<String, Value> =
        (0..10_000).map(|n| (format!("key-{n}"), Value::Null)).collect();
    world.variables.insert(String::from("b"), Value::Object(fields.clone()));
    world.variables.insert(String::from("c"), Value::Object(fields));
    let mut fuel = Fuel::evaluation();
    assert!(condition("${variables.b} == ${variables.c}").test(&world, &mut fuel).unwrap());
    assert!(fuel.used() >= 20_000, "{}", fuel.used());
    let copies = template(&json!(vec!["${variables.b}"; 30])).unwrap();
    let mut fuel = Fuel::evaluation();
    copies.resolve(&world, &mut fuel).unwrap();
    assert!(fuel.used() >= 30 * 20_000, "{}", fuel.used());
}

#[test]
fn the_limits_of_an_execution_and_of_filters_are_named() {
    let mut last = Fuel::of_execution(EXECUTION_FUEL - 10);
    let fault = condition(&comparisons(1)).test(&long_lists(100), &mut last).unwrap_err();
    assert_eq!(fault.details.unwrap()["limit"], EXECUTION_FUEL);
    assert_eq!(last.used(), 10);
    let fault = condition(&comparisons(30)).test(&long_lists(6_000), &mut Fuel::inline()).unwrap_err();
    assert_eq!(fault.details.unwrap()["limit"], INLINE_FUEL);
    assert!(condition("1 == 1").test(&World::new(), &mut Fuel::of_execution(EXECUTION_FUEL)).is_err());
}

#[test]
fn what_does_not_depend_on_data_is_not_measured() {
    for plain in ["${iteration} < 100", "${steps.a.output.number} == 5", "!(${item.id} > 6) && true"] {
        assert!(!condition(plain).cost().is_sized(), "{plain}");
        assert!(condition(plain).cost().bound(usize::MAX) < 100, "{plain}");
    }
    assert!(condition("${steps.a.output} == ${variables.b}").cost().is_sized());
    assert!(condition("\"${variables.b}\" == \"x\"").cost().is_sized());
    assert!(!template(&json!({"a": [1, "text"]})).unwrap().cost().is_sized());
    assert_eq!(EvaluationCost::default().bound(usize::MAX), 0);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,80}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::btree_map(".{0,6}", inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn any_condition() -> impl Strategy<Value = String> {
    let operand = prop_oneof![
        Just("${variables.b}"),
        Just("${variables.c}"),
        Just("${steps.a.output.list[0].x ?? 3}"),
        Just("${item}"),
        Just("\"<${variables.b}>\""),
        Just("[1, {\"a\": [2]}]"),
        Just("5"),
        Just("${steps.c.error ?? 1}"),
    ];
    let sign = prop_oneof![Just("=="), Just("!="), Just("<")];
    let compared =
        (operand.clone(), sign, operand).prop_map(|(left, sign, right)| format!("{left} {sign} {right}"));
    prop::collection::vec((compared, prop_oneof![Just(" && "), Just(" || ")]), 1..20).prop_map(|terms| {
        let text: String = terms.into_iter().map(|(term, join)| format!("{term}{join}")).collect();
        format!("{text}true")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn fuel_is_deterministic_and_within_its_bound(text in any_condition(), b in any_json(), same in any::<bool>(), other in any_json()) {
        let c = if same { b.clone() } else { other };
        let condition = condition(&text);
        let mut world = World::new();
        world.variables.insert(String::from("b"), b.clone());
        world.variables.insert(String::from("c"), c);
        world.locals.insert(String::from("item"), b);
        let bytes = json!([world.variables, world.locals, world.outputs]).to_string().len();
        let (mut first, mut second) = (Fuel::evaluation(), Fuel::evaluation());
        let result = condition.test(&world, &mut first).map_err(|fault| fault.to_string());
        prop_assert_eq!(&result, &condition.test(&world, &mut second).map_err(|fault| fault.to_string()));
        prop_assert_eq!(first.used(), second.used());
        let bound = condition.cost().bound(bytes);
        prop_assert!(first.used() <= bound, "{} of {bound} for {text}", first.used());
    }

    #[test]
    fn templates_stay_within_their_bound(parts in prop::collection::vec(any_json(), 0..6), b in any_json()) {
        let source = json!({"a": "${variables.b}", "t": "<${variables.b}>", "i": "${index}", "parts": parts});
        let Ok(template) = template(&source) else { return Ok(()) };
        let mut world = World::new();
        world.variables.insert(String::from("b"), b);
        let bytes = json!([world.variables, world.locals, world.outputs]).to_string().len();
        let mut fuel = Fuel::evaluation();
        let _ = template.resolve(&world, &mut fuel);
        prop_assert!(fuel.used() <= template.cost().bound(bytes), "{} for {source}", fuel.used());
    }

    #[test]
    fn comparing_with_enough_fuel_finds_equal_what_is_the_same(a in any_json()) {
        prop_assert_eq!(is_equal_within(&a, &a.clone(), &mut Fuel::evaluation()), Ok(true));
    }
}
