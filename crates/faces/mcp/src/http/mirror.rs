//! Headers of the modern era repeat what the body says, for intermediaries to read; a request whose two sides differ is refused.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName};
use serde_json::Value;

use crate::connection::Facts;

use super::headers::{METHOD, NAME, VERSION, one};

/// The annotation in a tool's input schema that asks for a header.
const ANNOTATION: &str = "x-mcp-header";

/// A quoted value in an error is cut after this many characters.
const QUOTED_CHARACTERS: usize = 100;

/// Compares a request with its headers. The error says what does not match.
pub(super) fn check(headers: &HeaderMap, facts: &Facts<'_>) -> Result<(), String> {
    exact(headers, &VERSION, "MCP-Protocol-Version", facts.version)?;
    exact(headers, &METHOD, "Mcp-Method", facts.method)?;
    if let Some(name) = facts.name {
        let given = decoded(headers, &NAME, "Mcp-Name")?.ok_or_else(|| missing("Mcp-Name"))?;
        same("Mcp-Name", &given, name)?;
    }
    match facts.tool {
        Some(tool) => check_arguments(headers, &tool.input.source, facts.arguments.map(|raw| raw.get())),
        None => Ok(()),
    }
}

fn exact(headers: &HeaderMap, name: &HeaderName, shown: &str, body: &str) -> Result<(), String> {
    let given = one(headers, name).map_err(|_| unreadable(shown))?.ok_or_else(|| missing(shown))?;
    same(shown, given, body)
}

fn same(shown: &str, given: &str, body: &str) -> Result<(), String> {
    match given == body {
        true => Ok(()),
        false => {
            Err(format!("{shown} header value '{}' does not match body value '{}'", cut(given), cut(body)))
        }
    }
}

fn missing(shown: &str) -> String {
    format!("{shown} header is missing")
}

fn unreadable(shown: &str) -> String {
    format!("{shown} header is given twice or has invalid characters")
}

fn cut(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(QUOTED_CHARACTERS) {
        Some((at, _)) => format!("{}…", &text[..at]).into(),
        None => text.into(),
    }
}

/// The value of a header that may be wrapped as `=?base64?…?=`.
fn decoded<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
    shown: &str,
) -> Result<Option<Cow<'a, str>>, String> {
    let Some(given) = one(headers, name).map_err(|_| unreadable(shown))? else { return Ok(None) };
    let Some(wrapped) = given.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Ok(Some(given.into()));
    };
    let bytes = STANDARD.decode(wrapped).map_err(|_| format!("{shown} header is not valid base64"))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{shown} header is not UTF-8"))?;
    Ok(Some(text.into()))
}

/// Every annotated argument against its header. Without annotations the arguments are not even read.
fn check_arguments(headers: &HeaderMap, schema: &Value, arguments: Option<&str>) -> Result<(), String> {
    let mut annotated = Vec::new();
    find(schema, &mut Vec::new(), &mut annotated);
    if annotated.is_empty() {
        return Ok(());
    }
    // What is no JSON or no object is refused later, by those who say so better.
    let arguments: Value = arguments.map_or(Ok(Value::Null), serde_json::from_str).unwrap_or(Value::Null);
    for (path, name) in annotated {
        let shown = format!("Mcp-Param-{name}");
        let Ok(header) = HeaderName::from_bytes(shown.as_bytes()) else { continue };
        let given = decoded(headers, &header, &shown)?;
        let value =
            path.iter().try_fold(&arguments, |value, key| value.get(key)).filter(|value| !value.is_null());
        match (value, given) {
            (None, None) => {}
            (None, Some(_)) => {
                return Err(format!("{shown} header is given, but the body has no such argument"));
            }
            (Some(_), None) => return Err(missing(&shown)),
            (Some(value), Some(given)) => compare(&shown, &given, value)?,
        }
    }
    Ok(())
}

/// Annotations count only where a chain of `properties` leads, and only on what fits into a header.
fn find<'a>(schema: &'a Value, path: &mut Vec<&'a str>, found: &mut Vec<(Vec<&'a str>, &'a str)>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    for (key, property) in properties {
        path.push(key);
        let primitive =
            matches!(property.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean"));
        if let Some(name) = property.get(ANNOTATION).and_then(Value::as_str).filter(|_| primitive) {
            found.push((path.clone(), name));
        }
        find(property, path, found);
        path.pop();
    }
}

fn compare(shown: &str, given: &str, value: &Value) -> Result<(), String> {
    match value {
        Value::String(text) => same(shown, given, text),
        // `42.0` and `42` are one number; integers beyond 2^53 are compared as they are written.
        Value::Number(number) => {
            let text = number.to_string();
            let equal =
                given == text || given.parse::<f64>().is_ok_and(|given| Some(given) == number.as_f64());
            if equal { Ok(()) } else { same(shown, given, &text) }
        }
        Value::Bool(_) | Value::Null | Value::Array(_) | Value::Object(_) => {
            same(shown, given, &value.to_string())
        }
    }
}

#[cfg(test)]
mod tests;
