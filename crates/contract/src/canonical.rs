//! Canonical JSON (RFC 8785): one text for one value, so that hashes of equal values are equal.
//!
//! Used for fingerprints, schema hashes, ETags and the audit chain.

use std::fmt::Write;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The canonical text of a value: sorted keys, no white space, shortest numbers.
pub fn text(value: &Value) -> String {
    let mut out = String::with_capacity(128);
    append(&mut out, value);
    out
}

/// The canonical text of a record whose members are declared in the order of their names and whose numbers are integers: it is
/// written as it stands, without a value in between.
pub fn of_sorted(record: &impl serde::Serialize) -> String {
    let out = serde_json::to_string(record).unwrap_or_default();
    debug_assert_eq!(
        serde_json::from_str(&out).map(|value| text(&value)).ok().as_ref(),
        Some(&out),
        "members out of order"
    );
    out
}

/// Appends the canonical text of a value to the object around it.
pub fn append(out: &mut String, value: &Value) {
    write_value(out, value);
}

/// The SHA-256 of the canonical text, in hex.
pub fn sha256_hex(value: &Value) -> String {
    sha256_hex_of(&text(value))
}

/// The SHA-256 of a text, in hex.
pub fn sha256_hex_of(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// The bytes of a hex text, of either case; None if it is no such text.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(pair.first()?)? << 4 | digit(pair.get(1)?)?)).collect()
}

/// Lower-case hex of some bytes.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    out
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(out, item);
            }
            out.push(']');
        }
        // A map is sorted by bytes; RFC 8785 sorts by UTF-16 code units, which differs above U+FFFF.
        Value::Object(map) if map.keys().is_sorted() && map.keys().all(|key| key.is_ascii()) => {
            write_members(out, map.iter());
        }
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_by(|a, b| a.0.encode_utf16().cmp(b.0.encode_utf16()));
            write_members(out, entries.into_iter());
        }
    }
}

fn write_members<'a>(out: &mut String, members: impl Iterator<Item = (&'a String, &'a Value)>) {
    out.push('{');
    for (index, (key, item)) in members.enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(out, key);
        out.push(':');
        write_value(out, item);
    }
    out.push('}');
}

/// Integers that a double holds exactly print as they are; everything else prints as ECMAScript does.
fn write_number(out: &mut String, number: &serde_json::Number) {
    const EXACT: u64 = 1 << 53;
    match (number.as_i64(), number.as_u64(), number.as_f64()) {
        (Some(integer), _, _) if integer.unsigned_abs() <= EXACT => {
            let _ = write!(out, "{integer}");
        }
        (_, _, Some(double)) => write_double(out, double),
        // Numbers beyond a double keep their own text: two different ones must not collide.
        _ => {
            let _ = write!(out, "{number}");
        }
    }
}

/// ECMAScript's Number::toString, from the shortest digits that round-trip.
fn write_double(out: &mut String, double: f64) {
    if double == 0.0 {
        out.push('0');
        return;
    }
    if double < 0.0 {
        out.push('-');
    }
    let scientific = format!("{:e}", double.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let point = exponent + 1;
    if (1..=21).contains(&point) {
        if count <= point {
            out.push_str(&digits);
            out.extend(std::iter::repeat_n('0', usize::try_from(point - count).unwrap_or(0)));
        } else {
            let (whole, rest) = digits.split_at(usize::try_from(point).unwrap_or(0));
            let _ = write!(out, "{whole}.{rest}");
        }
    } else if (-5..=0).contains(&point) {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', usize::try_from(-point).unwrap_or(0)));
        out.push_str(&digits);
    } else {
        let (first, rest) = digits.split_at(1);
        let sign = if exponent < 0 { '-' } else { '+' };
        let dot = if rest.is_empty() { "" } else { "." };
        let _ = write!(out, "{first}{dot}{rest}e{sign}{}", exponent.abs());
    }
}

fn write_string(out: &mut String, text: &str) {
    out.push('"');
    // What needs no escape is copied in one piece. Escaped characters are single bytes, so the pieces are whole characters.
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
        out.push_str(&rest[..at]);
        match rest.as_bytes()[at] {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            0x08 => out.push_str("\\b"),
            b'\t' => out.push_str("\\t"),
            b'\n' => out.push_str("\\n"),
            0x0c => out.push_str("\\f"),
            b'\r' => out.push_str("\\r"),
            control => {
                let _ = write!(out, "\\u{control:04x}");
            }
        }
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, expected: &str) {
        assert_eq!(text(&serde_json::from_str(input).unwrap()), expected, "of {input}");
    }

    #[test]
    fn follows_the_vectors_of_rfc_8785() {
        check(
            r#"{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}"#,
            r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#,
        );
        check(
            r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew","1":"One","\ud83d\ude00":"Emoji","\u0080":"Control","\u00f6":"Latin"}"#,
            "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\"ö\":\"Latin\",\"€\":\"Euro Sign\",\"😀\":\"Emoji\",\"\u{fb33}\":\"Hebrew\"}",
        );
    }

    #[test]
    fn escapes_stand_between_whole_characters() {
        check(
            r#"["","ü\"ü","\\","a\u0000ü\u001fb","\b\t\n\f\r","\u007f"]"#,
            "[\"\",\"ü\\\"ü\",\"\\\\\",\"a\\u0000ü\\u001fb\",\"\\b\\t\\n\\f\\r\",\"\u{7f}\"]",
        );
    }

    #[test]
    fn writes_numbers_as_ecmascript_does() {
        for (input, expected) in [
            ("0", "0"),
            ("-0.0", "0"),
            ("1", "1"),
            ("1.0", "1"),
            ("-1.5", "-1.5"),
            ("1e21", "1e+21"),
            ("1e20", "100000000000000000000"),
            ("1e-6", "0.000001"),
            ("1e-7", "1e-7"),
            ("9007199254740992", "9007199254740992"),
            ("123456789012345680000", "123456789012345680000"),
            ("5e-324", "5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ] {
            check(input, expected);
        }
    }

    #[test]
    fn key_order_and_white_space_do_not_matter() {
        let a: Value = serde_json::from_str(r#"{"a":1,"b":{"d":2,"c":3}}"#).unwrap();
        let b: Value = serde_json::from_str("{ \"b\": {\"c\":3, \"d\":2},\n\"a\":1 }").unwrap();
        assert_eq!(sha256_hex(&a), sha256_hex(&b));
    }
}
