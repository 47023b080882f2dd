//! What stands in the place of something too long, with enough of its hash to tell it from others.

use orchestr8_contract::canonical;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::limits::FIELD_BYTES;

const CHECKSUM_DIGITS: usize = 8;
const OBJECT: &str = "[object:truncated:";

/// The JSON of a field's value that is too long, in its short form. `json` is the value as it was written.
pub fn field(json: &[u8]) -> Vec<u8> {
    match serde_json::from_slice::<String>(json) {
        Ok(text) => text_within(&text, FIELD_BYTES),
        Err(_) => quoted(&format!("{OBJECT}{}]", checksum(json))),
    }
}

/// The same with nothing of the value left.
pub fn field_to_nothing(json: &[u8]) -> Vec<u8> {
    match serde_json::from_slice::<String>(json) {
        Ok(text) => text_within(&text, 0),
        Err(_) => quoted(&format!("{OBJECT}{}]", checksum(json))),
    }
}

/// Whether the text is what stands in the place of an object.
pub fn is_mark(text: &str) -> bool {
    let digits = text.strip_prefix(OBJECT).and_then(|rest| rest.strip_suffix(']'));
    digits.is_some_and(|digits| {
        digits.len() == CHECKSUM_DIGITS
            && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// A name too long to be shown.
pub fn name(name: &str) -> String {
    format!("[truncated:{}]", checksum(name.as_bytes()))
}

/// The beginning of a text and its mark, as JSON of at most so many bytes, the mark itself aside.
fn text_within(text: &str, max_bytes: usize) -> Vec<u8> {
    let mark = format!("...[truncated:{}]", checksum(text.as_bytes()));
    let room = max_bytes.saturating_sub(mark.len() + 2);
    let mut used = 0;
    let end = text.char_indices().find(|(_, c)| {
        used += escaped_bytes(*c);
        used > room
    });
    let end = end.map_or(text.len(), |(at, _)| at);
    quoted(&format!("{}{mark}", &text[..end]))
}

/// How long a character is in a JSON text.
fn escaped_bytes(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => c.len_utf8(),
    }
}

fn quoted(text: &str) -> Vec<u8> {
    Value::from(text).to_string().into_bytes()
}

fn checksum(bytes: &[u8]) -> String {
    let mut hex = canonical::hex(&Sha256::digest(bytes));
    hex.truncate(CHECKSUM_DIGITS);
    hex
}
