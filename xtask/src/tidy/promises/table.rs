//! Reads a promise table: its rows, and those that have no test yet.
use super::super::File;
use super::DOCUMENTATION;
use super::page::split_cells;

/// The heading over the rows that have no test yet.
const WITHOUT_TEST: &str = "Without a test yet";
/// How the number of those rows is written below the heading.
const LIMIT: &str = "At most ";
/// What stands in place of a test where a sentence promises nothing.
pub const NO_PROMISE: &str = "no promise";

pub struct PromiseTable {
    pub path: String,
    pub rows: Vec<PromiseRow>,
    /// The line and the number of rows without a test that the file allows.
    limit: Option<(usize, usize)>,
    malformed: Vec<usize>,
}

pub struct PromiseRow {
    pub line: usize,
    /// The page whose sentence it quotes; empty in the tables of contracts.
    pub page: String,
    /// The tag, or the quoted sentence.
    pub key: String,
    pub tests: Vec<String>,
    pub note: String,
    pub is_untested: bool,
    test_cell: String,
}

impl PromiseRow {
    pub fn is_exempt(&self) -> bool {
        self.test_cell == NO_PROMISE
    }
}

impl PromiseTable {
    pub fn parse(file: &File) -> PromiseTable {
        let mut table =
            PromiseTable { path: file.path.clone(), rows: Vec::new(), limit: None, malformed: Vec::new() };
        let mut heading = "";
        let mut columns: Vec<String> = Vec::new();
        for (index, line) in file.text.lines().enumerate() {
            if let Some(title) = line.strip_prefix("## ") {
                heading = title.trim();
            }
            if heading == WITHOUT_TEST
                && let Some(limit) = limit_of(line)
            {
                table.limit = Some((index + 1, limit));
            }
            if !line.starts_with('|') {
                columns.clear();
                continue;
            }
            let cells = split_cells(line);
            if columns.is_empty() {
                columns = cells;
            } else if !line.starts_with("|--") {
                table.add(index + 1, heading, &columns, cells);
            }
        }
        table
    }

    fn add(&mut self, line: usize, heading: &str, columns: &[String], cells: Vec<String>) {
        if cells.len() != columns.len() {
            self.malformed.push(line);
            return;
        }
        let cell = |name: &str| {
            let at = columns.iter().position(|column| column == name);
            at.and_then(|at| cells.get(at)).cloned().unwrap_or_default()
        };
        let is_untested = heading == WITHOUT_TEST;
        let (key, page) = match (self.path == DOCUMENTATION, is_untested) {
            (false, _) => (cell("tag"), String::new()),
            (true, false) => (cell("sentence"), heading.to_string()),
            (true, true) => (cell("sentence"), cell("page")),
        };
        let note = if is_untested { cell("reason") } else { cell("note") };
        let has_promise = self.path == DOCUMENTATION || !cell("promise").is_empty();
        if key.is_empty() || !has_promise || (is_untested && note.is_empty()) {
            self.malformed.push(line);
            return;
        }
        let test_cell = cell("test");
        let tests = spans(&test_cell);
        self.rows.push(PromiseRow { line, page, key, tests, note, is_untested, test_cell });
    }

    pub fn complain(&self, line: usize, what: impl std::fmt::Display) -> String {
        format!("{}:{line}: {what}", self.path)
    }

    /// What is wrong with the form of the table and with the number of rows without a test.
    pub fn complaints(&self) -> Vec<String> {
        let form = "a row has a tag or a quoted sentence, what it promises, and as many cells as the heading";
        let mut complaints: Vec<String> =
            self.malformed.iter().map(|line| self.complain(*line, form)).collect();
        let untested = self.rows.iter().filter(|row| row.is_untested).count();
        let (line, limit) = self.limit.unwrap_or((1, 0));
        if untested > limit {
            let what =
                format!("{untested} rows without a test, and at most {limit} are allowed: write the test");
            complaints.push(self.complain(line, what));
        }
        if untested < limit {
            let what =
                format!("only {untested} rows are without a test: write \"{LIMIT}{untested} rows\" here");
            complaints.push(self.complain(line, what));
        }
        complaints
    }
}

fn limit_of(line: &str) -> Option<usize> {
    let rest = line.strip_prefix(LIMIT)?;
    rest.split_whitespace().next()?.parse().ok()
}

/// What stands between backticks.
pub fn spans(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::super::File;
    use super::{DOCUMENTATION, PromiseTable};

    fn table(path: &str, text: &str) -> PromiseTable {
        PromiseTable::parse(&File { path: path.into(), text: text.into() })
    }

    #[test]
    fn rows_are_read_with_their_tests_and_notes() {
        let text = "| tag | promise | test | note |\n|---|---|---|---|\n| A-1 | x \\| y | `a.rs::b`, `c.transcript` | why |\n";
        let table = table("conformance/promises/runtime.md", text);
        assert_eq!(table.complaints(), Vec::<String>::new());
        assert_eq!(table.rows[0].key, "A-1");
        assert_eq!(table.rows[0].tests, ["a.rs::b", "c.transcript"]);
        assert_eq!(table.rows[0].note, "why");
    }

    #[test]
    fn rows_of_pages_belong_to_the_heading_above_them() {
        let text = "## README.md\n\n| sentence | test | note |\n|---|---|---|\n| It never ends. | `a.rs::b` | |\n| ## Licence | no promise | words |\n";
        let table = table(DOCUMENTATION, text);
        assert_eq!(
            (table.rows[0].page.as_str(), table.rows[0].key.as_str()),
            ("README.md", "It never ends.")
        );
        assert!(table.rows[1].is_exempt());
    }

    #[test]
    fn the_number_of_rows_without_a_test_only_shrinks() {
        let text = |limit: usize| {
            format!(
                "## Without a test yet\n\nAt most {limit} rows.\n\n| tag | promise | reason |\n|---|---|---|\n| A-1 | x | y |\n"
            )
        };
        let complaints = |limit| table("conformance/promises/runtime.md", &text(limit)).complaints();
        assert_eq!(complaints(1), Vec::<String>::new());
        assert!(complaints(0)[0].contains("runtime.md:3: 1 rows without a test, and at most 0"));
        assert!(complaints(2)[0].contains("write \"At most 1 rows\""));
    }

    #[test]
    fn a_row_without_a_promise_or_with_other_cells_is_malformed() {
        let text = "| tag | promise | test | note |\n|---|---|---|---|\n| A-1 | | `a.rs::b` | |\n| A-2 | x | `a.rs::b` |\n";
        assert_eq!(table("conformance/promises/runtime.md", text).complaints().len(), 2);
    }
}
