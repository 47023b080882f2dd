//! A line of a server that is too long to be kept: who waits for it is told so, instead of waiting until its time limit.

use serde_json::{Value, json};

use super::limits::MESSAGE_BYTES;

/// In the data of the error that takes the place of the answer.
const TOO_LONG: &str = "orchestr8/tooLong";

/// The names of members and the id that we gave are shorter.
const KEPT_BYTES: usize = 64;

/// Reads over a message in pieces and keeps what it answers.
#[derive(Default)]
pub struct LongLine {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// After the `:` of a member of the message itself.
    in_value: bool,
    name: Vec<u8>,
    value: Vec<u8>,
    id: Option<Vec<u8>>,
    is_request: bool,
}

impl LongLine {
    pub fn feed(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.step(*byte));
    }

    /// The error in place of the answer; none if it answers nothing.
    pub fn error(&self, limit: usize) -> Option<String> {
        let id: Value = serde_json::from_slice(self.id.as_deref().filter(|_| !self.is_request)?).ok()?;
        let message = format!("it answered with more than {limit} bytes");
        let error = json!({"code": -32603, "message": message, "data": {TOO_LONG: limit}});
        Some(json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string())
    }

    fn step(&mut self, byte: u8) {
        let at_top = self.depth == 1;
        if self.in_string {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return self.keep(byte, at_top);
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.keep(byte, at_top);
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                if at_top {
                    self.end_member();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if at_top && !self.in_value => self.in_value = true,
            b',' if at_top => self.end_member(),
            _ => self.keep(byte, at_top),
        }
    }

    fn keep(&mut self, byte: u8, at_top: bool) {
        let kept = if self.in_value { &mut self.value } else { &mut self.name };
        if at_top && kept.len() < KEPT_BYTES {
            kept.push(byte);
        }
    }

    fn end_member(&mut self) {
        match self.name.trim_ascii() {
            b"\"id\"" => self.id = Some(std::mem::take(&mut self.value)),
            b"\"method\"" => self.is_request = true,
            _ => {}
        }
        self.in_value = false;
        self.name.clear();
        self.value.clear();
    }
}

/// How long an answer may be, if an error says that one was longer.
pub fn limit_passed(data: Option<&Value>) -> Option<usize> {
    data?.get(TOO_LONG).is_some().then_some(MESSAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> Option<Value> {
        let mut line = LongLine::default();
        text.as_bytes().chunks(3).for_each(|piece| line.feed(piece));
        line.error(10).map(|text| serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn the_request_is_found_wherever_the_id_stands() {
        let result = r#"{"id":9,"text":"\",\"id\":8,{"}"#;
        for text in [
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#),
            format!(r#"{{"result":{result} , "id" : 7 }}"#),
        ] {
            let error = error(&text).unwrap();
            assert_eq!(
                (&error["id"], limit_passed(error["error"].get("data"))),
                (&json!(7), Some(MESSAGE_BYTES))
            );
        }
        for text in [r#"{"method":"x","id":1}"#, r#"{"method":"x"}"#, "[]", ""] {
            assert_eq!(error(text), None, "{text}");
        }
    }
}
