//! Command lines in documents.

/// Words as a shell splits them, as far as documents need it: blanks part them, and single quotes keep blanks.
pub fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            letter => words.last_mut().expect("there is always one").push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn blanks_part_words_and_quotes_keep_them() {
        assert_eq!(words("run  a.json --args '{\"a\": 1}'"), ["run", "a.json", "--args", "{\"a\": 1}"]);
        assert!(words(" ").is_empty());
    }
}
