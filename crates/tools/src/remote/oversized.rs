//! A message of a child that is too large to be read whole: which request it answers, and what the library reads in its place.
//!
//! Without it the caller would wait for its time limit, since the library drops such a line without a word.

use serde_json::{Value, json};

/// The code of the error that stands for an answer that was too large; data has the limit.
pub const CODE: i32 = -32_099;

/// In the data of such an error, how much may be read.
pub const LIMIT: &str = "orchestr8/limitBytes";

/// Longer ids are not ours.
const ID_BYTES: usize = 64;

/// Finds the id of a message while its bytes go by. Only the outermost object is looked at: the content of a result may hold anything.
#[derive(Default)]
pub struct IdScanner {
    depth: u32,
    is_in_text: bool,
    is_escaped: bool,
    /// The text of the outermost object that was read last, without its quotes.
    text: Vec<u8>,
    /// Whether that text is the name of a member, which a colon has ended.
    is_id: bool,
    id: Vec<u8>,
    found: Option<Value>,
}

impl IdScanner {
    /// Reads on. Gives the id as soon as it is known.
    pub fn feed(&mut self, bytes: &[u8]) -> Option<&Value> {
        for byte in bytes {
            if self.found.is_some() {
                break;
            }
            self.step(*byte);
        }
        self.found.as_ref()
    }

    fn step(&mut self, byte: u8) {
        if self.is_id && self.depth == 1 && !self.is_in_text && matches!(byte, b',' | b'}') {
            self.is_id = false;
            let id = serde_json::from_slice(&self.id).ok();
            self.found = id.filter(|id: &Value| id.is_number() || id.is_string());
        }
        if self.is_id && self.id.len() <= ID_BYTES {
            self.id.push(byte);
        }
        if self.is_in_text {
            self.step_in_text(byte);
            return;
        }
        match byte {
            b'"' => {
                self.is_in_text = true;
                self.text.clear();
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b':' if self.depth == 1 && self.text == b"id" => {
                self.is_id = true;
                self.id.clear();
            }
            b',' => self.text.clear(),
            _ => {}
        }
    }

    fn step_in_text(&mut self, byte: u8) {
        match byte {
            _ if std::mem::take(&mut self.is_escaped) => {}
            b'\\' => self.is_escaped = true,
            b'"' => self.is_in_text = false,
            _ => {}
        }
        if self.is_in_text && self.depth == 1 && self.text.len() <= ID_BYTES {
            self.text.push(byte);
        }
    }
}

/// What the library reads in the place of the answer to this request.
pub fn replacement(id: &Value, limit: usize) -> String {
    let error = json!({"code": CODE, "message": format!("the answer has more than {limit} bytes"), "data": {LIMIT: limit}});
    json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id_of(text: &str, chunk: usize) -> Option<Value> {
        let mut scanner = IdScanner::default();
        let mut found = None;
        for part in text.as_bytes().chunks(chunk) {
            found = scanner.feed(part).cloned();
        }
        found
    }

    #[test]
    fn the_id_is_found_wherever_it_stands_and_nowhere_else() {
        let tricky = r#"{"id":1,"text":"\"id\":2}","list":[{"id":3}],"back\\":"\\"}"#;
        for (text, id) in [
            (format!(r#"{{"jsonrpc":"2.0","id":7,"result":{tricky}}}"#), Some(json!(7))),
            (format!(r#"{{"result":{tricky},"jsonrpc":"2.0","id":7}}"#), Some(json!(7))),
            (format!(r#"{{ "result" : {tricky} , "id" : "a,b}}" }}"#), Some(json!("a,b}"))),
            (format!(r#"{{"result":{tricky}}}"#), None),
            (format!(r#"{{"x":"id","y":{tricky},"id":null}}"#), None),
            (String::from(r#"["id":7]"#), None),
        ] {
            for chunk in [1, 3, 1000] {
                assert_eq!(id_of(&text, chunk), id, "{text}");
            }
        }
    }

    proptest! {
        /// Whatever a child writes, nothing else than the id of a message is taken for one.
        #[test]
        fn whatever_goes_by_only_the_id_of_a_message_is_one(text in "[\\[\\]{}:,\"\\\\id 0-9]{0,40}") {
            if let Ok(Value::Object(message)) = serde_json::from_str::<Value>(&text) {
                let is_id = |id: &&Value| id.is_number() || id.is_string();
                let expected = message.get("id").filter(is_id).cloned();
                // A name that is escaped or comes twice is no message of a server.
                if !text.contains('\\') && text.matches("\"id\"").count() <= 1 {
                    prop_assert_eq!(id_of(&text, 1), expected, "{}", text);
                }
            } else {
                id_of(&text, 1);
            }
        }
    }
}
