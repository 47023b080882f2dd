//! English stems after Porter (1980): `running`, `runs` and `run` are one word to a search.

/// The stem of a word in lower-case ASCII letters; anything else is given back as it is.
pub fn stem(word: String) -> String {
    if word.len() < 3 || !word.bytes().all(|letter| letter.is_ascii_lowercase()) {
        return word;
    }
    let mut stem = Stem(word.into_bytes());
    stem.plurals();
    stem.past();
    stem.last_y();
    stem.swap(&STEP_2, 0);
    stem.swap(&STEP_3, 0);
    stem.drop_ending();
    stem.tidy();
    String::from_utf8(stem.0).unwrap_or_default()
}

const STEP_2: [(&str, &str); 20] = [
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("abli", "able"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
];

const STEP_3: [(&str, &str); 7] = [
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
];

const STEP_4: [&str; 19] = [
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism",
    "ate", "iti", "ous", "ive", "ize",
];

struct Stem(Vec<u8>);

impl Stem {
    fn ends(&self, ending: &str) -> bool {
        self.0.ends_with(ending.as_bytes())
    }

    /// What is before an ending of this length.
    fn before(&self, ending: &str) -> usize {
        self.0.len().saturating_sub(ending.len())
    }

    fn set(&mut self, from: usize, ending: &str) {
        self.0.truncate(from);
        self.0.extend_from_slice(ending.as_bytes());
    }

    fn consonant(&self, at: usize) -> bool {
        match self.0.get(at) {
            Some(b'a' | b'e' | b'i' | b'o' | b'u') => false,
            Some(b'y') => at == 0 || !self.consonant(at - 1),
            _ => true,
        }
    }

    /// How often a vowel is followed by a consonant within the first `upto` letters.
    fn measure(&self, upto: usize) -> usize {
        let turns = |at: &usize| !self.consonant(at - 1) && self.consonant(*at);
        (1..upto).filter(turns).count()
    }

    fn has_vowel(&self, upto: usize) -> bool {
        (0..upto).any(|at| !self.consonant(at))
    }

    fn ends_double(&self) -> bool {
        let n = self.0.len();
        n >= 2 && self.0[n - 1] == self.0[n - 2] && self.consonant(n - 1)
    }

    /// Consonant, vowel, consonant other than w, x and y before `upto`.
    fn ends_short(&self, upto: usize) -> bool {
        upto >= 3
            && self.consonant(upto - 3)
            && !self.consonant(upto - 2)
            && self.consonant(upto - 1)
            && !matches!(self.0[upto - 1], b'w' | b'x' | b'y')
    }

    fn plurals(&mut self) {
        if self.ends("sses") || self.ends("ies") {
            self.0.truncate(self.0.len() - 2);
        } else if self.ends("s") && !self.ends("ss") {
            self.0.truncate(self.0.len() - 1);
        }
    }

    fn past(&mut self) {
        if self.ends("eed") {
            if self.measure(self.before("eed")) > 0 {
                self.0.truncate(self.0.len() - 1);
            }
            return;
        }
        let Some(ending) = ["ed", "ing"].into_iter().find(|ending| self.ends(ending)) else { return };
        let before = self.before(ending);
        if !self.has_vowel(before) {
            return;
        }
        self.0.truncate(before);
        if self.ends("at") || self.ends("bl") || self.ends("iz") {
            self.0.push(b'e');
        } else if self.ends_double() && !matches!(self.0.last(), Some(b'l' | b's' | b'z')) {
            self.0.pop();
        } else if self.measure(self.0.len()) == 1 && self.ends_short(self.0.len()) {
            self.0.push(b'e');
        }
    }

    fn last_y(&mut self) {
        if self.ends("y") && self.has_vowel(self.before("y")) {
            self.set(self.before("y"), "i");
        }
    }

    /// Replaces the longest ending of the list where enough of the word is left.
    fn swap(&mut self, endings: &[(&str, &str)], over: usize) {
        let longest =
            endings.iter().filter(|(ending, _)| self.ends(ending)).max_by_key(|(ending, _)| ending.len());
        if let Some((ending, other)) = longest {
            let before = self.before(ending);
            if self.measure(before) > over {
                self.set(before, other);
            }
        }
    }

    fn drop_ending(&mut self) {
        let longest = STEP_4.iter().filter(|ending| self.ends(ending)).max_by_key(|ending| ending.len());
        if let Some(ending) = longest {
            let before = self.before(ending);
            let fits = *ending != "ion" || (before > 0 && matches!(self.0[before - 1], b's' | b't'));
            if fits && self.measure(before) > 1 {
                self.0.truncate(before);
            }
        }
    }

    fn tidy(&mut self) {
        if self.ends("e") {
            let before = self.before("e");
            let measure = self.measure(before);
            if measure > 1 || (measure == 1 && !self.ends_short(before)) {
                self.0.truncate(before);
            }
        }
        if self.measure(self.0.len()) > 1 && self.ends_double() && self.ends("l") {
            self.0.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_paper() {
        for (word, wanted) in [
            ("caresses", "caress"),
            ("ponies", "poni"),
            ("cats", "cat"),
            ("feed", "feed"),
            ("agreed", "agre"),
            ("plastered", "plaster"),
            ("bled", "bled"),
            ("motoring", "motor"),
            ("sing", "sing"),
            ("conflated", "conflat"),
            ("troubled", "troubl"),
            ("sized", "size"),
            ("hopping", "hop"),
            ("falling", "fall"),
            ("hissing", "hiss"),
            ("failing", "fail"),
            ("filing", "file"),
            ("happy", "happi"),
            ("sky", "sky"),
            ("relational", "relat"),
            ("conditional", "condit"),
            ("vietnamization", "vietnam"),
            ("predication", "predic"),
            ("operator", "oper"),
            ("hopefulness", "hope"),
            ("formaliti", "formal"),
            ("triplicate", "triplic"),
            ("electrical", "electr"),
            ("goodness", "good"),
            ("adjustment", "adjust"),
            ("adoption", "adopt"),
            ("effective", "effect"),
            ("probate", "probat"),
            ("rate", "rate"),
            ("controlling", "control"),
            ("roll", "roll"),
            ("running", "run"),
        ] {
            assert_eq!(stem(word.to_owned()), wanted, "{word}");
        }
    }

    #[test]
    fn other_words_stay_as_they_are() {
        for word in ["is", "việt", "mp3s", "", "été"] {
            assert_eq!(stem(word.to_owned()), word);
        }
    }
}
