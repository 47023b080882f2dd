//! Building blocks of schemas.

use serde_json::{Map, Value, json};

/// An object of a request: what is not named is refused.
pub(super) fn closed(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// An object of an answer: members may be added later, so clients must not mind more.
pub(super) fn open(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

pub(super) fn text() -> Value {
    json!({"type": "string"})
}

pub(super) fn whole() -> Value {
    json!({"type": "integer"})
}

pub(super) fn truth() -> Value {
    json!({"type": "boolean"})
}

pub(super) fn any_object() -> Value {
    json!({"type": "object"})
}

pub(super) fn moment() -> Value {
    json!({"type": "string", "format": "date-time"})
}

pub(super) fn list(of: Value) -> Value {
    json!({"type": "array", "items": of})
}

pub(super) fn one_of(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words})
}

/// The same, or null.
pub(super) fn or_null(schema: Value) -> Value {
    match schema {
        Value::Object(mut map)
            if map.get("type").is_some_and(Value::is_string) && !map.contains_key("enum") =>
        {
            let kind = map.remove("type").unwrap_or_default();
            map.insert("type".into(), json!([kind, "null"]));
            map.into()
        }
        other => json!({"oneOf": [other, {"type": "null"}]}),
    }
}

/// An object whose every member has this shape.
pub(super) fn map_of(value: Value) -> Value {
    json!({"type": "object", "additionalProperties": value})
}

/// Tags of an execution, within their limits.
pub(super) fn tags() -> Value {
    let value =
        json!({"type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[^\\x00-\\x1f\\x7f-\\x9f]*$"});
    json!({
        "type": "object", "propertyNames": {"pattern": "^[A-Za-z0-9_.-]{1,64}$"}, "maxProperties": 16,
        "additionalProperties": value, "examples": [{"customer": "42"}],
    })
}

/// Names with their schemas.
pub(super) fn named<const N: usize>(schemas: [(&str, Value); N]) -> Map<String, Value> {
    schemas.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}
