//! The rules of a workflow: which fields it shows, and which it hides in its own way.

use orchestr8_contract::canonical;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::definition::model::{JournalRules, RedactionRule, RuleOn};

/// The first rule for this field.
pub fn for_field<'r>(rules: &'r JournalRules, name: &str, path: &str) -> Option<&'r RedactionRule> {
    rules.rules.iter().find(|rule| match rule.on {
        RuleOn::FieldName => is_like(name, &rule.pattern),
        RuleOn::FieldPattern => is_like(path, &rule.pattern),
        RuleOn::ValuePattern => false,
    })
}

/// The first rule for this value. Only asked for what would be shown: what is hidden anyway stays hidden.
pub fn for_value<'r>(rules: &'r JournalRules, value: &Value) -> Option<&'r RedactionRule> {
    let text = value.as_str()?;
    rules.rules.iter().find(|rule| match rule.on {
        RuleOn::FieldName | RuleOn::FieldPattern => false,
        RuleOn::ValuePattern => has_part_like(text, &rule.pattern),
    })
}

/// What the author says about a field: by its name, or by its path, in which `*` stands for anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// Named itself: not even a name like `token` hides it.
    ByName,
    /// By a pattern.
    ByPattern,
    /// Something inside may be shown.
    Inside,
    Not,
}

pub fn shown(rules: &JournalRules, name: &str, path: &str) -> Shown {
    let mut shown = Shown::Not;
    for allowed in &rules.allow {
        if allowed == name || allowed == path {
            return Shown::ByName;
        }
        if is_like(path, allowed) {
            shown = Shown::ByPattern;
        } else if shown == Shown::Not && (is_name(allowed) || leads_to(path, allowed)) {
            shown = Shown::Inside;
        }
    }
    shown
}

/// A name alone means the fields of that name wherever they are. Those of whole values mean the values only.
fn is_name(allowed: &str) -> bool {
    const VALUES: [&str; 4] = ["data", "input", "output", "payload"];
    !allowed.contains(['.', '*']) && !VALUES.contains(&allowed)
}

/// Whether what the pattern means may lie below the path.
fn leads_to(path: &str, pattern: &str) -> bool {
    let literal = pattern.split('*').next().unwrap_or_default();
    let below =
        literal.len() > path.len() && literal.starts_with(path) && literal.as_bytes()[path.len()] == b'.';
    below || (literal.len() < pattern.len() && path.starts_with(literal))
}

const HASHED: &str = "sha256:";
const HASH_DIGITS: usize = 16;

/// Enough of a hash to tell values apart. A hash stays what it is.
pub fn hash(value: &Value) -> String {
    let text = match value {
        Value::String(text) if is_hash(text) => return text.clone(),
        Value::String(text) => text.clone(),
        other => canonical::text(other),
    };
    let hex = canonical::hex(&Sha256::digest(text.as_bytes()));
    // Sixteen digits without a letter could be a card number, which would be hidden.
    let has_letter = |part: &&str| part.bytes().any(|byte| byte.is_ascii_alphabetic());
    let parts = (0..=hex.len() - HASH_DIGITS).map(|start| &hex[start..start + HASH_DIGITS]);
    let part = parts.clone().find(has_letter).or_else(|| parts.clone().next()).unwrap_or_default();
    format!("{HASHED}{part}")
}

fn is_hash(text: &str) -> bool {
    text.strip_prefix(HASHED).is_some_and(|hex| {
        hex.len() == HASH_DIGITS && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// The whole text against a pattern in which `*` stands for anything. Capitals do not matter: that hides more.
fn is_like(text: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('*').map(str::as_bytes);
    let Some(first) = parts.next() else { return text.is_empty() };
    let Some(mut rest) = after_start(text.as_bytes(), first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match find(rest, part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.len() >= last.len() && rest[rest.len() - last.len()..].eq_ignore_ascii_case(last)
}

/// A part of the text against a pattern.
fn has_part_like(text: &str, pattern: &str) -> bool {
    let mut rest = text.as_bytes();
    for part in pattern.split('*').map(str::as_bytes) {
        match find(rest, part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

fn after_start<'t>(text: &'t [u8], start: &[u8]) -> Option<&'t [u8]> {
    (text.len() >= start.len() && text[..start.len()].eq_ignore_ascii_case(start))
        .then(|| &text[start.len()..])
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    if part.is_empty() {
        return Some(0);
    }
    text.windows(part.len()).position(|window| window.eq_ignore_ascii_case(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_star_stands_for_anything() {
        for (text, pattern) in [
            ("email", "email"),
            ("Email", "eMAIL"),
            ("userEmail", "*email"),
            ("emailOf", "email*"),
            ("a.b.c", "a.*.c"),
            ("anything", "*"),
            ("", "*"),
            ("", ""),
            ("aXbYc", "a*b*c"),
            ("abab", "*ab"),
            ("aa", "a*a"),
        ] {
            assert!(is_like(text, pattern), "{text} {pattern}");
        }
        for (text, pattern) in
            [("email", "mail"), ("a", "a*a"), ("abc", "a*d"), ("x", ""), ("ab", "b*a"), ("abc", "*b")]
        {
            assert!(!is_like(text, pattern), "{text} {pattern}");
        }
        assert!(has_part_like("my IBAN is DE12", "iban*de"));
        assert!(!has_part_like("DE12 iban", "iban*de"));
    }

    #[test]
    fn authors_show_by_name_by_path_and_by_pattern() {
        let rules = |allow: &[&str]| JournalRules {
            allow: allow.iter().map(|name| (*name).to_owned()).collect(),
            ..JournalRules::default()
        };
        let of = |allow: &[&str], path: &str| shown(&rules(allow), path.rsplit('.').next().unwrap(), path);
        assert_eq!(of(&["output"], "output"), Shown::ByName);
        assert_eq!(of(&["id"], "output.id"), Shown::ByName);
        assert_eq!(of(&["id"], "output"), Shown::Inside, "it may hold a field of that name");
        assert_eq!(of(&["output.id"], "output.id"), Shown::ByName);
        assert_eq!(of(&["output.id"], "output"), Shown::Inside);
        assert_eq!(of(&["output.id"], "outp"), Shown::Not);
        assert_eq!(of(&["output.*"], "output.a.b"), Shown::ByPattern);
        assert_eq!(of(&["output.*"], "output"), Shown::Inside);
        assert_eq!(of(&["*.id"], "input"), Shown::Inside);
        assert_eq!(of(&["output.*"], "input"), Shown::Not);
    }

    #[test]
    fn a_hash_tells_values_apart_and_stays_what_it_is() {
        let (one, two) = (hash(&json!("a")), hash(&json!("b")));
        assert!(one != two && one.len() == 23);
        assert_eq!(hash(&json!(one)), one);
        assert_eq!(hash(&json!({"b": 1, "a": 2})), hash(&json!({"a": 2, "b": 1})));
    }
}
