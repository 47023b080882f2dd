//! Where sentences end, for snippets, answers, and cuts through long paragraphs.

use std::ops::Range;

/// The sentences of a text in bytes, without gaps: each begins where the one before ends.
pub fn sentences(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut start) = (Vec::new(), 0);
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let after = at + letter.len_utf8();
        let next = letters.peek().map(|(_, next)| *next);
        let ends = match letter {
            '.' | '!' | '?' => next.is_none_or(char::is_whitespace),
            '。' | '！' | '？' | '\n' => true,
            _ => false,
        };
        if ends {
            let mut end = after;
            while let Some((at, space)) = letters.next_if(|(_, next)| next.is_whitespace()) {
                end = at + space.len_utf8();
            }
            found.push(start..end);
            start = end;
        }
    }
    if start < text.len() {
        found.push(start..text.len());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_follow_each_other_without_a_gap() {
        let text = "Version 2.4 is out. Is it?\nYes! 東京。都";
        let parts: Vec<&str> = sentences(text).into_iter().map(|range| &text[range]).collect();
        assert_eq!(parts, ["Version 2.4 is out. ", "Is it?\n", "Yes! ", "東京。", "都"]);
        assert_eq!(parts.concat(), text);
        assert!(sentences("").is_empty());
    }
}
