//! Every operation once, what it refuses, and that no list of operations can outgrow its bounds.

use orchestr8_contract::{Code, Fault};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Transform, transform};
use crate::agents::Agent;
use crate::limits::TRANSFORMED_BYTES;

fn people() -> Value {
    json!([
        {"name": "Ann", "age": 41, "team": {"id": 1}},
        {"name": "Bob", "age": 17, "team": {"id": 2}},
        {"name": "Cem", "age": 25, "team": {"id": 1}}
    ])
}

fn run(value: Value, operations: Value) -> Result<Value, Fault> {
    transform(json!({"value": value, "operations": operations}), &Value::Null)
}

fn gives(value: Value, operations: Value, wanted: Value) {
    assert_eq!(run(value, operations.clone()).unwrap(), wanted, "{operations}");
}

fn refused(value: Value, operations: Value, message: &str) {
    let fault = run(value, operations).unwrap_err();
    assert_eq!((fault.code, fault.message.as_ref()), (Code::InvalidArgument, message));
}

#[test]
fn without_operations_the_value_comes_back() {
    assert_eq!(transform(json!({"value": {"a": 1}}), &Value::Null).unwrap(), json!({"a": 1}));
    assert_eq!(transform(Value::Null, &json!({"value": 2})).unwrap(), json!(2));
    assert_eq!(transform(Value::Null, &Value::Null).unwrap(), Value::Null);
    assert!(transform(json!({"valeu": 1}), &Value::Null).is_err());
}

#[test]
fn members_are_picked_omitted_and_merged() {
    gives(json!({"a": 1, "b": 2}), json!([{"pick": ["a", "z"]}]), json!({"a": 1}));
    gives(json!({"a": 1, "b": 2}), json!([{"omit": ["a"]}]), json!({"b": 2}));
    gives(json!({"a": 1}), json!([{"merge": {"a": 2, "c": 3}}]), json!({"a": 2, "c": 3}));
    gives(
        json!([{"a": 1, "b": 2}, {}]),
        json!([{"pick": ["a"]}, {"merge": {"c": 0}}]),
        json!([{"a": 1, "c": 0}, {"c": 0}]),
    );
}

#[test]
fn lists_are_mapped_filtered_and_sorted() {
    gives(people(), json!([{"map": "team.id"}]), json!([1, 2, 1]));
    gives(
        people(),
        json!([{"map": [{"pick": ["name"]}, {"merge": {"ok": true}}]}, {"map": "ok"}]),
        json!([true, true, true]),
    );
    gives(
        people(),
        json!([{"filter": {"path": "age", "is": ">=", "value": 18}}, {"map": "name"}]),
        json!(["Ann", "Cem"]),
    );
    gives(
        people(),
        json!([{"filter": {"path": "name", "is": "contains", "value": "o"}}, {"count": true}]),
        json!(1),
    );
    gives(json!([0, 1, "", "x", null, [], {}]), json!([{"filter": {"is": "true"}}]), json!([1, "x"]));
    gives(json!([{"a": 0}, {"a": 5}]), json!([{"filter": "a"}]), json!([{"a": 5}]));
    gives(
        json!([{"a": null}, {"a": 0}]),
        json!([{"filter": {"path": "a", "is": "exists"}}]),
        json!([{"a": 0}]),
    );
    gives(json!([1.0, 1, 2]), json!([{"filter": {"value": 1}}]), json!([1.0, 1]));
    gives(
        people(),
        json!([{"sort": {"by": "age", "order": "desc"}}, {"map": "name"}]),
        json!(["Ann", "Cem", "Bob"]),
    );
    gives(
        json!(["b", 10, 9, null, true, "a", -1.5]),
        json!([{"sort": true}]),
        json!([null, true, -1.5, 9, 10, "a", "b"]),
    );
}

#[test]
fn lists_are_grouped_flattened_and_made_unique() {
    gives(
        people(),
        json!([{"group": "team.id"}, {"merge": {"2": 0}}]),
        json!({"1": [people()[0], people()[2]], "2": 0}),
    );
    gives(json!([[1, [2]], 3, []]), json!([{"flatten": true}]), json!([1, [2], 3]));
    gives(
        json!([1, 1.0, "1", 1, {"b": 1, "a": 2}, {"a": 2, "b": 1}]),
        json!([{"unique": true}]),
        json!([1, "1", {"b": 1, "a": 2}]),
    );
    gives(people(), json!([{"unique": "team.id"}, {"map": "name"}]), json!(["Ann", "Bob"]));
}

#[test]
fn texts_are_joined_split_parsed_and_written() {
    gives(json!(["a", 1, null]), json!([{"join": ", "}]), json!("a, 1, null"));
    gives(json!("a,b,,c"), json!([{"split": ","}, {"count": true}]), json!(4));
    gives(json!("{\"a\":[1]}"), json!([{"parseJson": true}]), json!({"a": [1]}));
    gives(json!({"a": [1]}), json!([{"stringify": true}]), json!("{\"a\":[1]}"));
    gives(json!("größe"), json!([{"count": true}]), json!(5));
}

