//! What a program says, as a person reads it: without the signs that are meant for a terminal.

use std::iter::Peekable;
use std::str::Chars;

use crate::limits;

/// The text without control sequences, at most as long as an output may be.
pub fn readable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_sequence(&mut chars),
            '\u{9b}' => skip_parameters(&mut chars),
            '\n' | '\t' => out.push(c),
            // A line that is written over is told as lines one after the other.
            '\r' if chars.peek() != Some(&'\n') => out.push('\n'),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    // Marks for what is no text are longer than what they stand for.
    let start = out.len().saturating_sub(limits::BASH_OUTPUT_BYTES);
    let start = (start..=out.len()).find(|at| out.is_char_boundary(*at)).unwrap_or(0);
    out.split_off(start)
}

/// After an escape: a sequence with parameters, a string for the terminal, or a sign of its own.
fn skip_sequence(chars: &mut Peekable<Chars<'_>>) {
    match chars.next() {
        Some('[') => skip_parameters(chars),
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(c) = chars.next() {
                if c == '\u{7}' || c == '\u{9c}' || (c == '\u{1b}' && chars.next_if_eq(&'\\').is_some()) {
                    return;
                }
            }
        }
        // These are followed by one more.
        Some(' '..='/') => {
            chars.next();
        }
        Some(_) | None => {}
    }
}

/// Up to the letter that ends them. What cannot be a parameter is left where it is.
fn skip_parameters(chars: &mut Peekable<Chars<'_>>) {
    while chars.next_if(|c| (' '..='?').contains(c)).is_some() {}
    chars.next_if(|c| ('@'..='~').contains(c));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn signs_for_terminals_are_left_out() {
        for (said, read) in [
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}text", "text"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("10%\r20%\r\ndone", "10%\n20%\ndone"),
            ("a\u{8}b\u{0}c\td", "abc\td"),
            ("\u{1b}(Bx\u{9b}2Jy\u{1b}", "xy"),
            ("größe €", "größe €"),
        ] {
            assert_eq!(readable(said), read);
        }
        assert_eq!(readable(&"€".repeat(limits::BASH_OUTPUT_BYTES)).len(), limits::BASH_OUTPUT_BYTES / 3 * 3);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn nothing_but_text_is_left(text in "[\\x00-\\x7f\u{80}-\u{9f}a-z]{0,80}") {
            let read = readable(&text);
            prop_assert!(read.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'), "{read:?}");
        }

        #[test]
        fn plain_text_stays_as_it_is(text in "[ -~äöü\n\t]{0,80}") {
            prop_assert_eq!(readable(&text), text);
        }
    }
}
