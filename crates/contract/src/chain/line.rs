//! An entry of a chain as one line of text: the members of its body, then the four that chain it.
//!
//! `{"args_hash":…,…,"seq":7,"at_ms":1767225600000,"prev_hash":"…","entry_hash":"…"}`
//!
//! To check a line by hand: cut off everything from the last `,"seq":` on, put `}` in its place, and that is the body
//! the rules of a chain speak of. The four members are written in exactly one way, so that no byte of a line can change
//! without being found.

use super::Entry;

/// The line of an entry, without the line feed at its end. The body is a JSON object that has members.
pub fn write(entry: &Entry<'_>) -> Vec<u8> {
    let members = entry.body.strip_suffix(b"}").unwrap_or(entry.body);
    let mut line = Vec::with_capacity(members.len() + 256);
    line.extend_from_slice(members);
    line.extend_from_slice(
        format!(",\"seq\":{},\"at_ms\":{},\"prev_hash\":\"", entry.seq, entry.at_ms).as_bytes(),
    );
    line.extend_from_slice(entry.prev_hash);
    line.extend_from_slice(b"\",\"entry_hash\":\"");
    line.extend_from_slice(entry.entry_hash);
    line.extend_from_slice(b"\"}");
    line
}

/// The entry of a line, or nothing when it is not written as `write` writes. `body` is room for the body.
pub fn read<'a>(line: &'a [u8], body: &'a mut Vec<u8>) -> Option<Entry<'a>> {
    let (rest, entry_hash) = text_before(line.strip_suffix(b"}")?, b",\"entry_hash\":")?;
    let (rest, prev_hash) = text_before(rest, b",\"prev_hash\":")?;
    let (rest, at_ms) = number_before(rest, b",\"at_ms\":")?;
    let (members, seq) = number_before(rest, b",\"seq\":")?;
    body.clear();
    body.extend_from_slice(members);
    body.push(b'}');
    Some(Entry { seq, at_ms, body, prev_hash, entry_hash })
}

/// What stands before a member with a text as its value, and the text.
fn text_before<'a>(line: &'a [u8], name: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let line = line.strip_suffix(b"\"")?;
    let quote = line.iter().rposition(|byte| *byte == b'"')?;
    Some((line[..quote].strip_suffix(name)?, &line[quote + 1..]))
}

fn number_before<'a>(line: &'a [u8], name: &[u8]) -> Option<(&'a [u8], i64)> {
    let colon = line.iter().rposition(|byte| *byte == b':')?;
    let text = std::str::from_utf8(&line[colon + 1..]).ok()?;
    let number: i64 = text.parse().ok()?;
    // There are other ways to write a number that mean the same; they are not ours.
    (number.to_string() == text).then_some(())?;
    Some((line[..=colon].strip_suffix(name)?, number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::{GENESIS, Verifier, seal};

    fn lines(bodies: &[&str]) -> Vec<Vec<u8>> {
        let (mut prev, mut lines) = (GENESIS.to_owned(), Vec::new());
        for (seq, body) in (1..).zip(bodies) {
            let hash = seal(&prev, seq, 1_767_225_600_000, body.as_bytes());
            let entry = Entry {
                seq,
                at_ms: 1_767_225_600_000,
                body: body.as_bytes(),
                prev_hash: prev.as_bytes(),
                entry_hash: hash.as_bytes(),
            };
            lines.push(write(&entry));
            prev = hash;
        }
        lines
    }

    fn broken_at(lines: &[Vec<u8>]) -> Option<i64> {
        let (mut verifier, mut body) = (Verifier::new(), Vec::new());
        for line in lines {
            let seq = verifier.seq() + 1;
            match read(line, &mut body).map(|entry| verifier.take(entry)) {
                Some(Ok(())) => {}
                Some(Err(broken)) => return Some(broken.seq),
                None => return Some(seq),
            }
        }
        None
    }

    #[test]
    fn a_line_is_json_and_reads_back() {
        let lines = lines(&[r#"{"a":1}"#, r#"{"b":"\",\"seq\":9"}"#]);
        assert_eq!(broken_at(&lines), None);
        let value: serde_json::Value = serde_json::from_slice(&lines[1]).unwrap();
        assert_eq!((&value["seq"], &value["b"]), (&2.into(), &"\",\"seq\":9".into()));
    }

    #[test]
    fn every_flipped_bit_of_every_byte_is_found_at_its_entry() {
        let whole = lines(&[r#"{"a":1}"#, r#"{"b":"two"}"#, r#"{"c":[null]}"#]);
        for (at, line) in whole.iter().enumerate() {
            for place in 0..line.len() {
                for bit in 0..8 {
                    let mut changed = whole.clone();
                    changed[at][place] ^= 1 << bit;
                    assert_eq!(
                        broken_at(&changed),
                        Some(i64::try_from(at).unwrap() + 1),
                        "byte {place}, bit {bit}"
                    );
                }
            }
        }
    }
}
