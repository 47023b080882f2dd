//! Masks known secrets in texts: as they are, and as JSON, base64, hexadecimal and percent-encoding write them.

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::{Map, Value};

use super::REDACTED;

/// A shorter value cannot be told from ordinary text, so it is not searched for.
pub const MASKED_BYTES: usize = 4;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE64_URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Finds a set of secret values in any text, in time proportional to the text.
#[derive(Clone, Default)]
pub struct SecretMask {
    search: Option<AhoCorasick>,
}

impl SecretMask {
    pub fn new<V: AsRef<str>>(values: impl IntoIterator<Item = V>) -> Self {
        let mut spellings: Vec<String> =
            values.into_iter().flat_map(|value| spellings(value.as_ref())).collect();
        spellings.sort_unstable();
        spellings.dedup();
        if spellings.is_empty() {
            return Self::default();
        }
        let search = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&spellings);
        Self { search: search.ok() }
    }

    pub fn is_empty(&self) -> bool {
        self.search.is_none()
    }

    /// The text with `[REDACTED]` in the place of each secret.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(search) = &self.search else { return Cow::Borrowed(text) };
        let (mut out, mut end) = (String::new(), 0);
        for found in search.find_iter(text) {
            out.push_str(&text[end..found.start()]);
            out.push_str(REDACTED);
            end = found.end();
        }
        if end == 0 {
            return Cow::Borrowed(text);
        }
        out.push_str(&text[end..]);
        Cow::Owned(out)
    }

    /// The value with every text, name and number in it masked.
    pub fn value(&self, value: Value) -> Value {
        if self.is_empty() {
            return value;
        }
        match value {
            Value::Null | Value::Bool(_) => value,
            Value::Number(number) => match self.text(&number.to_string()) {
                Cow::Borrowed(_) => Value::Number(number),
                Cow::Owned(text) => Value::String(text),
            },
            Value::String(text) => match self.text(&text) {
                Cow::Borrowed(_) => Value::String(text),
                Cow::Owned(text) => Value::String(text),
            },
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(map) => Value::Object(self.map(map)),
        }
    }

    pub fn map(&self, map: Map<String, Value>) -> Map<String, Value> {
        map.into_iter().map(|(name, value)| (self.text(&name).into_owned(), self.value(value))).collect()
    }
}

impl std::fmt::Debug for SecretMask {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("SecretMask(..)")
    }
}

/// Every way in which a text commonly shows the value.
fn spellings(value: &str) -> Vec<String> {
    // A part of the mark itself cannot be told from it.
    if value.len() < MASKED_BYTES || REDACTED.contains(value) {
        return Vec::new();
    }
    let quoted = Value::from(value).to_string();
    let mut all = vec![value.to_owned(), quoted[1..quoted.len() - 1].to_owned()];
    let bytes = value.as_bytes();
    // Short encodings would hide innocent text.
    const ENCODED_BYTES: usize = 8;
    if bytes.len() >= ENCODED_BYTES {
        all.extend([hex(bytes, b"0123456789abcdef", ""), hex(bytes, b"0123456789ABCDEF", "")]);
        all.extend([hex(bytes, b"0123456789abcdef", "%"), hex(bytes, b"0123456789ABCDEF", "%")]);
        all.extend([percent(value, false), percent(value, true)]);
        all.extend((0..3).flat_map(|shift| [base64(bytes, shift, BASE64), base64(bytes, shift, BASE64_URL)]));
    }
    all
}

fn hex(bytes: &[u8], digits: &[u8; 16], before: &str) -> String {
    let mut out = String::with_capacity(bytes.len() * (2 + before.len()));
    for byte in bytes {
        out.push_str(before);
        out.push(char::from(digits[usize::from(byte >> 4)]));
        out.push(char::from(digits[usize::from(byte & 15)]));
    }
    out
}

