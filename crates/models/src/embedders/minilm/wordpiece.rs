//! Texts as the pieces of words that all-MiniLM-L6-v2 has learned: lower case, without marks, the longest piece first.
//!
//! `vocab.txt` is the vocabulary of BERT base uncased (Apache-2.0, Google): piece n is line n.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// What stands at the beginning and at the end of every text, and for a word that has no pieces.
const FIRST: u32 = 101;
const LAST: u32 = 102;
const UNKNOWN: u32 = 100;

/// A longer word is unknown as a whole.
const WORD_CHARS: usize = 100;

/// The vocabulary.
pub struct WordPiece {
    pieces: HashMap<&'static str, u32>,
}

impl WordPiece {
    pub fn new() -> Self {
        Self { pieces: include_str!("vocab.txt").lines().zip(0..).collect() }
    }

    /// The numbers of a text's pieces, at most `limit` with the first and the last.
    pub fn pieces(&self, text: &str, limit: usize) -> Vec<u32> {
        let mut found = vec![FIRST];
        let room = limit.saturating_sub(1).max(1);
        let mut word = String::new();
        for letter in text.chars().flat_map(clean) {
            match letter {
                Letter::Of(letter) => word.push(letter),
                Letter::Alone(letter) => {
                    self.push(&mut word, &mut found);
                    word.push(letter);
                    self.push(&mut word, &mut found);
                }
                Letter::Space => self.push(&mut word, &mut found),
            }
            if found.len() >= room {
                break;
            }
        }
        self.push(&mut word, &mut found);
        found.truncate(room);
        found.push(LAST);
        found
    }

    /// Takes the word apart, and leaves room for the next.
    fn push(&self, word: &mut String, found: &mut Vec<u32>) {
        if word.is_empty() {
            return;
        }
        let before = found.len();
        if word.chars().count() > WORD_CHARS || !self.split(word, found) {
            found.truncate(before);
            found.push(UNKNOWN);
        }
        word.clear();
    }

    /// False if some of the word is no piece at all.
    fn split(&self, word: &str, found: &mut Vec<u32>) -> bool {
        let mut rest = word;
        // A piece within a word is written with two signs before it.
        let mut within = String::from("##");
        while !rest.is_empty() {
            let inside = rest.len() < word.len();
            let ends = rest.char_indices().map(|(at, letter)| at + letter.len_utf8()).rev();
            let longest = ends.into_iter().find_map(|end| {
                let number = if inside {
                    within.truncate(2);
                    within.push_str(&rest[..end]);
                    self.pieces.get(within.as_str())
                } else {
                    self.pieces.get(&rest[..end])
                };
                number.map(|number| (end, *number))
            });
            let Some((end, number)) = longest else { return false };
            found.push(number);
            rest = &rest[end..];
        }
        true
    }
}

/// What a letter is to the words around it.
enum Letter {
    Of(char),
    /// A word by itself: a sign, or a letter of Han.
    Alone(char),
    Space,
}

/// A character as the model knows it: nothing, one letter, or several.
fn clean(found: char) -> impl Iterator<Item = Letter> {
    let space = matches!(found, '\t' | '\n' | '\r') || found.is_whitespace();
    let gone = !space && (found == '\u{fffd}' || group(found) == GeneralCategoryGroup::Other);
    let whole = (!gone && !space).then_some(found);
    let parts = whole.into_iter().flat_map(|found| std::iter::once(found).nfd());
    let kept = parts.filter(|part| part.general_category() != GeneralCategory::NonspacingMark);
    let letters = kept.flat_map(char::to_lowercase).map(move |letter| match letter {
        letter if han(found) => Letter::Alone(letter),
        letter if letter.is_ascii_punctuation() || group(letter) == GeneralCategoryGroup::Punctuation => {
            Letter::Alone(letter)
        }
        letter => Letter::Of(letter),
    });
    letters.chain(space.then_some(Letter::Space))
}

fn group(letter: char) -> GeneralCategoryGroup {
    letter.general_category_group()
}

/// Letters that are words by themselves.
fn han(letter: char) -> bool {
    matches!(u32::from(letter),
        0x4e00..=0x9fff | 0x3400..=0x4dbf | 0x20000..=0x2a6df | 0x2a700..=0x2b73f | 0x2b740..=0x2b81f
        | 0x2b920..=0x2ceaf | 0xf900..=0xfaff | 0x2f800..=0x2fa1f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Texts and their pieces as the reference implementation gives them.
    #[test]
    fn texts_are_taken_apart_as_the_reference_does() {
        let words = WordPiece::new();
        for line in include_str!("../../../tests/fixtures/wordpiece.jsonl").lines() {
            let (text, pieces): (String, Vec<u32>) = serde_json::from_str(line).unwrap();
            assert_eq!(words.pieces(&text, 256), pieces, "{text:?}");
        }
    }

    #[test]
    fn a_long_text_is_cut_and_still_ends_as_it_should() {
        let found = WordPiece::new().pieces(&"word ".repeat(10_000), 256);
        assert_eq!((found.len(), found[0], found[255]), (256, FIRST, LAST));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn any_text_has_pieces_within_the_limit(text in "\\PC{0,200}", limit in 2usize..64) {
            let found = WordPiece::new_shared().pieces(&text, limit);
            prop_assert!(found.len() >= 2 && found.len() <= limit);
            prop_assert!(found.iter().all(|piece| *piece < 30_522));
        }
    }

    impl WordPiece {
        fn new_shared() -> &'static Self {
            static WORDS: std::sync::LazyLock<WordPiece> = std::sync::LazyLock::new(WordPiece::new);
            &WORDS
        }
    }
}
