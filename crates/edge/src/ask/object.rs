//! Reads JSON bodies: one object, no name twice, not too deep, and only members that are known.

use orchestr8_contract::json;
use orchestr8_contract::place::Place;
use serde_json::{Map, Value};

use super::Wrong;

/// The members of a body, and the length of the text they were read from.
#[derive(Debug)]
pub struct Body {
    pub members: Map<String, Value>,
    pub text_bytes: usize,
}

/// Reads an object.
pub fn object(text: &[u8], known: &[&str]) -> Result<Body, Vec<Wrong>> {
    let doubled = |_: &Place<'_>, name: &str| Err(format!("the member {name:?} is given twice"));
    let members = match json::read(text, doubled) {
        Ok(Value::Object(members)) => members,
        Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            return Err(vec![Wrong::new("/", "the body must be a JSON object")]);
        }
        Err(error) => {
            return Err(vec![Wrong::new("/", format!("the body is not the JSON we take: {error}"))]);
        }
    };
    let unknown = members.keys().filter(|name| !known.contains(&name.as_str()));
    let mistakes: Vec<Wrong> =
        unknown.take(MISTAKES).map(|name| Wrong::new(pointer(name), strange(known))).collect();
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    Ok(Body { members, text_bytes: text.len() })
}

/// A refusal names at most this many members.
const MISTAKES: usize = 20;

fn strange(known: &[&str]) -> String {
    match known.is_empty() {
        true => "there is no such member; the body takes none".to_owned(),
        false => format!("there is no such member; known: {}", known.join(", ")),
    }
}

/// The JSON pointer of a member, cut where it is longer than anybody would read.
fn pointer(name: &str) -> String {
    const SHOWN_CHARACTERS: usize = 64;
    let shown: String = name.chars().take(SHOWN_CHARACTERS).collect();
    format!("/{}", shown.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestr8_contract::limits::JSON_DEPTH;
    use serde_json::json;

    fn refused(text: &str) -> String {
        object(text.as_bytes(), &["a", "b"]).unwrap_err()[0].to_string()
    }

    #[test]
    fn an_object_is_read_as_serde_reads_it() {
        let text = r#"{"a":{"x":[1,-2,2.5,1e300,true,null,"é\n"]},"b":18446744073709551615}"#;
        let body = object(text.as_bytes(), &["a", "b"]).unwrap();
        assert_eq!(Value::Object(body.members), serde_json::from_str::<Value>(text).unwrap());
        assert_eq!(body.text_bytes, text.len());
    }

    #[test]
    fn what_two_readers_might_read_differently_is_refused() {
        assert!(refused(r#"{"a":1,"a":2}"#).contains("\"a\" is given twice"));
        assert!(refused(r#"{"a":{"x":{"y":1,"y":1}}}"#).contains("\"y\" is given twice"));
        assert!(refused(r#"{"a":"\ud800"}"#).contains("hex escape"));
        assert!(refused(r#"{"a":1} {"b":2}"#).contains("trailing"));
        assert!(refused(r#"{"a":1e999}"#).contains("out of range"));
        assert!(object(b"{\"a\":\"\xff\"}", &["a"]).is_err());
        for wrong in ["", "[]", "7", "null", "{", "{'a':1}", "{a:1}", "{\"a\":NaN}"] {
            assert!(object(wrong.as_bytes(), &["a"]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn depth_is_limited_before_the_stack_is() {
        let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(object(nested(JSON_DEPTH - 1).as_bytes(), &["a"]).is_ok());
        assert!(refused(&nested(JSON_DEPTH)).contains("deeper"));
        assert!(refused(&nested(100_000)).contains("deeper"));
    }

    #[test]
    fn every_unknown_member_is_named_with_its_path() {
        let wrong =
            object(json!({"a": 1, "c/d": 2, "e": 3}).to_string().as_bytes(), &["a", "b"]).unwrap_err();
        assert_eq!(wrong[0].to_string(), "/c~1d: there is no such member; known: a, b");
    }
}
