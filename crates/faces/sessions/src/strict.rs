//! Reads one JSON object, strictly: nothing said twice, nothing nested too deep, nothing after it (SES-3.1).

use std::fmt;

use orchestr8_contract::limits::JSON_DEPTH;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The text is no single JSON object as this protocol wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

pub fn object(text: &[u8]) -> Result<Map<String, Value>, Malformed> {
    // Most of what is not an object is told by its first character, whatever follows.
    if text.trim_ascii_start().first() != Some(&b'{') {
        return Err(Malformed);
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Strict { depth: JSON_DEPTH }.deserialize(&mut reader).map_err(|_| Malformed)?;
    reader.end().map_err(|_| Malformed)?;
    match value {
        Value::Object(map) => Ok(map),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(Malformed)
        }
    }
}

/// Reads a value that nests at most this deep.
#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl Strict {
    fn inside<E: Error>(self) -> Result<Self, E> {
        match self.depth.checked_sub(1) {
            Some(depth) => Ok(Self { depth }),
            None => Err(E::custom("nested too deep")),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("no number"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(inside)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(inside)?;
            if map.insert(name, value).is_some() {
                return Err(A::Error::custom("said twice"));
            }
        }
        Ok(Value::Object(map))
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
