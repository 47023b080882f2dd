//! What came back of a step, and whether it is what must come back.

use serde_json::Value;

/// A word and what came with it.
#[derive(Debug, Clone)]
pub struct Heard {
    pub word: String,
    /// A code, a status, or nothing.
    pub code: String,
    /// JSON or text.
    pub value: Value,
}

impl Heard {
    pub fn new(word: &str, code: impl Into<String>, value: impl Into<Value>) -> Self {
        Self { word: word.to_owned(), code: code.into(), value: value.into() }
    }

    /// Whether it is what a line expects.
    pub fn fits(&self, expected: &str) -> Result<bool, String> {
        let (word, rest) = expected.split_once(' ').unwrap_or((expected, ""));
        if word != self.word {
            return Ok(false);
        }
        let (code, rest) = match self.word.as_str() {
            "error" | "status" | "exit" => rest.split_once(' ').unwrap_or((rest, "")),
            _ => ("", rest),
        };
        if code != self.code && Some(code) != self.value["code"].as_str() {
            return Ok(false);
        }
        let rest = rest.trim();
        if rest.is_empty() {
            return Ok(true);
        }
        match &self.value {
            Value::String(text) => Ok(text.contains(rest)),
            value => {
                let expected: Value =
                    serde_json::from_str(rest).map_err(|error| format!("{rest} is no JSON: {error}"))?;
                Ok(contains(value, &expected))
            }
        }
    }
}

fn contains(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (_, Value::String(text)) if text == "<any>" => true,
        (Value::String(found), Value::String(part)) if part.starts_with('~') => found.contains(&part[1..]),
        (Value::Object(found), Value::Object(expected)) => expected
            .iter()
            .all(|(name, expected)| contains(found.get(name).unwrap_or(&Value::Null), expected)),
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len()
                && found.iter().zip(expected).all(|(one, other)| contains(one, other))
        }
        (found, expected) => found == expected,
    }
}

#[test]
fn what_is_heard_must_contain_what_is_expected() {
    use serde_json::json;
    let heard =
        Heard::new("error", "A", json!({"code": "B", "more": {"n": 1, "text": "long text"}, "list": [1]}));
    for expected in
        ["error A", "error B", r#"error A {"more":{"n":1}}"#, r#"error A {"more":{"text":"~ng te"}}"#]
    {
        assert_eq!(heard.fits(expected), Ok(true), "{expected}");
    }
    for expected in
        ["ok", "error C", r#"error A {"more":{"n":2}}"#, r#"error A {"list":[1,2]}"#, r#"error A {"x":1}"#]
    {
        assert_eq!(heard.fits(expected), Ok(false), "{expected}");
    }
    assert!(heard.fits("error A {").is_err());
}
