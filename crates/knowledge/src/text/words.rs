//! The words of a text, as the index and a query both see them.

use std::ops::Range;

use unicode_normalization::char::is_combining_mark;

use super::fold::{fold, keep};
use super::stem::stem;
use crate::limits::WORD_CHARS;

/// A word to search for: with its marks, and without them where that is another word.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Term {
    pub kept: String,
    pub folded: Option<String>,
}

/// The terms of a text, in order and with repeats. Scripts without spaces give single letters and pairs.
pub fn terms(text: &str) -> Vec<Term> {
    let mut terms = Vec::new();
    for range in words(text) {
        let word = &text[range];
        if word.chars().next().is_some_and(spaceless) {
            pairs(word, &mut terms);
        } else {
            terms.push(term(word));
        }
    }
    terms
}

/// Where the words of a text are, in bytes.
pub fn words(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut letters = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (start, first) = letters.find(|(_, found)| found.is_alphanumeric())?;
        let mut end = start + first.len_utf8();
        let same = |found: char| {
            is_combining_mark(found) || (found.is_alphanumeric() && spaceless(found) == spaceless(first))
        };
        while let Some((at, found)) = letters.next_if(|(_, found)| same(*found)) {
            end = at + found.len_utf8();
        }
        Some(start..end)
    })
}

/// One word as a term.
fn term(word: &str) -> Term {
    // Most words are plain, and then there is nothing to compose or take apart.
    if word.is_ascii() {
        let short = &word[..word.len().min(WORD_CHARS)];
        return Term { kept: stem(short.to_ascii_lowercase()), folded: None };
    }
    let short: String = word.chars().take(WORD_CHARS).collect();
    let (kept, folded) = (stem(keep(&short)), stem(fold(&short)));
    let folded = (folded != kept && !folded.is_empty()).then_some(folded);
    Term { kept, folded }
}

fn pairs(run: &str, terms: &mut Vec<Term>) {
    let letters: Vec<char> = keep(run).chars().collect();
    let plain = |text: String| Term { kept: text, folded: None };
    for (at, letter) in letters.iter().enumerate() {
        terms.push(plain(letter.to_string()));
        if let Some(next) = letters.get(at + 1) {
            terms.push(plain([*letter, *next].iter().collect()));
        }
    }
}

/// Scripts that write words without spaces between them: Thai, Lao, Burmese, Khmer, kana and Han.
fn spaceless(letter: char) -> bool {
    matches!(u32::from(letter),
        0x0e00..=0x0eff | 0x1000..=0x109f | 0x1780..=0x17ff | 0x3040..=0x30ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff
        | 0xf900..=0xfaff | 0x20000..=0x3ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str) -> Vec<String> {
        terms(text).into_iter().map(|term| term.kept).collect()
    }

    #[test]
    fn words_are_stemmed_and_told_apart_by_their_marks() {
        assert_eq!(kept("Running, the RUNS!"), ["run", "the", "run"]);
        let found = terms("Đường Duong");
        assert_eq!(found[0], Term { kept: "đường".into(), folded: Some("duong".into()) });
        assert_eq!(found[1], Term { kept: "duong".into(), folded: None });
    }

    #[test]
    fn scripts_without_spaces_give_letters_and_pairs() {
        assert_eq!(kept("東京都 2020"), ["東", "東京", "京", "京都", "都", "2020"]);
    }

    #[test]
    fn a_word_taken_apart_stays_one_word() {
        let text = "tie\u{302}\u{301}ng";
        assert_eq!(words(text).next(), Some(0..text.len()));
        assert_eq!(kept(text), kept("tiếng"));
    }

    #[test]
    fn a_word_without_end_is_cut() {
        assert_eq!(kept(&"x".repeat(10_000))[0].len(), WORD_CHARS);
    }
}
