//! Reads a Markdown page as headings and blocks of plain text: a paragraph, a list item or a cell of a table.

pub struct MarkdownPage {
    pub sections: Vec<Section>,
    pub blocks: Vec<Block>,
}

pub struct Section {
    pub line: usize,
    pub title: String,
}

pub struct Block {
    /// The index of its section; none before the first heading.
    pub section: Option<usize>,
    /// Without marks of emphasis and targets of links, one blank between words.
    pub text: String,
    /// Where in the text each line begins.
    lines: Vec<(usize, usize)>,
    /// The tests that stand beside it in a table with the columns `promise` and `test`.
    pub tests: Vec<String>,
}

impl Block {
    pub fn line_at(&self, offset: usize) -> usize {
        let before = self.lines.iter().take_while(|(start, _)| *start <= offset);
        before.last().map_or(1, |(_, line)| *line)
    }
}

#[derive(Default)]
struct Reader {
    sections: Vec<Section>,
    blocks: Vec<Block>,
    /// The lines of the paragraph that is being read.
    open: Vec<(usize, String)>,
    is_code: bool,
    /// The columns of the table that is being read.
    columns: Option<Vec<String>>,
}

impl MarkdownPage {
    pub fn parse(text: &str) -> MarkdownPage {
        let mut reader = Reader::default();
        for (index, line) in text.lines().enumerate() {
            reader.take(index + 1, line.trim());
        }
        reader.close();
        MarkdownPage { sections: reader.sections, blocks: reader.blocks }
    }
}

impl Reader {
    fn take(&mut self, number: usize, line: &str) {
        if line.starts_with("```") {
            self.close();
            self.is_code = !self.is_code;
        }
        if self.is_code || line.starts_with("```") {
            return;
        }
        if let Some(row) = line.strip_prefix('|') {
            self.close();
            self.take_row(number, row);
            return;
        }
        self.columns = None;
        if line.is_empty() || line.starts_with('#') {
            self.close();
        }
        if let Some(title) = line.strip_prefix("## ").or_else(|| line.strip_prefix("### ")) {
            self.sections.push(Section { line: number, title: plain(title) });
        }
        if line.is_empty() || line.starts_with('#') {
            return;
        }
        if is_item(line) {
            self.close();
        }
        self.open.push((number, plain(line)));
    }

    fn take_row(&mut self, number: usize, row: &str) {
        let cells = split_cells(row);
        let Some(columns) = &self.columns else {
            self.columns = Some(cells.clone());
            cells.into_iter().for_each(|cell| self.add_block(vec![(number, plain(&cell))], Vec::new()));
            return;
        };
        let is_rule = row.chars().all(|c| matches!(c, '-' | ':' | '|' | ' '));
        if is_rule {
            return;
        }
        let tests = match columns.as_slice() {
            [promise, test] if promise == "promise" && test == "test" => {
                cells.get(1).map(|cell| super::table::spans(cell)).unwrap_or_default()
            }
            _ => Vec::new(),
        };
        let shown = if tests.is_empty() { cells.len() } else { 1 };
        for cell in cells.into_iter().take(shown) {
            self.add_block(vec![(number, plain(&cell))], tests.clone());
        }
    }

    fn close(&mut self) {
        let lines = std::mem::take(&mut self.open);
        self.add_block(lines, Vec::new());
    }

    fn add_block(&mut self, pieces: Vec<(usize, String)>, tests: Vec<String>) {
        let mut text = String::new();
        let mut lines = Vec::new();
        for (number, piece) in pieces.into_iter().filter(|(_, piece)| !piece.is_empty()) {
            if !text.is_empty() {
                text.push(' ');
            }
            lines.push((text.len(), number));
            text.push_str(&piece);
        }
        if !text.is_empty() {
            self.blocks.push(Block { section: self.sections.len().checked_sub(1), text, lines, tests });
        }
    }
}

fn is_item(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with("- ")
        || line.starts_with("* ")
        || (number.len() < line.len() && number.starts_with(". "))
}

/// The cells of a row without its bars at the ends; `\|` is a bar inside a cell.
pub fn split_cells(row: &str) -> Vec<String> {
    let row = row.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    let mut cells = vec![String::new()];
    let mut escaped = false;
    for found in row.chars() {
        match found {
            '|' if escaped => {
                cells.last_mut().into_iter().for_each(|cell| {
                    cell.pop();
                    cell.push('|');
                });
            }
            '|' => cells.push(String::new()),
            _ => cells.last_mut().into_iter().for_each(|cell| cell.push(found)),
        }
        escaped = found == '\\';
    }
    if row.ends_with('|') && cells.last().is_some_and(|cell| cell.trim().is_empty()) {
        cells.pop();
    }
    cells.into_iter().map(|cell| cell.trim().to_string()).collect()
}

/// The text without `**`, targets of links and images, and runs of blanks.
pub fn plain(text: &str) -> String {
    let mut rest = text;
    let mut out = String::new();
    while let Some(at) = rest.find('[') {
        let target = rest[at..].find("](").and_then(|end| {
            let close = rest[at + end..].find(')')?;
            Some((at + end, at + end + close + 1))
        });
        let Some((end, after)) = target.filter(|(end, _)| !rest[at + 1..*end].contains('[')) else {
            out.push_str(&rest[..=at]);
            rest = &rest[at + 1..];
            continue;
        };
        out.push_str(rest[..at].trim_end_matches('!'));
        out.push_str(&rest[at + 1..end]);
        rest = &rest[after..];
    }
    out.push_str(rest);
    out.replace("**", "").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{MarkdownPage, plain, split_cells};

    #[test]
    fn links_and_emphasis_become_words() {
        assert_eq!(plain("A **bold** [word](there.md#x)  and `[a](b)` [x]"), "A bold word and `a` [x]");
        assert_eq!(plain("![The picture](a.png) of it"), "The picture of it");
    }

    #[test]
    fn a_bar_may_stand_inside_a_cell() {
        assert_eq!(split_cells("| a \\| b | `c` | |"), ["a | b", "`c`", ""]);
    }

    #[test]
    fn a_paragraph_is_one_block_and_knows_its_lines() {
        let page =
            MarkdownPage::parse("# T\nfirst\n\n## One\none two\nthree\n- item\n```\ncode never\n```\n");
        let texts: Vec<&str> = page.blocks.iter().map(|block| block.text.as_str()).collect();
        assert_eq!(texts, ["first", "one two three", "- item"]);
        assert_eq!((page.blocks[0].section, page.blocks[1].section), (None, Some(0)));
        assert_eq!((page.blocks[1].line_at(0), page.blocks[1].line_at(8)), (5, 6));
        assert_eq!((page.sections[0].line, page.sections[0].title.as_str()), (4, "One"));
    }

    #[test]
    fn a_table_of_promises_brings_its_tests() {
        let page = MarkdownPage::parse(
            "| promise | test |\n|---|---|\n| it never ends | `a.rs`, `b.rs` |\n\n| a | b |\n|---|---|\n| c | d |\n",
        );
        let promise =
            page.blocks.iter().find(|block| block.text == "it never ends").map(|block| block.tests.clone());
        assert_eq!(promise, Some(vec!["a.rs".to_string(), "b.rs".to_string()]));
        assert!(page.blocks.iter().any(|block| block.text == "d" && block.tests.is_empty()));
    }
}
