//! The plain form of a word: without marks, so that Vietnamese typed without them still finds its words.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The word without its marks, in lower case.
pub fn fold(word: &str) -> String {
    let mut folded = String::with_capacity(word.len());
    for found in word.nfkd().filter(|found| !is_combining_mark(*found)).flat_map(char::to_lowercase) {
        match plain(found) {
            Some(text) => folded.push_str(text),
            None => folded.push(found),
        }
    }
    folded
}

/// One spelling for the same word, with its marks: composed, in lower case, wide letters as normal ones.
pub fn keep(word: &str) -> String {
    word.nfkc().flat_map(char::to_lowercase).nfc().collect()
}

/// Letters with a stroke, and ligatures: Unicode does not take them apart.
fn plain(letter: char) -> Option<&'static str> {
    Some(match letter {
        'đ' | 'ð' => "d",
        'ł' => "l",
        'ø' => "o",
        'ħ' => "h",
        'ŧ' => "t",
        'ı' => "i",
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'þ' => "th",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vietnamese_loses_its_marks_and_nothing_else() {
        for (word, plain) in [
            ("Đường", "duong"),
            ("tiếng", "tieng"),
            ("Việt", "viet"),
            ("nghĩa", "nghia"),
            ("ở", "o"),
            ("straße", "strasse"),
            ("naïve", "naive"),
            ("plain", "plain"),
        ] {
            assert_eq!(fold(word), plain);
        }
    }

    #[test]
    fn composed_and_taken_apart_are_the_same_word() {
        assert_eq!(keep("e\u{302}\u{301}"), keep("ế"));
        assert_eq!(keep("ＡＢＣ"), "abc");
    }
}
