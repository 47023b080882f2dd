//! Tests of what schemas cost.

use super::*;
use serde_json::json;

fn chain(levels: usize, make: impl Fn(Value) -> Value) -> Value {
    let mut defs = Map::new();
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        defs.insert(format!("d{level}"), make(next));
    }
    defs.insert(format!("d{levels}"), json!({"type": "integer"}));
    json!({"type": "object", "properties": {"s": {"$ref": "#/$defs/d0"}}, "$defs": defs})
}

#[test]
fn alternatives_that_refer_to_each_other_are_refused() {
    for make in [
        |next: Value| json!({"anyOf": [next, next, next, next]}),
        |next: Value| json!({"allOf": [next, {"not": next}], "if": next}),
        |next: Value| json!({"oneOf": [{"properties": {"a": next}}, {"properties": {"a": next}}]}),
        |next: Value| json!({"items": {"anyOf": [next, next]}}),
    ] {
        assert_eq!(SchemaCost::of(&chain(24, make)), Err(TooCostly::Expansion));
        assert!(SchemaCost::of(&chain(3, make)).is_ok());
    }
    assert!(SchemaCost::of(&chain(200, |next| json!({"anyOf": [next]}))).is_ok(), "a chain is no tree");
}

#[test]
fn a_schema_that_refers_to_itself_limits_how_deep_a_value_nests() {
    let nest = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!({"a": inner}));
    let once = json!({"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}});
    let cost = SchemaCost::of(&once).unwrap();
    assert_eq!(cost.branching, 1, "two members are two places");
    assert!(cost.allows(&nest(100)));
    let twice = json!({"type": "object", "anyOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]});
    let cost = SchemaCost::of(&twice).unwrap();
    assert_eq!(cost.branching, 2);
    assert!(cost.allows(&nest(8)) && !cost.allows(&nest(40)));
    let named = json!({"type": "object", "$id": "https://a.example/tree", "allOf": [
        {"additionalProperties": {"$ref": "https://a.example/tree"}}, {"properties": {"a": {"$ref": "tree"}}}]});
    assert_eq!(SchemaCost::of(&named).unwrap().branching, 2);
}

#[test]
fn what_has_no_end_or_no_target_is_refused() {
    let endless = json!({"type": "object", "allOf": [{"$ref": "#"}]});
    assert_eq!(SchemaCost::of(&endless), Err(TooCostly::Endless));
    for reference in ["#/$defs/none", "https://b.example/other", "#anchor"] {
        let schema = json!({"type": "object", "$ref": reference});
        assert!(matches!(SchemaCost::of(&schema), Err(TooCostly::Reference(_))), "{reference}");
    }
    let encoded = json!({"type": "object", "$ref": "#/$defs/a%20b", "$defs": {"a b": {}}});
    assert!(SchemaCost::of(&encoded).is_ok());
}

#[test]
fn patterns_are_counted_and_measured() {
    let with = |count: usize| {
        let members: Map<String, Value> =
            (0..count).map(|n| (format!("p{n}"), json!({"pattern": format!("^{n}$")}))).collect();
        json!({"type": "object", "properties": members})
    };
    assert!(SchemaCost::of(&with(PATTERNS)).is_ok());
    assert_eq!(SchemaCost::of(&with(PATTERNS + 1)), Err(TooCostly::Patterns));
    let long = json!({"type": "object", "patternProperties": {"x".repeat(PATTERN_BYTES + 1): {}}});
    assert_eq!(SchemaCost::of(&long), Err(TooCostly::Patterns));
}

#[test]
fn large_values_of_large_schemas_are_refused() {
    let cost = SchemaCost { expansion: 1_000, branching: 1 };
    let list = |items: usize| Value::from(vec![0; items]);
    assert!(cost.allows(&list(19_000)) && !cost.allows(&list(20_000)));
}
