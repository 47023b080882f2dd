//! The page on which a person approves or rejects: plain HTML with one form, no script, nothing from elsewhere.

use std::fmt::Write;

use http::StatusCode;
use serde_json::{Map, Value};

use super::text;
use crate::failure::Failure;

/// Nothing but the one style below, by its hash, and the form back to us.
pub(crate) const POLICY: &str = "default-src 'none'; style-src 'sha256-/RruE2n7UVuCButsRgYSkI+uMS/HEDECwb+S7yFrsR0='; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem;color-scheme:light dark}\
label{display:block;margin:1rem 0}input,textarea,select{display:block;width:100%;box-sizing:border-box;padding:.4rem;font:inherit}\
input[type=checkbox]{display:inline;width:auto}button{font:inherit;padding:.5rem 1.5rem;margin-right:1rem}\
dt{font-weight:600}dd{margin:0 0 .5rem;overflow-wrap:anywhere}";

/// Fields of a form; a schema with more is filled in by a program.
const FIELDS: usize = 32;

/// Pairs of a submitted form; more are not read.
const PAIRS: usize = 64;

pub(crate) fn form(approval: &Map<String, Value>, action: &str) -> String {
    let mut body = format!("<h1>{}</h1><dl>", escape(text(approval, "message")));
    for (label, name) in [("Execution", "executionId"), ("Step", "stepId"), ("Answer by", "expiresAt")] {
        let value = text(approval, name);
        if !value.is_empty() {
            let _ = write!(body, "<dt>{label}</dt><dd>{}</dd>", escape(value));
        }
    }
    let _ = write!(body, "</dl><form method=\"post\" action=\"{}\">", escape(action));
    for (name, property) in properties(approval.get("form")) {
        body.push_str(&field(name, property, is_required(approval.get("form"), name)));
    }
    body.push_str(
        "<label>Your name<input name=\"onBehalfOf\" maxlength=\"200\"></label>\
         <label>Comment<textarea name=\"comment\" rows=\"3\" maxlength=\"2000\"></textarea></label>\
         <button name=\"decision\" value=\"approve\">Approve</button>\
         <button name=\"decision\" value=\"reject\" formnovalidate>Reject</button></form>",
    );
    document("Approval", &body)
}

pub(crate) fn thanks(decision: &str) -> String {
    let word = if decision == "approve" { "approved" } else { "rejected" };
    document("Recorded", &format!("<h1>Recorded: {word}</h1><p>You may close this page.</p>"))
}

pub(crate) fn sorry(message: &str) -> String {
    document("Not recorded", &format!("<h1>That did not work</h1><p>{}</p>", escape(message)))
}

/// What the form of the page sends, as arguments of the action.
pub(crate) fn read_form(body: &[u8], schema: Option<&Value>) -> Result<Map<String, Value>, Failure> {
    let (mut args, mut data) = (Map::new(), Map::new());
    for (name, value) in form_urlencoded::parse(body).take(PAIRS) {
        match (&*name, name.strip_prefix("data.")) {
            ("decision", _) => {
                args.insert("decision".into(), value.into_owned().into());
            }
            ("onBehalfOf" | "comment", _) if value.is_empty() => {}
            ("onBehalfOf" | "comment", _) => {
                args.insert(name.into_owned(), value.into_owned().into());
            }
            (_, Some(field)) => {
                let property =
                    properties(schema).find(|(found, _)| *found == field).map(|(_, property)| property);
                if let Some(read) = property.and_then(|property| typed(property, &value)) {
                    data.insert(field.to_owned(), read);
                }
            }
            (_, None) => return Err(Failure::invalid("/", "the form has a field that is not ours")),
        }
    }
    let rejects = text(&args, "decision") == "reject";
    if !rejects {
        for (name, property) in properties(schema) {
            if kind(property) == "boolean" && !data.contains_key(name) {
                data.insert(name.to_owned(), false.into());
            }
        }
    }
    if !data.is_empty() {
        args.insert("data".into(), data.into());
    }
    match text(&args, "decision") {
        "approve" | "reject" => Ok(args),
        _ => {
            let failure = Failure::invalid("/decision", "press Approve or Reject");
            Err(failure.status(StatusCode::BAD_REQUEST))
        }
    }
}

