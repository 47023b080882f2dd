//! The schema of workflow definitions, as the domain publishes it, made part of the description.

use serde_json::{Map, Value};

/// The published schema.
const PUBLISHED: &str = include_str!("../../../../../schemas/workflow.schema.json");

/// What begins the name of each of its parts.
const PART: &str = "Definition.";

/// `Definition`, and `Definition.<part>` for each of its parts.
pub(super) fn all() -> Map<String, Value> {
    let mut whole: Map<String, Value> = serde_json::from_str(PUBLISHED).unwrap_or_default();
    let parts = match whole.remove("$defs") {
        Some(Value::Object(parts)) => parts,
        Some(_) | None => Map::new(),
    };
    for name in ["$schema", "$id"] {
        whole.remove(name);
    }
    let mut schemas: Map<String, Value> =
        parts.into_iter().map(|(name, part)| (format!("{PART}{name}"), part)).collect();
    schemas.insert("Definition".into(), whole.into());
    schemas.values_mut().for_each(point_here);
    schemas
}

/// Its references lead to its own parts; here those are found under other names.
fn point_here(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, value) in map.iter_mut() {
                match value {
                    Value::String(place) if name == "$ref" => {
                        let part = place.strip_prefix("#/$defs/").map(|part| format!("{PART}{part}"));
                        let part = part.unwrap_or_else(|| "Definition".to_owned());
                        *place = format!("#/components/schemas/{part}");
                    }
                    _ => point_here(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(point_here),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
