//! Compares README and guides with the table that quotes them: every quote is on its page, every claim is quoted, every section has a row.
use super::super::File;
use super::DOCUMENTATION;
use super::claims::claims;
use super::evidence::TestIndex;
use super::page::{Block, MarkdownPage, plain};
use super::table::{PromiseRow, PromiseTable};
use std::ops::Range;

/// Pages whose tables a program writes or whose figures were measured: their sections need a row, their sentences do not.
const GENERATED: [&str; 2] = ["docs/guide/configuration.md", "docs/guide/benchmarks.md"];
/// It only says what the pages are about.
const GUIDE_INDEX: &str = "docs/guide/README.md";
/// A shorter quote says too little to notice that its sentence changed.
const QUOTE_WORDS: usize = 3;
/// How much of a quote that is not found is repeated.
const SHOWN: usize = 160;

pub fn check(files: &[File], documentation: &PromiseTable, tests: &TestIndex) -> Vec<String> {
    let pages: Vec<(&File, MarkdownPage)> = files
        .iter()
        .filter(|file| is_page(&file.path))
        .map(|file| (file, MarkdownPage::parse(&file.text)))
        .collect();
    let mut complaints = Vec::new();
    for row in &documentation.rows {
        if !pages.iter().any(|(file, _)| file.path == row.page) {
            complaints.push(documentation.complain(row.line, format!("there is no page \"{}\"", row.page)));
        }
    }
    for (file, page) in &pages {
        let rows: Vec<&PromiseRow> = documentation.rows.iter().filter(|row| row.page == file.path).collect();
        complaints.extend(rows.iter().filter_map(|row| misquoted(documentation, page, row)));
        complaints.extend(unquoted_claims(file, page, &rows));
        complaints.extend(empty_sections(file, page, &rows));
        complaints.extend(missing_tests(file, page, tests));
    }
    complaints
}

fn is_page(path: &str) -> bool {
    path == "README.md" || (path.starts_with("docs/guide/") && path.ends_with(".md") && path != GUIDE_INDEX)
}

fn section_title(row: &PromiseRow) -> Option<&str> {
    row.key.strip_prefix("## ")
}

fn misquoted(documentation: &PromiseTable, page: &MarkdownPage, row: &PromiseRow) -> Option<String> {
    if let Some(title) = section_title(row) {
        let title = plain(title);
        let is_there = page.sections.iter().any(|section| section.title == title);
        let complaint =
            || documentation.complain(row.line, format!("{} has no section \"{title}\"", row.page));
        return (!is_there).then(complaint);
    }
    let quote = plain(&row.key);
    let is_whole_block = page.blocks.iter().any(|block| block.text == quote);
    if is_short(&quote) && !is_whole_block {
        let what = format!("quote at least {QUOTE_WORDS} words, so that a change of the sentence is noticed");
        return Some(documentation.complain(row.line, what));
    }
    let is_there = page.blocks.iter().any(|block| block.text.contains(&quote));
    let what = || {
        format!(
            "{} does not say \"{}\": quote the sentence as it is now and see whether its test still proves it, or remove the row",
            row.page,
            shorten(&quote)
        )
    };
    (!is_there).then(|| documentation.complain(row.line, what()))
}

fn unquoted_claims(file: &File, page: &MarkdownPage, rows: &[&PromiseRow]) -> Vec<String> {
    if GENERATED.contains(&file.path.as_str()) {
        return Vec::new();
    }
    let quotes: Vec<String> =
        rows.iter().filter(|row| section_title(row).is_none()).map(|row| plain(&row.key)).collect();
    let mut complaints = Vec::new();
    for block in page.blocks.iter().filter(|block| block.tests.is_empty()) {
        let quoted: Vec<Range<usize>> = quotes.iter().flat_map(|quote| places(block, quote)).collect();
        let mut last = None;
        for claim in claims(&block.text) {
            let is_quoted = quoted.iter().any(|range| range.start <= claim.start && claim.end <= range.end);
            let sentence = sentence_around(&block.text, &claim);
            if is_quoted || last == Some(sentence) {
                continue;
            }
            last = Some(sentence);
            let what = format!(
                "\"{}\" makes a promise without a row: add \"| {} | `path::test` | |\" below \"## {}\" in {DOCUMENTATION}, with the test that would fail, or `no promise` and why",
                &block.text[claim.clone()],
                sentence.replace('|', "\\|"),
                file.path
            );
            complaints.push(file.complain(block.line_at(claim.start), what));
        }
    }
    complaints
}

fn empty_sections(file: &File, page: &MarkdownPage, rows: &[&PromiseRow]) -> Vec<String> {
    let titles: Vec<String> = rows.iter().filter_map(|row| section_title(row)).map(plain).collect();
    let quotes: Vec<String> =
        rows.iter().filter(|row| section_title(row).is_none()).map(|row| plain(&row.key)).collect();
    let mut complaints = Vec::new();
    for (index, section) in page.sections.iter().enumerate() {
        let mut blocks = page.blocks.iter().filter(|block| block.section == Some(index)).peekable();
        // A heading directly above another one says nothing of its own.
        let is_empty = blocks.peek().is_none() && page.sections.get(index + 1).is_some();
        let has_row = titles.contains(&section.title)
            || blocks.any(|block| {
                !block.tests.is_empty() || quotes.iter().any(|quote| block.text.contains(quote))
            });
        if !has_row && !is_empty {
            let what = format!(
                "section \"{0}\" has no row in {DOCUMENTATION}: quote a sentence of it with its test, or add \"| ## {0} | no promise | why |\" below \"## {1}\"",
                section.title, file.path
            );
            complaints.push(file.complain(section.line, what));
        }
    }
    complaints
}

