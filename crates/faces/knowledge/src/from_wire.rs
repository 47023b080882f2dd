//! Reads JSON: one object, no name twice, not too deep.

use orchestr8_contract::json;
use orchestr8_contract::place::Place;
use serde_json::{Map, Value};

/// Reads an object. Two programs that read the same text must not see two things, least of all in what is signed.
pub(crate) fn object(text: &[u8]) -> Result<Map<String, Value>, Wrong> {
    let doubled = |_: &Place<'_>, name: &str| Err(format!("the member {name:?} is given twice"));
    match json::read(text, doubled) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(other) => Err(Wrong(format!("it must be a JSON object and is {}", json::kind(&other)))),
        Err(error) => Err(Wrong(format!("it is not the JSON we take: {error}"))),
    }
}

/// Why a text is not the JSON we take.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wrong(pub String);

#[cfg(test)]
mod tests {
    use super::*;
    use orchestr8_contract::limits::JSON_DEPTH;

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
