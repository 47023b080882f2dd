//! Reads JSON: one object, no name twice, not too deep.

use std::fmt;

use orchestr8_contract::limits::JSON_DEPTH;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Reads an object. serde_json keeps the last of two members of one name; here both are refused, because two programs that
/// read the same text must not see two things, least of all in what is signed.
pub(crate) fn object(text: &[u8]) -> Result<Map<String, Value>, Wrong> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let read = Strict { depth: 0 }.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    match read {
        Ok(Value::Object(members)) => Ok(members),
        Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Err(Wrong("it must be a JSON object".to_owned()))
        }
        Err(error) => Err(Wrong(format!("it is not the JSON we take: {error}"))),
    }
}

/// Why a text is not the JSON we take.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wrong(pub String);

/// Reads a value as `Value` does, and refuses what it would let pass.
#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl Strict {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        match self.depth < JSON_DEPTH {
            true => Ok(Self { depth: self.depth + 1 }),
            false => Err(E::custom(format_args!("nested deeper than {JSON_DEPTH} levels"))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut map = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(inner)?;
            match map.entry(name) {
                serde_json::map::Entry::Vacant(place) => {
                    place.insert(value);
                }
                serde_json::map::Entry::Occupied(place) => {
                    return Err(A::Error::custom(format_args!(
                        "the member {:?} is given twice",
                        place.key()
                    )));
                }
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        object(text.as_bytes()).unwrap_err().0
    }

    #[test]
    fn an_object_is_read_as_serde_reads_it() {
        let text = r#"{"a":{"x":[1,-2,2.5,1e300,true,null,"é\n"]},"b":18446744073709551615}"#;
        let read = object(text.as_bytes()).unwrap();
        assert_eq!(Value::Object(read), serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn what_two_readers_might_read_differently_is_refused() {
        assert!(refused(r#"{"a":1,"a":2}"#).contains("\"a\" is given twice"));
        assert!(refused(r#"{"a":{"x":{"y":1,"y":1}}}"#).contains("\"y\" is given twice"));
        assert!(refused(r#"{"a":1} {"b":2}"#).contains("trailing"));
        for wrong in ["", "[]", "7", "null", "{", "{'a':1}", "{a:1}", "{\"a\":NaN}"] {
            assert!(object(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn depth_is_limited_before_the_stack_is() {
        let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(object(nested(JSON_DEPTH - 1).as_bytes()).is_ok());
        assert!(refused(&nested(100_000)).contains("deeper"));
    }
}
