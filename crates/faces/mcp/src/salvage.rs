//! What can be read of a message that is too long to be kept: its id and its method, wherever they stand in it.

use crate::wire::{ID_BYTES, Id};

/// Names and values longer than this are none of those looked for.
const KEPT_BYTES: usize = ID_BYTES + 2;

/// Reads over a message in pieces and keeps the little that is needed to answer it.
#[derive(Debug, Default)]
pub struct Salvage {
    pub bytes: usize,
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// Between `:` and the end of a value of the outermost object.
    in_value: bool,
    name: Vec<u8>,
    value: Vec<u8>,
    id: Option<Vec<u8>>,
    method: Option<Vec<u8>>,
    is_response: bool,
    /// The text is no single object, or says its id twice.
    is_broken: bool,
}

impl Salvage {
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        for byte in bytes {
            self.step(*byte);
        }
    }

    /// The id, if there is one that can be read.
    pub fn id(&self) -> Option<Id> {
        let id = self.id.as_deref().filter(|_| !self.is_broken)?;
        Id::read(std::str::from_utf8(id).ok()?.trim_ascii())
    }

    pub fn is_call(&self) -> bool {
        self.method.as_deref().is_some_and(|method| method.trim_ascii() == b"\"tools/call\"")
    }

    /// An answer to a question of ours, which is never answered itself.
    pub fn is_response(&self) -> bool {
        self.is_response && self.method.is_none()
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
            if at_top {
                self.keep(byte);
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if at_top {
                    self.keep(byte);
                }
            }
            b'{' | b'[' => {
                self.is_broken |= self.depth == 0 && (byte == b'[' || self.id.is_some());
                self.depth += 1;
            }
            b'}' | b']' => {
                if at_top {
                    self.end_member();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if at_top && !self.in_value => self.in_value = true,
            b',' if at_top => self.end_member(),
            _ if at_top => self.keep(byte),
            _ => {}
        }
    }

    fn keep(&mut self, byte: u8) {
        let kept = if self.in_value { &mut self.value } else { &mut self.name };
        if kept.len() <= KEPT_BYTES {
            kept.push(byte);
        }
    }

    fn end_member(&mut self) {
        match self.name.trim_ascii() {
            b"\"id\"" => {
                self.is_broken |= self.id.is_some();
                self.id = Some(std::mem::take(&mut self.value));
            }
            b"\"method\"" => self.method = Some(std::mem::take(&mut self.value)),
            b"\"result\"" | b"\"error\"" => self.is_response = true,
            _ => {}
        }
        self.in_value = false;
        self.name.clear();
        self.value.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn salvage(text: &str) -> Salvage {
        let mut salvage = Salvage::default();
        // In pieces of three, so that every piece boundary is tried.
        text.as_bytes().chunks(3).for_each(|piece| salvage.feed(piece));
        salvage
    }

    fn id(text: &str) -> Option<String> {
        salvage(text).id().map(|id| id.as_json().to_owned())
    }

    #[test]
    fn the_id_is_found_wherever_it_stands() {
        let params = r#"{"name":"x","arguments":{"id":99,"s":"}\",\"id\":98,"}}"#;
        assert_eq!(
            id(&format!(r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":{params}}}"#)).as_deref(),
            Some("7")
        );
        assert_eq!(
            id(&format!(r#"{{"method":"m","params":{params}, "id" : "a,b" }}"#)).as_deref(),
            Some("\"a,b\"")
        );
        assert_eq!(id(&format!(r#"{{"method":"m","params":{params}}}"#)), None);
    }

    #[test]
    fn an_id_that_is_none_is_not_taken() {
        for text in
            [r#"{"id":{"a":1}}"#, r#"{"id":[1]}"#, r#"{"id":1,"id":2}"#, r#"[{"id":1}]"#, r#"{"id":true}"#]
        {
            assert_eq!(id(text), None, "{text}");
        }
        assert_eq!(id(&format!(r#"{{"id":"{}"}}"#, "x".repeat(5000))), None);
    }

    #[test]
    fn calls_and_responses_are_told_apart() {
        assert!(salvage(r#"{"method":"tools/call","id":1}"#).is_call());
        assert!(!salvage(r#"{"method":"tools/list","id":1}"#).is_call());
        assert!(salvage(r#"{"id":1,"result":{"method":"x"}}"#).is_response());
        assert!(!salvage(r#"{"id":1,"method":"x","result":1}"#).is_response());
    }
}
