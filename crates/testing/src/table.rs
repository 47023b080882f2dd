//! Tables in Markdown that people read and tests run: each row says what must come of something.
//!
//! ```text
//! ## Waits                       the title by which a test finds its table
//! | attempt | longest wait |     columns
//! |---|---|
//! | `1` | `1000` |              a cell in backticks is what stands between them; `\|` is a `|`
//! ```

use std::path::Path;

/// One table of a file.
#[derive(Debug)]
pub struct Table {
    /// Its file and title, for messages.
    name: String,
    columns: Vec<String>,
    pub rows: Vec<Row>,
}

#[derive(Debug)]
pub struct Row {
    /// Its line in the file.
    pub line: usize,
    cells: Vec<(String, String)>,
}

impl Row {
    /// The cell of a column. Panics when there is no such column.
    pub fn get(&self, column: &str) -> &str {
        let cell = self.cells.iter().find(|(name, _)| name == column);
        cell.map_or_else(|| panic!("line {}: no column '{column}'", self.line), |(_, cell)| cell)
    }
}

impl Table {
    /// The table under this title. Panics when there is none, or when it has no rows.
    pub fn read(path: impl AsRef<Path>, title: &str) -> Self {
        let path = path.as_ref();
        let text =
            std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = format!("{}, {title}", path.file_name().unwrap_or_default().to_string_lossy());
        Self::of(name, &text, title)
    }

    fn of(name: String, text: &str, title: &str) -> Self {
        let mut lines = (1..).zip(text.lines());
        lines
            .by_ref()
            .find(|(_, line)| line.trim_start_matches('#').trim() == title && line.starts_with('#'));
        let rest = lines.skip_while(|(_, line)| !line.starts_with(['|', '#']));
        let mut rows = rest.take_while(|(_, line)| line.starts_with('|')).map(|(at, line)| (at, cells(line)));
        let columns =
            rows.next().map_or_else(|| panic!("{name}: there is no such table"), |(_, cells)| cells);
        let ruled = rows.next().is_some_and(|(_, cells)| cells.iter().all(|cell| cell.starts_with("---")));
        assert!(ruled, "{name}: a line of dashes follows the columns");
        let rows: Vec<Row> = rows
            .map(|(line, cells)| {
                assert_eq!(cells.len(), columns.len(), "{name}, line {line}: as many cells as columns");
                Row { line, cells: columns.iter().cloned().zip(cells).collect() }
            })
            .collect();
        assert!(!rows.is_empty(), "{name}: the table is empty");
        Self { name, columns, rows }
    }

    /// Every row must say what was found for it: one text for each of these columns. Panics with all rows that do not.
    pub fn holds(&self, columns: &[&str], find: impl Fn(&Row) -> Vec<String>) {
        let mut wrong = Vec::new();
        for column in columns {
            assert!(self.columns.iter().any(|known| known == column), "{}: no column '{column}'", self.name);
        }
        for row in &self.rows {
            let found = find(row);
            assert_eq!(found.len(), columns.len(), "{}, line {}", self.name, row.line);
            for (column, found) in columns.iter().zip(found) {
                if row.get(column) != found {
                    let said = row.get(column);
                    wrong.push(format!("line {}, {column}: it says {said} and is {found}", row.line));
                }
            }
        }
        assert!(wrong.is_empty(), "{}:\n{}", self.name, wrong.join("\n"));
    }
}

fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut letters = line.trim().trim_start_matches('|').chars().peekable();
    while let Some(letter) = letters.next() {
        let cell = cells.last_mut().expect("there is always one");
        match letter {
            '\\' if letters.peek() == Some(&'|') => cell.extend(letters.next()),
            '|' => cells.push(String::new()),
            letter => cell.push(letter),
        }
    }
    cells.pop();
    cells.iter().map(|cell| plain(cell.trim())).collect()
}

/// What stands between backticks; two on each side let one stand inside.
fn plain(cell: &str) -> String {
    for ticks in ["``", "`"] {
        let inside = cell.strip_prefix(ticks).and_then(|rest| rest.strip_suffix(ticks));
        if let Some(inside) = inside.filter(|inside| !inside.contains(ticks)) {
            return inside.to_owned();
        }
    }
    cell.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Sums\n\nA remark.\n\n## Plus\n\n| a | b | sum |\n|---|---|---|\n| 1 | `2` | 3 |\n| `\\|` | ``x`y`` | |\n\nEnd.\n\n## Empty\n\n| a |\n|---|\n";

    #[test]
    fn a_table_is_found_by_its_title_and_read_cell_by_cell() {
        let table = Table::of("test".into(), TEXT, "Plus");
        assert_eq!(table.rows.iter().map(|row| row.line).collect::<Vec<_>>(), [9, 10]);
        assert_eq!(
            (table.rows[0].get("b"), table.rows[1].get("a"), table.rows[1].get("b")),
            ("2", "|", "x`y")
        );
        table.holds(&["sum"], |row| {
            let number = |column: &str| row.get(column).parse::<i32>().ok();
            vec![number("a").zip(number("b")).map_or_else(String::new, |(a, b)| (a + b).to_string())]
        });
    }

    #[test]
    #[should_panic(expected = "line 9, sum: it says 3 and is 4\nline 10, sum: it says  and is 4")]
    fn every_row_that_does_not_hold_is_named() {
        Table::of("test".into(), TEXT, "Plus").holds(&["sum"], |_| vec!["4".into()]);
    }

    #[test]
    #[should_panic(expected = "there is no such table")]
    fn a_table_that_is_not_there_is_no_table_that_holds() {
        Table::of("test".into(), TEXT, "Minus");
    }

    #[test]
    #[should_panic(expected = "the table is empty")]
    fn an_empty_table_shows_nothing() {
        Table::of("test".into(), TEXT, "Empty");
    }

    #[test]
    #[should_panic(expected = "no column 'product'")]
    fn a_column_that_is_not_there_cannot_hold() {
        Table::of("test".into(), TEXT, "Plus").holds(&["product"], |_| vec![String::new()]);
    }
}
