//! A guess at the language of a text, for those who must know whether their model speaks it.

use super::words::words;

/// What is told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    English,
    Vietnamese,
    Other,
}

/// Words that stand in nearly every English sentence.
const ENGLISH: [&str; 28] = [
    "the", "of", "and", "to", "in", "is", "was", "what", "which", "who", "how", "when", "where", "did",
    "does", "for", "on", "with", "by", "are", "from", "that", "an", "were", "why", "it", "be", "as",
];

/// Words that stand in many sentences of languages that are written with the same plain letters. A few words without any of
/// these, as people type them into a search, are taken for English.
const OTHERS: [&str; 40] = [
    "der", "die", "das", "und", "ist", "nicht", "ein", "eine", "wie", "wer", "le", "la", "les", "des", "est",
    "une", "que", "qui", "el", "los", "las", "del", "por", "como", "il", "di", "che", "per", "het", "een",
    "van", "yang", "untuk", "apa", "cua", "gi", "nao", "khong", "bao", "cho",
];

/// Letters that Vietnamese has and its neighbours do not.
const VIETNAMESE: &str = "ăđơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ";

/// Words looked at: the beginning of a text tells.
const LOOKED_AT: usize = 200;

/// The language a text seems to be in.
pub fn language(text: &str) -> Language {
    let (mut all, mut plain, mut english, mut vietnamese, mut others) =
        (0usize, 0usize, 0usize, 0usize, 0usize);
    for range in words(text).take(LOOKED_AT) {
        let word = super::fold::keep(&text[range]);
        all += 1;
        plain += usize::from(word.is_ascii());
        english += usize::from(ENGLISH.contains(&word.as_str()));
        others += usize::from(OTHERS.contains(&word.as_str()));
        vietnamese += usize::from(word.chars().any(|letter| VIETNAMESE.contains(letter)));
    }
    if all > 0 && vietnamese * 5 >= all {
        Language::Vietnamese
    } else if all > 0 && plain * 10 >= all * 9 && (english * 10 >= all && english >= others || others == 0) {
        Language::English
    } else {
        Language::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_told_apart() {
        assert_eq!(language("What is the lift of a wing?"), Language::English);
        assert_eq!(language("Thủ đô của Việt Nam là gì?"), Language::Vietnamese);
        assert_eq!(language("Wer hat den Flügel gebaut und warum war das so?"), Language::Other);
        assert_eq!(language("boundary layer transition heat transfer"), Language::English);
        assert_eq!(language("thu do cua viet nam la gi"), Language::Other);
        assert_eq!(language("東京都"), Language::Other);
        assert_eq!(language(""), Language::Other);
    }
}
