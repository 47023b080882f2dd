//! SQL lives in `stores` and in one `tables.rs` per crate that persists, and nowhere else.
use super::File;
use super::source::Source;

const OPENINGS: [(&str, &[&str]); 8] = [
    ("SELECT", &[]),
    ("INSERT", &["INTO", "OR"]),
    ("UPDATE", &[]),
    ("DELETE", &["FROM"]),
    ("CREATE", &["TABLE", "INDEX", "UNIQUE", "VIEW", "TRIGGER"]),
    ("DROP", &["TABLE", "INDEX"]),
    ("ALTER", &["TABLE"]),
    ("PRAGMA", &[]),
];

pub fn check(file: &File, source: &Source) -> Vec<String> {
    let own = file.path.starts_with("crates/stores/") || file.path.ends_with("/tables.rs");
    // A test may look at what was stored; only the program is bound to one place.
    let test = ["/tests/", "/benches/", "/tests.rs"].iter().any(|part| file.path.contains(part));
    if own || test || !file.path.starts_with("crates/") {
        return Vec::new();
    }
    let found = source.strings.iter().filter(|(_, text)| is_sql(text));
    found
        .map(|(line, _)| file.complain(*line, "SQL belongs in stores or in this crate's tables.rs"))
        .collect()
}

fn is_sql(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let (Some(first), Some(second)) = (words.next(), words.next()) else { return false };
    let opening = OPENINGS.iter().find(|(opening, _)| *opening == first);
    opening.is_some_and(|(_, seconds)| seconds.is_empty() || seconds.contains(&second))
}

#[cfg(test)]
mod tests {
    use super::super::File;
    use super::super::source::Source;
    use super::check;

    fn complaints(path: &str, text: &str) -> usize {
        check(&File { path: path.into(), text: text.into() }, &Source::read(text)).len()
    }

    #[test]
    fn statements_are_found_outside_their_place() {
        let text = "let a = \"SELECT x FROM y\"; let b = \"DELETE FROM y\";";
        assert_eq!(complaints("crates/kernel/src/ledger.rs", text), 2);
        assert_eq!(complaints("crates/kernel/src/tables.rs", text), 0);
        assert_eq!(complaints("crates/stores/src/sqlite.rs", text), 0);
        assert_eq!(complaints("crates/kernel/tests/it/records.rs", text), 0);
    }

    #[test]
    fn an_http_verb_is_not_a_statement() {
        assert_eq!(
            complaints("crates/edge/src/lib.rs", "let a = \"DELETE /mcp\"; let b = \"Select one of\";"),
            0
        );
    }
}
