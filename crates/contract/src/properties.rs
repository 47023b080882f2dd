//! What holds for every JSON text and value, however odd.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::{canonical, json as strict};

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Texts that are JSON often enough to reach deep into the reader.
fn like_json() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"a\"",
        "\"b\"",
        "\"\\ud83d\"",
        "1",
        "-0",
        "1e400",
        "true",
        "null",
        " ",
        "\n",
        "\\",
        "é",
    ]);
    prop_oneof![
        prop::collection::vec(token, 0..40).prop_map(|tokens| tokens.concat()),
        any_value().prop_map(|value| value.to_string()),
        any::<String>(),
    ]
}

/// Objects in another order, which is still the same value.
fn turned(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(turned).collect(),
        Value::Object(map) => {
            let turned = map.iter().rev().map(|(name, value)| (name.clone(), turned(value)));
            Value::Object(turned.collect::<Map<_, _>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_canonical_text_is_its_own_canonical_text(value in any_value()) {
        let text = canonical::text(&value);
        let again: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(canonical::text(&again), text);
        prop_assert_eq!(canonical::sha256_hex(&again), canonical::sha256_hex(&value));
    }

    #[test]
    fn order_does_not_matter_and_anything_else_does(value in any_value(), other in any_value()) {
        prop_assert_eq!(canonical::text(&turned(&value)), canonical::text(&value));
        prop_assert_ne!(canonical::text(&json!([value, other])), canonical::text(&json!([value])));
    }

    #[test]
    fn the_strict_reader_reads_what_serde_reads(text in like_json()) {
        let lenient: Result<Value, _> = serde_json::from_str(&text);
        let strict = strict::read(text.as_bytes(), |_, _| Ok(()));
        prop_assert_eq!(strict.as_ref().ok(), lenient.as_ref().ok(), "{}", text);
        let mut doubled = 0;
        let told = strict::read(text.as_bytes(), |_, _| {
            doubled += 1;
            Ok(())
        });
        let refused = strict::read(text.as_bytes(), |at, name| Err(format!("{at} {name}")));
        prop_assert_eq!(refused.is_ok(), told.is_ok() && doubled == 0);
    }

    #[test]
    fn bytes_are_counted_as_they_are_written(value in any_value()) {
        prop_assert_eq!(strict::bytes(&value), value.to_string().len());
    }
}
