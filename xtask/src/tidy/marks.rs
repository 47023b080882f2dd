//! Things left lying about: unfinished marks, skipped tests, places and hosts of one machine.
use super::source::Source;
use super::{CASES, File};

/// Spelled in two halves, so that this file does not complain about itself.
const UNFINISHED: [&str; 4] =
    [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("HA", "CK")];
const LATER: &str = concat!("for ", "now");
const PLACES: [&str; 6] = [
    concat!("/wo", "rk/"),
    concat!("/tm", "p/"),
    concat!("registry.npm", "js.org"),
    concat!("pypi", ".org"),
    concat!("static.crates", ".io"),
    concat!("index.crates", ".io"),
];
const SKIPPED_TEST: &str = concat!("#[ign", "ore");
const WALL_SLEEP: &str = concat!("thread::", "sleep(");

pub fn check(file: &File) -> Vec<String> {
    let mut complaints = Vec::new();
    if file.extension() == CASES {
        return complaints;
    }
    for (line, text) in file.text.lines().enumerate() {
        for mark in UNFINISHED.iter().filter(|mark| has_word(text, mark)) {
            complaints.push(file.complain(line + 1, format!("{mark}: finish it or say why not in an issue")));
        }
        if file.extension() != "md" && has_word(&text.to_lowercase(), LATER) {
            complaints.push(file.complain(line + 1, format!("`{LATER}`: say what is true instead")));
        }
        for place in PLACES.iter().filter(|place| text.contains(**place)) {
            complaints.push(file.complain(line + 1, format!("{place}: nothing here belongs to one machine")));
        }
    }
    complaints
}

pub fn check_rust(file: &File, source: &Source) -> Vec<String> {
    let mut complaints = Vec::new();
    for (line, text) in source.code.lines().enumerate() {
        if text.contains(SKIPPED_TEST) {
            complaints.push(file.complain(line + 1, "a test that does not run proves nothing"));
        }
        if file.path.starts_with("crates/") && text.contains(WALL_SLEEP) {
            complaints.push(file.complain(line + 1, "wait for the event, not for the wall clock"));
        }
    }
    complaints
}

fn has_word(text: &str, word: &str) -> bool {
    let edge = |found: Option<char>| found.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    text.match_indices(word)
        .any(|(at, _)| edge(text[..at].chars().next_back()) && edge(text[at + word.len()..].chars().next()))
}

#[cfg(test)]
mod tests {
    use super::super::File;
    use super::super::source::Source;
    use super::{LATER, PLACES, SKIPPED_TEST, UNFINISHED, WALL_SLEEP, check, check_rust};

    fn file(path: &str, text: String) -> File {
        File { path: path.into(), text }
    }

    #[test]
    fn each_mark_is_found_as_a_word() {
        for mark in UNFINISHED {
            assert_eq!(check(&file("a.rs", format!("// {mark}: later"))).len(), 1);
            assert_eq!(check(&file("a.rs", format!("let A{mark}B = 1;"))).len(), 0);
        }
        assert_eq!(check(&file("a.rs", format!("// good enough {LATER}"))).len(), 1);
        assert_eq!(check(&file("a.rs", format!("// {LATER}here else"))).len(), 0);
    }

    #[test]
    fn places_and_hosts_are_found_in_any_text_file() {
        for place in PLACES {
            assert_eq!(check(&file("a.json", format!("\"https:{place}x\""))).len(), 1);
        }
    }

    #[test]
    fn skipped_tests_and_wall_clock_sleeps_are_found_in_code_only() {
        let text = format!("{SKIPPED_TEST}]\nfn a() {{ std::{WALL_SLEEP}b) }}\n// {WALL_SLEEP}");
        let source = Source::read(&text);
        assert_eq!(check_rust(&file("crates/kernel/src/a.rs", text.clone()), &source).len(), 2);
        assert_eq!(check_rust(&file("xtask/src/a.rs", text), &source).len(), 1);
    }
}