/// Tests that a page itself names in a table of promises.
fn missing_tests(file: &File, page: &MarkdownPage, tests: &TestIndex) -> Vec<String> {
    let mut complaints = Vec::new();
    for block in &page.blocks {
        for test in block.tests.iter().filter(|test| !tests.has_file_ending(test)) {
            complaints.push(file.complain(block.line_at(0), format!("no file with tests ends with {test}")));
        }
    }
    complaints
}

/// A short quote stands for a block that says nothing else, such as a cell of a table.
fn is_short(quote: &str) -> bool {
    quote.split(' ').count() < QUOTE_WORDS
}

fn places(block: &Block, quote: &str) -> Vec<Range<usize>> {
    if is_short(quote) && block.text != quote {
        return Vec::new();
    }
    block.text.match_indices(quote).map(|(at, found)| at..at + found.len()).collect()
}

fn sentence_around<'text>(text: &'text str, claim: &Range<usize>) -> &'text str {
    let ends = |at: usize| text[at..].starts_with(". ") || text[at..].starts_with("; ");
    let start = (0..claim.start)
        .rev()
        .filter(|at| text.is_char_boundary(*at))
        .find(|at| ends(*at))
        .map_or(0, |at| at + 2);
    let end = (claim.end..text.len()).filter(|at| text.is_char_boundary(*at)).find(|at| ends(*at));
    &text[start..end.map_or(text.len(), |at| at + 1)]
}

fn shorten(text: &str) -> String {
    let cut = text.char_indices().nth(SHOWN).map_or(text.len(), |(at, _)| at);
    let more = if cut < text.len() { "…" } else { "" };
    format!("{}{more}", text[..cut].replace('|', "\\|"))
}

#[cfg(test)]
mod tests {
    use super::super::File;
    use super::super::evidence::TestIndex;
    use super::super::table::PromiseTable;
    use super::{DOCUMENTATION, check};

    const PAGE: &str = "# Workflows\n\n## Retries\n\nA step is tried\nat most 3 times. It rests.\n\n## Licence\n\nAnyone may use it.\n";

    fn complaints(page: &str, rows: &str) -> Vec<String> {
        let file = |path: &str, text: String| File { path: path.into(), text };
        let files = vec![
            file("docs/guide/workflows.md", page.into()),
            file(
                DOCUMENTATION,
                format!("## docs/guide/workflows.md\n\n| sentence | test | note |\n|---|---|---|\n{rows}"),
            ),
            file("crates/a/tests/it/retry.rs", "#[test]\nfn x() {}".into()),
        ];
        check(&files, &PromiseTable::parse(&files[1]), &TestIndex::new(&files))
    }

    const QUOTE: &str = "| A step is tried at most 3 times. | `a.rs::b` | |\n";
    const LICENCE: &str = "| ## Licence | no promise | who may use it |\n";

    #[test]
    fn a_page_whose_claims_are_quoted_is_accepted() {
        assert_eq!(complaints(PAGE, &format!("{QUOTE}{LICENCE}")), Vec::<String>::new());
    }

    #[test]
    fn a_claim_without_a_row_is_named_with_its_line() {
        let found = complaints(PAGE, &format!("| ## Retries | no promise | x |\n{LICENCE}"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("docs/guide/workflows.md:6: \"at most\" makes a promise without a row"),
            "{found:?}"
        );
        assert!(found[0].contains("| A step is tried at most 3 times. | `path::test` | |"), "{found:?}");
    }

    #[test]
    fn a_section_without_a_row_is_named() {
        let found = complaints(PAGE, QUOTE);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("docs/guide/workflows.md:8: section \"Licence\" has no row"),
            "{found:?}"
        );
    }

    #[test]
    fn a_changed_sentence_breaks_its_row() {
        let found = complaints(&PAGE.replace("3 times", "4 times"), &format!("{QUOTE}{LICENCE}"));
        assert!(found[0].contains("documentation.md:5: docs/guide/workflows.md does not say"), "{found:?}");
        assert!(found.iter().any(|what| what.contains("workflows.md:6: \"at most\"")), "{found:?}");
    }

    #[test]
    fn short_quotes_and_unknown_pages_and_sections_are_refused() {
        let rows = format!("{QUOTE}{LICENCE}| at most | `a.rs::b` | |\n| ## Gone | no promise | x |\n");
        let found = complaints(PAGE, &rows);
        assert_eq!(found.len(), 2, "{found:?}");
        let other = format!(
            "{QUOTE}{LICENCE}\n## docs/guide/gone.md\n\n| sentence | test | note |\n|---|---|---|\n| a b c | `x` | |\n"
        );
        assert!(complaints(PAGE, &other)[0].contains("there is no page \"docs/guide/gone.md\""));
    }

    #[test]
    fn a_short_quote_covers_only_the_cell_that_it_is() {
        let page = "## It\n\n| |\n|---|\n| never |\n\nIt never ends.\n";
        let found = complaints(page, "| never | `a.rs::b` | |\n");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("docs/guide/workflows.md:7:"), "{found:?}");
    }

    #[test]
    fn a_table_of_promises_on_the_page_needs_no_rows_but_its_tests() {
        let table = |test: &str| {
            format!("## Promises\n\n| promise | test |\n|---|---|\n| it never ends | `{test}` |\n")
        };
        assert_eq!(complaints(&table("it/retry.rs"), ""), Vec::<String>::new());
        assert!(complaints(&table("gone.rs"), "")[0].contains("no file with tests ends with gone.rs"));
    }
}
