//! The blocks of plain texts and of JSON.

use std::ops::Range;

/// A piece of a text that belongs together, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub range: Range<usize>,
    /// The headings above it, outermost first.
    pub heading: String,
    /// A new section begins here.
    pub opens: bool,
}

/// JSON is taken apart down to this depth; what is deeper belongs to what is around it.
const DEPTH: usize = 2;

/// The lines of a text in bytes, each with its end.
pub fn lines(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut start = 0;
    text.split_inclusive('\n').map(move |line| {
        let range = start..start + line.len();
        start = range.end;
        range
    })
}

/// Paragraphs: what stands between empty lines.
pub fn paragraphs(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for range in lines(text) {
        if text[range.clone()].trim().is_empty() {
            open = false;
        } else if let (true, Some(last)) = (open, blocks.last_mut()) {
            last.range.end = range.end;
        } else {
            blocks.push(plain(range));
            open = true;
        }
    }
    blocks
}

/// Members and elements near the top. Broken JSON gives pieces all the same.
pub fn members(text: &str) -> Vec<Block> {
    let (mut blocks, mut start, mut depth) = (Vec::new(), 0, 0usize);
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        if quoted {
            quoted = escaped || byte != b'"';
            escaped = byte == b'\\' && !escaped;
            continue;
        }
        match byte {
            b'"' => quoted = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' if depth <= DEPTH => {
                blocks.push(plain(start..at + 1));
                start = at + 1;
            }
            _ => {}
        }
    }
    if start < text.len() {
        blocks.push(plain(start..text.len()));
    }
    blocks
}

fn plain(range: Range<usize>) -> Block {
    Block { range, heading: String::new(), opens: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_cut_between_members_and_never_within_a_text() {
        let text = r#"{"a":"x,\",y","b":[1,{"c":2,"d":3}]}"#;
        let found: Vec<&str> = members(text).into_iter().map(|block| &text[block.range]).collect();
        assert_eq!(found, [r#"{"a":"x,\",y","#, r#""b":[1,"#, r#"{"c":2,"d":3}]}"#]);
        assert_eq!(found.concat(), text);
    }

    #[test]
    fn paragraphs_are_what_stands_between_empty_lines() {
        let text = "a\nb\n\n \nc";
        let found: Vec<&str> = paragraphs(text).into_iter().map(|block| &text[block.range]).collect();
        assert_eq!(found, ["a\nb\n", "c"]);
    }
}