#[test]
fn numbers_are_summed_and_compared() {
    gives(people(), json!([{"sum": "age"}]), json!(83));
    gives(json!([u64::MAX, 1, -1]), json!([{"sum": true}]), json!(u64::MAX));
    gives(json!([1, 0.5, null]), json!([{"sum": true}]), json!(1.5));
    gives(people(), json!([{"min": "age"}]), json!(17));
    gives(people(), json!([{"max": "name"}]), json!("Cem"));
    gives(json!([]), json!([{"max": true}]), Value::Null);
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    refused(
        json!(1),
        json!([{"count": true}]),
        "`operations[0].count` works on a list, an object or a text; it got a number",
    );
    refused(
        json!([1]),
        json!([{"map": [{"pick": ["a"]}]}]),
        "`operations[0].map[0].pick` works on an object or a list of objects; it got a number",
    );
    refused(
        json!("{"),
        json!([{"parseJson": true}]),
        "`operations[0].parseJson`: the text is not JSON: EOF while parsing an object at line 1 column 1",
    );
    refused(json!([]), json!([{"count": false}]), "`operations[0].count` must be true; it is true or false");
    refused(json!([]), json!({"count": true}), "`operations` must be a list of operations; it is an object");
    refused(
        json!(""),
        json!([{"split": ""}]),
        "`operations[0].split` must be a text that is not empty; it is a text",
    );
    for wrong in [
        json!([{"explode": true}]),
        json!([{"pick": ["a"], "omit": ["b"]}]),
        json!([{"filter": {"is": "~"}}]),
        json!([1]),
    ] {
        assert_eq!(run(json!([]), wrong).unwrap_err().code, Code::InvalidArgument);
    }
}

#[test]
fn operations_are_bounded_in_number_depth_and_in_what_they_make() {
    let many: Vec<Value> = (0..65).map(|_| json!({"flatten": true})).collect();
    assert_eq!(run(json!([]), json!(many)).unwrap_err().message, "a transform has at most 64 operations");
    let deep = (0..9).fold(json!([{"count": true}]), |inner, _| json!([{"map": inner}]));
    assert_eq!(run(json!([]), deep).unwrap_err().message, "operations are nested deeper than 8");
    let doubling: Vec<Value> = (0..64).map(|_| json!({"stringify": true})).collect();
    assert_eq!(run(json!("\""), json!(doubling)).unwrap_err().code, Code::PayloadTooLarge);
    let items = vec![json!({}); 1000];
    let large = json!({"x": "y".repeat(TRANSFORMED_BYTES / 999)});
    assert_eq!(run(json!(items), json!([{"merge": large}])).unwrap_err().code, Code::PayloadTooLarge);
}

#[test]
fn each_operation_is_a_pass_over_the_input() {
    let passes = |input: Value| Transform.passes(&input, &Value::Null);
    assert_eq!(passes(json!({"value": [1]})), 1);
    assert_eq!(
        passes(json!({"operations": [{"map": [{"pick": ["a"]}, {"count": true}]}, {"sort": true}]})),
        4
    );
    let many: Vec<Value> = (0..1_000).map(|_| json!({"flatten": true})).collect();
    assert_eq!(passes(json!({"operations": many})), 64, "more are refused");
    assert_eq!(Transform.passes(&Value::Null, &json!({"operations": [{"sort": true}, {"count": true}]})), 2);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-c]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn sorting_orders_and_keeps_every_item(items in prop::collection::vec(any_json(), 0..20), descending in any::<bool>()) {
        let order = if descending { "desc" } else { "asc" };
        let sorted = run(json!(items), json!([{"sort": {"order": order}}])).unwrap();
        let again = run(sorted.clone(), json!([{"sort": {"order": order}}])).unwrap();
        prop_assert_eq!(&sorted, &again);
        let texts = |list: &[Value]| { let mut texts: Vec<String> = list.iter().map(Value::to_string).collect(); texts.sort(); texts };
        prop_assert_eq!(texts(sorted.as_array().unwrap()), texts(&items));
        for pair in sorted.as_array().unwrap().windows(2) {
            let order = super::compare::order(&pair[0], &pair[1]);
            let right = if descending { order.is_ge() } else { order.is_le() };
            prop_assert!(right);
        }
    }

    #[test]
    fn text_and_back_is_the_same_and_grouping_keeps_every_item(items in prop::collection::vec(any_json(), 0..10)) {
        let value = json!(items);
        prop_assert_eq!(run(value.clone(), json!([{"stringify": true}, {"parseJson": true}])).unwrap(), value.clone());
        let groups = run(value, json!([{"group": "a"}])).unwrap();
        let count: usize = groups.as_object().unwrap().values().map(|group| group.as_array().unwrap().len()).sum();
        prop_assert_eq!(count, items.len());
    }

    #[test]
    fn no_operation_panics(value in any_json(), argument in any_json(), name in prop::sample::select(vec![
        "pick", "omit", "merge", "map", "filter", "sort", "group", "join", "split", "count", "flatten", "unique", "sum",
        "min", "max", "parseJson", "stringify",
    ])) {
        let _ = run(value.clone(), json!([{name: argument}]));
        let _ = run(value, json!([{name: true}]));
    }
}
