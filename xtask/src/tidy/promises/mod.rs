//! The promise tables of `conformance/promises`: each row names a test that exists, each tag that is cited has a row, each claim of a page is quoted.
mod citations;
mod claims;
mod evidence;
mod page;
mod pages;
mod table;

use super::File;
use evidence::TestIndex;
use std::collections::BTreeMap;
use table::{PromiseRow, PromiseTable};

const FOLDER: &str = "conformance/promises/";
/// The table of README and guides; the others are of contracts.
const DOCUMENTATION: &str = "conformance/promises/documentation.md";

pub fn check(files: &[File]) -> Vec<String> {
    let tests = TestIndex::new(files);
    let tables: Vec<PromiseTable> =
        files.iter().filter(|file| is_table(file)).map(PromiseTable::parse).collect();
    let mut complaints = Vec::new();
    let mut tags = BTreeMap::new();
    for table in &tables {
        complaints.extend(table.complaints());
        complaints.extend(table.rows.iter().flat_map(|row| unproven(table, row, &tests)));
        if table.path != DOCUMENTATION {
            complaints.extend(repeated_tags(table, &mut tags));
        }
    }
    complaints.extend(citations::check(files, &tags));
    match tables.iter().find(|table| table.path == DOCUMENTATION) {
        Some(documentation) => complaints.extend(pages::check(files, documentation, &tests)),
        None => complaints.push(format!("{DOCUMENTATION}:1: the table of README and guides is missing")),
    }
    complaints
}

fn is_table(file: &File) -> bool {
    file.path.starts_with(FOLDER) && file.extension() == "md" && !file.path.ends_with("/README.md")
}

/// What is wrong with the tests that a row names.
fn unproven(table: &PromiseTable, row: &PromiseRow, tests: &TestIndex) -> Vec<String> {
    if row.is_untested {
        return Vec::new();
    }
    if row.is_exempt() {
        let has_reason = !row.note.is_empty();
        let complaint = || table.complain(row.line, "`no promise` needs a note that says why");
        return (!has_reason).then(complaint).into_iter().collect();
    }
    if row.tests.is_empty() {
        let what = "no test: name one as `path::function`, or move the row to \"Without a test yet\" with the reason";
        return vec![table.complain(row.line, what)];
    }
    if row.tests.iter().all(|test| evidence::constant(test).is_some()) {
        let what = "a constant is no test: name the test of what happens at the limit beside it";
        return vec![table.complain(row.line, what)];
    }
    row.tests
        .iter()
        .filter_map(|test| tests.missing(test))
        .map(|what| table.complain(row.line, what))
        .collect()
}

fn repeated_tags(table: &PromiseTable, tags: &mut BTreeMap<String, String>) -> Vec<String> {
    let mut complaints = Vec::new();
    for row in &table.rows {
        let place = format!("{}:{}", table.path, row.line);
        if let Some(first) = tags.insert(row.key.clone(), place) {
            complaints
                .push(table.complain(row.line, format!("the tag {} stands at {first} already", row.key)));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::super::File;
    use super::check;

    const TABLE: &str = "# Promises\n\n| tag | promise | test | note |\n|---|---|---|---|\n";
    const TEST: &str = "//! Tests.\n#[test]\nfn it_holds() {}\n";

    fn file(path: &str, text: String) -> File {
        File { path: path.into(), text }
    }

    fn complaints(rows: &str, code: &str) -> Vec<String> {
        check(&[
            file("conformance/promises/runtime.md", format!("{TABLE}{rows}")),
            file("conformance/promises/documentation.md", "## README.md\n".into()),
            file("README.md", "# It\n".into()),
            file("crates/a/tests/it/main.rs", format!("{TEST}{code}")),
        ])
    }

    #[test]
    fn a_row_with_its_test_is_accepted() {
        let row = "| MCP-ID-1 | ids come back | `crates/a/tests/it/main.rs::it_holds` | |\n";
        assert_eq!(complaints(row, "// MCP-ID-1\n"), Vec::<String>::new());
    }

    #[test]
    fn a_row_without_a_test_and_a_test_that_is_gone_are_named() {
        let rows = "| MCP-ID-1 | ids come back | | |\n| MCP-ID-2 | or null | `crates/a/tests/it/main.rs::gone` | |\n";
        let found = complaints(rows, "");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("conformance/promises/runtime.md:5: no test"), "{found:?}");
        assert!(found[1].contains("crates/a/tests/it/main.rs has no test gone"), "{found:?}");
    }

    #[test]
    fn a_constant_alone_is_no_test() {
        let found = complaints(
            "| MCP-ID-1 | at most 9 | `crates/a/tests/it/main.rs::MANY = 9` | |\n",
            "const MANY: u8 = 9;\n",
        );
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("a constant is no test"), "{found:?}");
    }

    #[test]
    fn a_tag_stands_once_in_all_tables() {
        let row = "| MCP-ID-1 | ids come back | `crates/a/tests/it/main.rs::it_holds` | |\n";
        let found = complaints(&row.repeat(2), "");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("stands at conformance/promises/runtime.md:5 already"), "{found:?}");
    }

    #[test]
    fn a_cited_tag_without_a_row_is_named_where_it_is_cited() {
        let found = complaints("", "// as MCP-ID-7 says\n");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/a/tests/it/main.rs:4: MCP-ID-7 has no row"), "{found:?}");
    }
}