/// As `encodeURIComponent` writes it, or as a form does, where a blank is a plus.
fn percent(value: &str, form: bool) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' => out.push(char::from(byte)),
            b'~' | b'!' | b'*' | b'\'' | b'(' | b')' if !form => out.push(char::from(byte)),
            b' ' if form => out.push('+'),
            b'*' if form => out.push('*'),
            other => out.push_str(&hex(&[other], b"0123456789ABCDEF", "%")),
        }
    }
    out
}

/// The letters that the value alone decides when it stands `shift` bytes after a boundary of three: found wherever in an
/// encoded text it is.
fn base64(bytes: &[u8], shift: usize, alphabet: &[u8; 64]) -> String {
    let total_bits = bytes.len() * 8;
    let skipped = (6 - (shift * 8) % 6) % 6;
    let mut out = String::with_capacity(bytes.len() * 4 / 3);
    let mut at = skipped;
    while at + 6 <= total_bits {
        let bit = |index: usize| usize::from(bytes[index / 8] >> (7 - index % 8) & 1);
        let sextet = (at..at + 6).fold(0, |sextet, index| sextet << 1 | bit(index));
        out.push(char::from(alphabet[sextet]));
        at += 6;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn encode64(bytes: &[u8]) -> String {
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len().div_ceil(3) * 3, 0);
        base64(&padded, 0, BASE64)
    }

    #[test]
    fn every_spelling_is_found_and_the_longest_first() {
        let mask = SecretMask::new(["tok-1", "tok-1-long", "two\n\"lines\"", "abc"]);
        assert_eq!(mask.text("x tok-1-long tok-1"), "x [REDACTED] [REDACTED]");
        let inside = json!({"message": "two\n\"lines\""}).to_string();
        assert_eq!(mask.text(&inside), r#"{"message":"[REDACTED]"}"#);
        assert!(matches!(mask.text("abc is too short to search for"), Cow::Borrowed(_)));
        assert_eq!(mask.value(json!({"tok-1": ["tok-1", 1]})), json!({"[REDACTED]": ["[REDACTED]", 1]}));
        assert_eq!(SecretMask::new(["12345678"]).value(json!(12_345_678)), json!("[REDACTED]"));
        assert!(SecretMask::new(["a", ""]).is_empty());
    }

    #[test]
    fn encodings_are_found() {
        let secret = "s3cret/value ü";
        let mask = SecretMask::new([secret]);
        for text in [
            hex(secret.as_bytes(), b"0123456789abcdef", ""),
            hex(secret.as_bytes(), b"0123456789ABCDEF", "%"),
            "s3cret%2Fvalue%20%C3%BC".to_owned(),
            "s3cret%2Fvalue+%C3%BC".to_owned(),
        ] {
            assert_eq!(mask.text(&text), REDACTED, "{text}");
        }
        for user in ["", "u", "us", "user"] {
            let encoded = encode64(format!("{user}:{secret}:x").as_bytes());
            assert!(mask.text(&encoded).contains(REDACTED), "{encoded}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn no_secret_survives_and_twice_is_once(
            values in prop::collection::vec("[a-z\"\\\\é]{4,12}", 1..6), parts in prop::collection::vec("[a-z\"é ]{0,10}", 0..6),
        ) {
            let mask = SecretMask::new(&values);
            let text: String = parts.iter().zip(values.iter().cycle()).map(|(part, value)| format!("{part}{value}")).collect();
            let once = mask.text(&text).into_owned();
            for value in &values {
                prop_assert!(!once.contains(value.as_str()), "{once}");
            }
            prop_assert_eq!(mask.text(&once).into_owned(), once.clone());
        }

        #[test]
        fn base64_is_found_at_every_place(value in "[ -~]{8,40}", before in "[ -~]{0,5}", after in "[ -~]{0,5}") {
            let encoded = encode64(format!("{before}{value}{after}").as_bytes());
            prop_assert!(SecretMask::new([&value]).text(&encoded).contains(REDACTED));
        }
    }
}
