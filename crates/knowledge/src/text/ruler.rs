//! Finds pieces of a text whose places are counted in characters.

/// A text that is measured once and cut many times.
pub struct Ruler<'a> {
    text: &'a str,
    /// Where each character begins; none if every character is one byte.
    starts: Option<Vec<usize>>,
}

impl<'a> Ruler<'a> {
    pub fn new(text: &'a str) -> Self {
        let starts = (!text.is_ascii()).then(|| text.char_indices().map(|(at, _)| at).collect());
        Self { text, starts }
    }

    /// The piece that begins at a character and has so many; what lies beyond the end is not there.
    pub fn piece(&self, start: i64, chars: i64) -> &'a str {
        self.text.get(self.at(start)..self.at(start.saturating_add(chars))).unwrap_or_default()
    }

    fn at(&self, char: i64) -> usize {
        let place = usize::try_from(char).unwrap_or(usize::MAX);
        match &self.starts {
            Some(starts) => starts.get(place).copied().unwrap_or(self.text.len()),
            None => place.min(self.text.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn a_piece_is_what_its_characters_are(text in "[a-dđ東]{0,30}", start in 0..40usize, chars in 0..40usize) {
            let real: String = text.chars().skip(start).take(chars).collect();
            let (start, chars) = (i64::try_from(start).unwrap(), i64::try_from(chars).unwrap());
            prop_assert_eq!(Ruler::new(&text).piece(start, chars), real);
        }
    }
}