/// A field left empty is left out; what is no number stays text, for the schema to refuse.
fn typed(property: &Value, given: &str) -> Option<Value> {
    if given.is_empty() {
        return None;
    }
    let number = || serde_json::from_str::<serde_json::Number>(given).ok().map(Value::Number);
    match kind(property) {
        "boolean" => Some(Value::Bool(true)),
        "integer" | "number" => Some(number().unwrap_or_else(|| given.into())),
        _ => Some(given.into()),
    }
}

fn properties(schema: Option<&Value>) -> impl Iterator<Item = (&str, &Value)> {
    let properties = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    properties.into_iter().flatten().take(FIELDS).map(|(name, property)| (name.as_str(), property))
}

fn is_required(schema: Option<&Value>, name: &str) -> bool {
    let required = schema.and_then(|schema| schema.get("required")).and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|found| found == name))
}

fn kind(property: &Value) -> &str {
    property.get("type").and_then(Value::as_str).unwrap_or("string")
}

fn field(name: &str, property: &Value, required: bool) -> String {
    let label = property.get("title").or_else(|| property.get("description")).and_then(Value::as_str);
    let label = escape(label.unwrap_or(name));
    let name = format!("data.{}", escape(name));
    let must = if required { " required" } else { "" };
    if let Some(words) = property.get("enum").and_then(Value::as_array) {
        let mut options = String::from("<option></option>");
        for word in words.iter().filter_map(Value::as_str) {
            let _ = write!(options, "<option>{}</option>", escape(word));
        }
        return format!("<label>{label}<select name=\"{name}\"{must}>{options}</select></label>");
    }
    match kind(property) {
        "boolean" => format!("<label><input type=\"checkbox\" name=\"{name}\"> {label}</label>"),
        "integer" => {
            format!("<label>{label}<input type=\"number\" step=\"1\" name=\"{name}\"{must}></label>")
        }
        "number" => {
            format!("<label>{label}<input type=\"number\" step=\"any\" name=\"{name}\"{must}></label>")
        }
        _ => format!("<label>{label}<input name=\"{name}\"{must}></label>"),
    }
}

fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title}</title><style>{STYLE}</style></head><body>{body}</body></html>"
    )
}

/// What people wrote must never become markup.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;
    use sha2::{Digest, Sha256};

    #[test]
    fn the_policy_names_the_hash_of_the_style() {
        let hash = STANDARD.encode(Sha256::digest(STYLE));
        assert!(POLICY.contains(&format!("'sha256-{hash}'")), "{hash}");
    }

    #[test]
    fn what_people_wrote_is_never_markup() {
        let approval = json!({
            "message": "<script>alert(1)</script>", "executionId": "\"><b>", "stepId": "s", "expiresAt": null,
            "form": {"properties": {"\" onfocus=\"x": {"title": "<i>", "enum": ["<u>"]}}},
        });
        let page = form(approval.as_object().unwrap(), "/v1/approvals/t\"x");
        for bad in ["<script", "<b>", "<i>", "<u>", "onfocus=\"x", "t\"x"] {
            assert!(!page.contains(bad), "{bad}: {page}");
        }
        assert!(!sorry("<script>").contains("<script>"));
    }

    #[test]
    fn a_form_is_read_by_its_schema() {
        let schema = json!({"properties": {
            "n": {"type": "integer"}, "x": {"type": "number"}, "ok": {"type": "boolean"}, "no": {"type": "boolean"},
            "s": {"type": "string"},
        }});
        let body =
            b"data.n=3&data.x=2.5&data.ok=on&data.s=&data.strange=1&onBehalfOf=Ann&comment=&decision=approve";
        let args = read_form(body, Some(&schema)).unwrap();
        let expected = json!({"decision": "approve", "onBehalfOf": "Ann", "data": {"n": 3, "x": 2.5, "ok": true, "no": false}});
        assert_eq!(Value::Object(args), expected);
        assert!(read_form(b"onBehalfOf=Ann", None).is_err());
        assert!(read_form(b"decision=maybe", None).is_err());
        assert!(read_form(b"decision=approve&token=other", None).is_err());
    }
}
