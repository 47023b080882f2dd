//! JSON read strictly, and looked at without making its text.
//!
//! serde_json keeps the last of two members of one name. Two programs that read the same text must not see two things, so
//! here whoever reads decides; and recursion ends long before the stack does.

use std::cell::Cell;
use std::fmt;

use serde::Serialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::limits::JSON_DEPTH;
use crate::place::Place;

/// Why a text was not read. Both print what is wrong, with line and column.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Syntax(serde_json::Error),
    /// It is nested deeper than `limits::JSON_DEPTH`.
    #[error("{0}")]
    TooDeep(serde_json::Error),
}

/// Reads a text. `doubled` is asked about every member whose name was there before in its object: what it answers ends the
/// reading, or the last one counts.
pub fn read(
    text: &[u8],
    doubled: impl FnMut(&Place<'_>, &str) -> Result<(), String>,
) -> Result<Value, Error> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let (too_deep, mut doubled) = (Cell::new(false), doubled);
    let strict = Strict { at: Place::ROOT, depth: 0, too_deep: &too_deep, doubled: &mut doubled };
    let read = strict.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    read.map_err(|error| if too_deep.get() { Error::TooDeep(error) } else { Error::Syntax(error) })
}

/// How many bytes a value takes as JSON, without writing it anywhere.
pub fn bytes(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Writing a value to a counter cannot fail; were it to, the count so far still bounds it from below.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// What a value is, in words.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Reads a value as `Value` does, and minds what that lets pass.
struct Strict<'r> {
    at: Place<'r>,
    /// In so many lists and objects.
    depth: usize,
    too_deep: &'r Cell<bool>,
    doubled: &'r mut dyn FnMut(&Place<'_>, &str) -> Result<(), String>,
}

impl Strict<'_> {
    fn enter<E: serde::de::Error>(&self) -> Result<usize, E> {
        if self.depth < JSON_DEPTH {
            return Ok(self.depth + 1);
        }
        self.too_deep.set(true);
        Err(E::custom(format_args!("nested deeper than {JSON_DEPTH} levels")))
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
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
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let depth = self.enter()?;
        let mut list = Vec::new();
        loop {
            let at = self.at.item(list.len());
            let inner = Strict { at, depth, too_deep: self.too_deep, doubled: &mut *self.doubled };
            match items.next_element_seed(inner)? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let depth = self.enter()?;
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let at = self.at.field(&name);
            if map.contains_key(&name) {
                (self.doubled)(&at, &name).map_err(A::Error::custom)?;
            }
            let inner = Strict { at, depth, too_deep: self.too_deep, doubled: &mut *self.doubled };
            let value = members.next_value_seed(inner)?;
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Refuses what comes twice, with its place.
    fn strictly(text: &str) -> Result<Value, Error> {
        read(text.as_bytes(), |at, name| Err(format!("{name} at {at}")))
    }

    #[test]
    fn a_text_is_read_as_serde_reads_it() {
        let text = r#"{"a":{"x":[1,-2,2.5,1e300,true,null,"é\n"]},"b":18446744073709551615}"#;
        assert_eq!(strictly(text).unwrap(), serde_json::from_str::<Value>(text).unwrap());
        for wrong in ["", "{", "[1,]", "{'a':1}", "{a:1}", "{\"a\":NaN}", "1 2", "\"\\ud800\"", "1e999"] {
            assert!(matches!(strictly(wrong), Err(Error::Syntax(_))), "{wrong}");
        }
        assert!(read(b"\"\xff\"", |_, _| Ok(())).is_err());
    }

    #[test]
    fn what_comes_twice_is_told_with_its_place_and_refused_or_not() {
        let text = "{\"a\": [0, {\"x\": 1,\n \"x\": 2}], \"a\": 3}";
        assert_eq!(strictly(text).unwrap_err().to_string(), "x at $.a[1].x at line 2 column 4");
        let mut told = Vec::new();
        let value = read(text.as_bytes(), |at, name| {
            told.push(format!("{name} at {at}"));
            Ok(())
        });
        assert_eq!(value.unwrap(), json!({"a": 3}), "the last one counts");
        assert_eq!(told, ["x at $.a[1].x", "a at $.a"]);
    }

    #[test]
    fn depth_is_limited_before_the_stack_is() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(strictly(&nested(JSON_DEPTH)).is_ok());
        for depth in [JSON_DEPTH + 1, 100_000] {
            let error = strictly(&nested(depth)).unwrap_err();
            assert!(matches!(&error, Error::TooDeep(_)), "{error}");
            assert!(error.to_string().contains("deeper than 100 levels"), "{error}");
        }
    }

    #[test]
    fn bytes_are_those_of_the_text() {
        for value in [json!(null), json!({"a": [1.5, "é\"\n", true]}), json!("x".repeat(1000))] {
            assert_eq!(bytes(&value), value.to_string().len());
        }
    }

    #[test]
    fn every_kind_has_its_word() {
        let all = json!([null, true, 1, "a", [], {}]);
        let words: Vec<&str> = all.as_array().unwrap().iter().map(kind).collect();
        assert_eq!(words, ["null", "true or false", "a number", "a text", "a list", "an object"]);
    }
}
