//! Tells whether what a row names as its test is there.
use super::super::{CASES, File};
use std::collections::BTreeMap;

const CONFORMANCE: &str = "conformance/";
const COMMAND: &str = "cargo xtask test ";
/// The parts of `cargo xtask test`, as the source names them.
const PARTS: &str = "xtask/src/test.rs";
/// Functions of these folders and files are tests that a macro calls.
const SUITES: [&str; 3] = ["/src/suite/", "/src/suite.rs", "/tests/shared/"];

pub struct TestIndex<'files> {
    files: BTreeMap<&'files str, &'files File>,
}

impl<'files> TestIndex<'files> {
    pub fn new(files: &'files [File]) -> TestIndex<'files> {
        TestIndex { files: files.iter().map(|file| (file.path.as_str(), file)).collect() }
    }

    /// What is wrong with `path::name`, `path` or `cargo xtask test part`.
    pub fn missing(&self, test: &str) -> Option<String> {
        if let Some(part) = test.strip_prefix(COMMAND) {
            let source = self.files.get(PARTS).map_or("", |file| file.text.as_str());
            let is_part = source.contains(&format!("\"{part}\" =>"));
            return (!is_part).then(|| format!("`{COMMAND}` has no part {part}"));
        }
        let (path, name) = test.split_once("::").map_or((test, None), |(path, name)| (path, Some(name)));
        let Some(file) = self.files.get(path) else {
            return Some(format!("the test {path} does not exist"));
        };
        match name {
            Some(name) if has_test(file, name) => None,
            Some(name) if constant(test).is_some() => Some(format!(
                "{path} does not say {name}: the sentence names another figure than the program"
            )),
            Some(name) => Some(format!("{path} has no test {name}")),
            None if stands_alone(file) => None,
            None => Some(format!("{path}: name the function, as `{path}::function`")),
        }
    }

    /// Whether some file of tests or cases has this path or ends with it; the tables inside guides name their tests so.
    pub fn has_file_ending(&self, end: &str) -> bool {
        let inside = format!("/{end}");
        self.files.values().any(|file| {
            let is_test = match file.extension() {
                "rs" => file.path.contains("/tests") || file.text.contains("test]"),
                extension => extension == CASES && file.path.starts_with(CONFORMANCE),
            };
            is_test && (file.path == end || file.path.ends_with(&inside))
        })
    }
}

/// Transcripts, cases, tables and definitions are tests as a whole.
fn stands_alone(file: &File) -> bool {
    let is_document = matches!(file.extension(), "transcript" | CASES | "md" | "json");
    is_document && file.path.starts_with(CONFORMANCE) && !file.path.ends_with("/README.md")
}

fn has_test(file: &File, name: &str) -> bool {
    match file.extension() {
        "rs" => has_rust_test(file, name),
        "mjs" | "ts" => {
            ["'", "`", "\""].iter().any(|quote| file.text.contains(&format!("test({quote}{name}")))
        }
        "md" => file.text.lines().any(|line| line.starts_with('|') && line.contains(name)),
        // The name of a case stands behind `= `.
        CASES => file.text.lines().any(|line| line.strip_prefix("= ") == Some(name)),
        _ => file.text.contains(name),
    }
}

/// `NAME = VALUE`: a constant that a sentence names the value of. It goes beside a test of what happens at the limit.
pub fn constant(test: &str) -> Option<(&str, &str)> {
    test.split_once("::")?.1.split_once(" = ")
}

fn has_constant(file: &File, name: &str, value: &str) -> bool {
    let declares = |line: &str| {
        line.split_once("const ").is_some_and(|(_, rest)| rest.starts_with(&format!("{name}:")))
            && line.ends_with(&format!(" = {value};"))
    };
    file.text.lines().any(declares)
}

fn has_rust_test(file: &File, name: &str) -> bool {
    if let Some((constant, value)) = name.split_once(" = ") {
        return has_constant(file, constant, value);
    }
    let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
    let declaration = format!("fn {name}(");
    let entry = format!("{name}: \"");
    let is_made_by_macro = file.text.contains("macro_rules!");
    lines.iter().enumerate().any(|(at, line)| {
        let is_declared = line.contains(&declaration);
        let is_in_suite = SUITES.iter().any(|suite| file.path.contains(suite));
        let above = lines[..at].iter().rev().take_while(|line| is_above_a_function(line));
        is_made_by_macro && line.starts_with(&entry)
            || is_declared
                && (is_in_suite
                    || above.into_iter().any(|line| line.starts_with("#[") && line.contains("test")))
    })
}

fn is_above_a_function(line: &str) -> bool {
    line.starts_with("#[") || line.starts_with("//")
}

#[cfg(test)]
mod tests {
    use super::super::File;
    use super::TestIndex;

