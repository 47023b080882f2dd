//! Names that say nothing: manager, handler, helper, util, common, impl; and errors named twice.
use super::File;
use super::source::Source;

const EMPTY_WORDS: [&str; 9] =
    ["manager", "handler", "handlers", "helper", "helpers", "util", "utils", "common", "impl"];
const KEYWORDS: [&str; 6] = ["struct", "enum", "trait", "type", "mod", "fn"];

pub fn check(file: &File, source: &Source) -> Vec<String> {
    let mut complaints = Vec::new();
    let stem = file.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
    if let Some(word) = empty_word(stem) {
        complaints.push(file.complain(1, format!("a file called {stem}: `{word}` says nothing")));
    }
    for (line, text) in source.code.lines().enumerate() {
        let Some((keyword, name)) = declared(text) else { continue };
        if let Some(word) = empty_word(name) {
            complaints.push(file.complain(line + 1, format!("{keyword} {name}: `{word}` says nothing")));
        }
        // `OnError` is what to do about errors, not an error.
        let is_error = name.len() > "Error".len() && name.ends_with("Error") && !name.starts_with("On");
        if matches!(keyword, "struct" | "enum") && is_error {
            complaints
                .push(file.complain(line + 1, format!("{name}: its module already says which error it is")));
        }
    }
    complaints
}

/// The item a line declares, if it declares one.
fn declared(line: &str) -> Option<(&'static str, &str)> {
    let mut words = line.split_whitespace();
    while let Some(word) = words.next() {
        if let Some(keyword) = KEYWORDS.into_iter().find(|keyword| *keyword == word) {
            let name = words.next()?;
            let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
            return Some((keyword, &name[..end])).filter(|(_, name)| !name.is_empty());
        }
        let qualifier =
            word.starts_with("pub") || matches!(word, "async" | "const" | "unsafe" | "extern" | "in");
        if !qualifier {
            return None;
        }
    }
    None
}

fn empty_word(name: &str) -> Option<&'static str> {
    let words = split(name);
    EMPTY_WORDS.into_iter().find(|empty| words.iter().any(|word| word == empty))
}

/// `SlotManager` and `slot_manager` are both `slot`, `manager`.
fn split(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for found in name.chars() {
        if (found == '_' || found == '-' || found.is_uppercase())
            && words.last().is_some_and(|word| !word.is_empty())
        {
            words.push(String::new());
        }
        if found.is_alphanumeric() {
            words.last_mut().into_iter().for_each(|word| word.extend(found.to_lowercase()));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::super::File;
    use super::super::source::Source;
    use super::check;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        check(&File { path: path.into(), text: text.into() }, &Source::read(text))
    }

    #[test]
    fn empty_words_are_found_in_any_spelling() {
        assert_eq!(complaints("a.rs", "pub(crate) struct SlotManager;").len(), 1);
        assert_eq!(complaints("a.rs", "pub async fn run_handler() {}").len(), 1);
        assert_eq!(complaints("src/utils.rs", "").len(), 1);
    }

    #[test]
    fn words_that_only_contain_them_are_fine() {
        assert_eq!(
            complaints("a.rs", "struct Utility; fn simplify() {} // a helper\nuse tokio_util::x;").len(),
            0
        );
    }

    #[test]
    fn an_error_is_named_by_its_module() {
        assert_eq!(complaints("a.rs", "pub enum StoreError {}").len(), 1);
        assert_eq!(complaints("a.rs", "pub enum Error {}").len(), 0);
        assert_eq!(complaints("a.rs", "pub enum OnError {}").len(), 0);
    }
}
