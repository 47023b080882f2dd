//! Validators of what is fetched again and again: strong for executions, weak for journals (ADR-003).

use http::header::{IF_MATCH, IF_NONE_MATCH};
use http::{HeaderMap, HeaderName, HeaderValue};
use orchestr8_contract::canonical;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The first 8 bytes of a hash, as 16 digits of hex.
const HASH_BYTES: usize = 8;

/// What has a place of its own in the hashed object.
const PLACED: [&str; 7] =
    ["errors", "executionId", "outputs", "status", "completedAt", "createdAt", "startedAt"];

/// What does not count: the journal grows without the execution changing (ADR-003), and a duration follows from the rest.
const NOT_COUNTED: [&str; 2] = ["lastSequence", "duration"];

/// The tag of an execution: the hash of the canonical JSON of `{errors, id, metadata, outputs, status, timestamps}`. Its
/// metadata is everything else that is shown, so that no change of it stays unseen.
pub(crate) fn of_execution(resource: &Map<String, Value>) -> String {
    let mut text = String::with_capacity(1024);
    text.push('{');
    member(&mut text, "errors", resource.get("errors"));
    member(&mut text, "id", resource.get("executionId"));
    text.push_str(",\"metadata\":{");
    for (name, value) in resource {
        let counts = !PLACED.contains(&name.as_str()) && !NOT_COUNTED.contains(&name.as_str());
        if counts {
            member(&mut text, name, Some(value));
        }
    }
    text.push('}');
    member(&mut text, "outputs", resource.get("outputs"));
    member(&mut text, "status", resource.get("status"));
    text.push_str(",\"timestamps\":{");
    for name in ["completedAt", "createdAt", "startedAt"] {
        member(&mut text, name, resource.get(name));
    }
    text.push_str("}}");
    format!("\"{}\"", short_hash(text.as_bytes()))
}

/// The tag of a page of a journal, which only ever grows: from the number of entries and the last one shown.
pub(crate) fn of_journal(entries: u64, last: Option<&Value>) -> String {
    let last = last.map_or_else(|| "0".to_owned(), |entry| short_hash(canonical::text(entry).as_bytes()));
    format!("W/\"{}\"", short_hash(format!("{entries}:{last}").as_bytes()))
}

/// The tag of a text that never changes while the program runs.
pub(crate) fn of_text(text: &[u8]) -> String {
    format!("\"{}\"", short_hash(text))
}

/// What a client says of the version it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    /// It has this one: there is no need to send it.
    Fresh,
    /// It wants another one than there is.
    Failed,
    Met,
}

/// What the conditional headers of a request come to for a resource with this tag.
pub(crate) fn check(headers: &HeaderMap, tag: &str) -> Condition {
    // If-Match compares strongly: a weak tag never matches (RFC 9110).
    let strong = |candidate: &str| candidate == tag && !candidate.starts_with("W/");
    let weak = |candidate: &str| candidate.trim_start_matches("W/") == tag.trim_start_matches("W/");
    if headers.contains_key(IF_MATCH) && !names(headers, &IF_MATCH, strong) {
        return Condition::Failed;
    }
    if names(headers, &IF_NONE_MATCH, weak) { Condition::Fresh } else { Condition::Met }
}

/// Whether the client names any version it has.
pub(crate) fn is_conditional(headers: &HeaderMap) -> bool {
    headers.contains_key(IF_NONE_MATCH)
}

pub(crate) fn header(tag: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(tag).ok()
}

/// A tag holds no comma here, since it is hex: a list can be split at them.
fn names(headers: &HeaderMap, name: &HeaderName, same: impl Fn(&str) -> bool) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .map(str::trim_ascii)
        .any(|candidate| candidate == "*" || same(candidate))
}

fn member(out: &mut String, name: &str, value: Option<&Value>) {
    if !out.ends_with('{') {
        out.push(',');
    }
    out.push('"');
    out.push_str(name);
    out.push_str("\":");
    match value {
        Some(value) => canonical::append(out, value),
        None => out.push_str("null"),
    }
}

fn short_hash(bytes: &[u8]) -> String {
    canonical::hex(&Sha256::digest(bytes)[..HASH_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn resource() -> Map<String, Value> {
        let value = json!({
            "executionId": "e1", "status": "running", "outputs": {"a": 1}, "errors": [], "createdAt": "t0",
            "startedAt": "t1", "completedAt": null, "workflow": {"id": "w"}, "steps": {"a": {"status": "completed"}},
            "lastSequence": 7, "duration": 12,
        });
        match value {
            Value::Object(map) => map,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn the_tag_is_the_hash_of_canonical_json_that_anybody_can_compute() {
        let canonical = json!({
            "id": "e1", "status": "running", "outputs": {"a": 1}, "errors": [],
            "timestamps": {"createdAt": "t0", "startedAt": "t1", "completedAt": null},
            "metadata": {"workflow": {"id": "w"}, "steps": {"a": {"status": "completed"}}},
        });
        let expected = format!("\"{}\"", &canonical::sha256_hex(&canonical)[..16]);
        assert_eq!(of_execution(&resource()), expected);
    }

    #[test]
    fn the_tag_changes_with_what_is_shown_but_not_with_the_journal() {
        let before = of_execution(&resource());
        for (name, value) in [("lastSequence", json!(8)), ("duration", json!(13))] {
            let mut other = resource();
            other.insert(name.into(), value);
            assert_eq!(of_execution(&other), before, "{name}");
        }
        for (name, value) in [
            ("status", json!("completed")),
            ("outputs", json!({"a": 2})),
            ("errors", json!([1])),
            ("startedAt", json!("t2")),
            ("steps", json!({"a": {"status": "failed"}})),
        ] {
            let mut other = resource();
            other.insert(name.into(), value);
            assert_ne!(of_execution(&other), before, "{name}");
        }
    }

    #[test]
    fn the_tag_of_a_journal_is_weak_and_grows_with_it() {
        let one = of_journal(1, Some(&json!({"sequence": 1})));
        assert!(one.starts_with("W/\"") && one.len() == 20, "{one}");
        assert_ne!(one, of_journal(2, Some(&json!({"sequence": 2}))));
        assert_eq!(one, of_journal(1, Some(&json!({"sequence": 1}))));
    }

    #[test]
    fn conditions_follow_rfc_9110() {
        let ask = |name: &'static str, value: &'static str, tag: &str| {
            check(
                &HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static(value))]),
                tag,
            )
        };
        assert_eq!(ask("if-none-match", "\"a\", W/\"b\"", "\"b\""), Condition::Fresh);
        assert_eq!(ask("if-none-match", "\"b\"", "W/\"b\""), Condition::Fresh);
        assert_eq!(ask("if-none-match", "*", "\"b\""), Condition::Fresh);
        assert_eq!(ask("if-none-match", "\"c\"", "\"b\""), Condition::Met);
        assert_eq!(ask("if-match", "\"b\"", "\"b\""), Condition::Met);
        assert_eq!(ask("if-match", "*", "\"b\""), Condition::Met);
        assert_eq!(ask("if-match", "W/\"b\"", "W/\"b\""), Condition::Failed);
        assert_eq!(ask("if-match", "\"c\"", "\"b\""), Condition::Failed);
        assert_eq!(check(&HeaderMap::new(), "\"b\""), Condition::Met);
    }
}