    fn files() -> Vec<File> {
        let file = |path: &str, text: &str| File { path: path.into(), text: text.into() };
        vec![
            file("crates/a/tests/it/b.rs", "#[test]\n// Why.\nfn holds() {}\n\nfn holds_not() {}\n"),
            file(
                "crates/a/tests/it/pages.rs",
                "macro_rules! pages {}\npages! {\n    readme: \"README.md\", 14;\n}\n",
            ),
            file("crates/a/src/limits.rs", "pub const KEY_CHARACTERS: usize = 255;\n"),
            file("crates/a/src/suite/order.rs", "pub async fn in_order(store: &Store) {}\n"),
            file("conformance/mcp/echo.transcript", "> x"),
            file("conformance/workspace/attacks/locks.cases", "= a restart\nserver: restart\n"),
            file("conformance/workflows/tables/limits.md", "| key | 255 |\n"),
            file("dashboard/browser/acts.test.mjs", "test('pause and resume', async () => {"),
            file("xtask/src/test.rs", "match name {\n    \"vectors\" => run(),\n"),
        ]
    }

    #[test]
    fn tests_of_every_kind_are_found() {
        let files = files();
        let tests = TestIndex::new(&files);
        for test in [
            "crates/a/tests/it/b.rs::holds",
            "crates/a/tests/it/pages.rs::readme",
            "crates/a/src/suite/order.rs::in_order",
            "crates/a/src/limits.rs::KEY_CHARACTERS = 255",
            "conformance/mcp/echo.transcript",
            "conformance/workspace/attacks/locks.cases",
            "conformance/workspace/attacks/locks.cases::a restart",
            "conformance/workflows/tables/limits.md::255",
            "dashboard/browser/acts.test.mjs::pause and resume",
            "cargo xtask test vectors",
        ] {
            assert_eq!(tests.missing(test), None);
        }
    }

    #[test]
    fn what_is_no_test_is_told() {
        let files = files();
        let tests = TestIndex::new(&files);
        for test in [
            "crates/a/tests/it/b.rs::holds_not",
            "crates/a/tests/it/b.rs::hold",
            "crates/a/tests/it/b.rs",
            "crates/a/tests/it/gone.rs::holds",
            "crates/a/src/limits.rs::KEY_CHARACTERS = 25",
            "crates/a/src/limits.rs::KEY_CHARACTERS",
            "conformance/mcp/gone.transcript",
            "conformance/workspace/attacks/locks.cases::a rest",
            "conformance/workflows/tables/limits.md::256",
            "dashboard/browser/acts.test.mjs::cancel",
            "cargo xtask test everything",
        ] {
            assert!(tests.missing(test).is_some(), "{test}");
        }
    }

    #[test]
    fn a_guide_may_name_a_test_by_the_end_of_its_path() {
        let files = files();
        assert!(TestIndex::new(&files).has_file_ending("it/b.rs"));
        assert!(TestIndex::new(&files).has_file_ending("crates/a/tests/it/b.rs"));
        assert!(TestIndex::new(&files).has_file_ending("attacks/locks.cases"));
        assert!(!TestIndex::new(&files).has_file_ending("it/gone.rs"));
    }
}
