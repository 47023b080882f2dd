//! Reads one JSON object, strictly: nothing said twice, nothing nested too deep, nothing after it (SES-3.1).

use orchestr8_contract::json;
use serde_json::{Map, Value};

/// The text is no single JSON object as this protocol wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

pub fn object(text: &[u8]) -> Result<Map<String, Value>, Malformed> {
    // Most of what is not an object is told by its first character, whatever follows.
    if text.trim_ascii_start().first() != Some(&b'{') {
        return Err(Malformed);
    }
    match json::read(text, |_, _| Err(String::from("said twice"))) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) | Err(_) => Err(Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_is_read_as_it_is() {
        let text = r#" {"a":[1,-2,1.5,"x",null,true,{"b":{}}],"ü":"\u00fc"} "#;
        let read = object(text.as_bytes()).unwrap();
        assert_eq!(Value::Object(read), json!({"a": [1, -2, 1.5, "x", null, true, {"b": {}}], "ü": "ü"}));
    }

    #[test]
    fn everything_else_is_malformed() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100), "]".repeat(100));
        let very_deep = "[".repeat(1_000_000);
        let object_deep = "{\"a\":".repeat(100_000);
        for text in [
            "",
            " ",
            "null",
            "1",
            "\"x\"",
            "[]",
            "[{}]",
            "{",
            "{}{}",
            "{} x",
            "{'a':1}",
            "{\"a\":1,}",
            "{\"a\":1,\"a\":1}",
            "{\"b\":{\"a\":1,\"\\u0061\":2}}",
            "{\"a\":\"\\ud800\"}",
            "{\"a\":1e999}",
            "{\"a\":NaN}",
            "{\"a\":01}",
            "{\"a\":\"\u{1}\"}",
            "\u{feff}{}",
            &deep,
            &very_deep,
            &object_deep,
        ] {
            assert_eq!(object(text.as_bytes()), Err(Malformed), "{}", &text[..text.len().min(40)]);
        }
        assert_eq!(object(b"{\"a\":\"\xff\"}"), Err(Malformed));
        let allowed = format!("{{\"a\":{}{}}}", "[".repeat(99), "]".repeat(99));
        assert!(object(allowed.as_bytes()).is_ok());
    }
}
