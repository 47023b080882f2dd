//! The members an agent reads: those of its input, and behind them those of its config.

use orchestr8_contract::Fault;
use orchestr8_contract::json::kind;
use serde_json::{Map, Value};

/// Config says what is the same for every call, input what is not; a member of the input wins.
pub struct Members<'v> {
    input: Option<&'v Map<String, Value>>,
    config: Option<&'v Map<String, Value>>,
}

impl<'v> Members<'v> {
    /// Both must be objects or absent, and hold nothing but `known` members: a misspelt one must not be overlooked.
    pub fn read(input: &'v Value, config: &'v Value, known: &[&str]) -> Result<Self, Fault> {
        Ok(Self { input: object(input, "input", known)?, config: object(config, "config", known)? })
    }

    /// Without complaints, for looking at a call before it is made.
    pub fn peek(input: &'v Value, config: &'v Value) -> Self {
        Self { input: input.as_object(), config: config.as_object() }
    }

    /// Null counts as absent.
    pub fn get(&self, name: &str) -> Option<&'v Value> {
        let of = |map: Option<&'v Map<String, Value>>| map?.get(name).filter(|value| !value.is_null());
        of(self.input).or_else(|| of(self.config))
    }

    pub fn text(&self, name: &str) -> Result<Option<&'v str>, Fault> {
        let text = |value: &'v Value| value.as_str().ok_or_else(|| wrong(name, "a text", value));
        self.get(name).map(text).transpose()
    }

    pub fn needed_text(&self, name: &str) -> Result<&'v str, Fault> {
        self.text(name)?.ok_or_else(|| {
            Fault::invalid(format!("`{name}` is missing: give it in the step's input or config"))
                .with("path", name)
        })
    }

    /// A whole number within bounds.
    pub fn number(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>, Fault> {
        let number = |value: &Value| {
            value
                .as_u64()
                .filter(|number| (least..=most).contains(number))
                .ok_or_else(|| wrong(name, &format!("a whole number from {least} to {most}"), value))
        };
        self.get(name).map(number).transpose()
    }

    /// The members of two objects of this name, of config first, of input over them.
    pub fn entries(&self, name: &str) -> Result<Vec<(&'v str, &'v Value)>, Fault> {
        let mut entries: Vec<(&str, &Value)> = Vec::new();
        for map in [self.config, self.input].into_iter().flatten() {
            let Some(value) = map.get(name).filter(|value| !value.is_null()) else { continue };
            let found = value.as_object().ok_or_else(|| wrong(name, "an object", value))?;
            entries.retain(|(name, _)| !found.keys().any(|key| key.eq_ignore_ascii_case(name)));
            entries.extend(found.iter().map(|(name, value)| (name.as_str(), value)));
        }
        Ok(entries)
    }
}

/// Says what is wrong without repeating the value, which may be a secret.
pub fn wrong(path: &str, wanted: &str, found: &Value) -> Fault {
    Fault::invalid(format!("`{path}` must be {wanted}; it is {}", kind(found))).with("path", path)
}

fn object<'v>(
    value: &'v Value,
    what: &'static str,
    known: &[&str],
) -> Result<Option<&'v Map<String, Value>>, Fault> {
    let map = match value {
        Value::Null => return Ok(None),
        Value::Object(map) => map,
        other => return Err(wrong(what, "an object", other)),
    };
    match map.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(Some(map)),
        Some(key) => {
            let shown: String = key.chars().take(64).collect();
            let known = known.join("`, `");
            Err(Fault::invalid(format!("{what} has no member `{shown}`; it may have `{known}`"))
                .with("path", what))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn input_wins_over_config_member_by_member() {
        let (input, config) = (
            json!({"a": 1, "h": {"x-b": "2"}, "n": null}),
            json!({"a": 9, "h": {"X-B": "1", "c": "3"}, "n": "config"}),
        );
        let members = Members::read(&input, &config, &["a", "h", "n"]).unwrap();
        assert_eq!(members.get("a"), Some(&json!(1)));
        assert_eq!(members.text("n").unwrap(), Some("config"));
        assert_eq!(members.entries("h").unwrap(), [("c", &json!("3")), ("x-b", &json!("2"))]);
    }

    #[test]
    fn what_is_wrong_is_named_and_never_shown() {
        let config = json!({"hedders": {"authorization": "canary"}});
        let fault = Members::read(&Value::Null, &config, &["headers"]).err().unwrap();
        assert_eq!(fault.message, "config has no member `hedders`; it may have `headers`");
        let input = json!({"headers": "canary"});
        let members = Members::read(&input, &Value::Null, &["headers"]).unwrap();
        let fault = members.entries("headers").unwrap_err();
        assert_eq!(fault.message, "`headers` must be an object; it is a text");
        assert!(Members::read(&json!([1]), &Value::Null, &[]).is_err());
        let few = json!({"n": 0});
        assert!(Members::read(&few, &Value::Null, &["n"]).unwrap().number("n", 1, 9).is_err());
    }
}
