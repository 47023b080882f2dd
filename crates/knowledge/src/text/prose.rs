//! The sentences of a text that read as prose: without headings, code, tables and the signs of lists and quotes.

use super::markdown::{Line, read};
use super::sentences::sentences;

/// What a text says to people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prose {
    pub sentences: Vec<String>,
    /// Without their signs.
    pub headings: Vec<String>,
}

/// Reads a text in order. Lines of one paragraph belong together, wherever they were broken.
pub fn prose(text: &str, markdown: bool) -> Prose {
    let mut reader = Reader::default();
    for line in text.lines() {
        match markdown {
            true => reader.markdown(line),
            false if line.trim().is_empty() => reader.end(),
            false => reader.add(line),
        }
    }
    reader.end();
    reader.found
}

#[derive(Default)]
struct Reader {
    found: Prose,
    /// The paragraph that is being read.
    open: String,
    /// The sign and the length of the fence that code is within.
    fence: Option<(char, usize)>,
}

impl Reader {
    fn markdown(&mut self, line: &str) {
        let kind = read(line);
        if let Some((within, least)) = self.fence {
            let closes =
                matches!(kind, Line::Fence { sign, count, bare: true } if sign == within && count >= least);
            self.fence = self.fence.filter(|_| !closes);
            return;
        }
        match kind {
            Line::Blank => self.end(),
            Line::Heading { text, .. } => {
                self.end();
                self.found.headings.extend(Some(text.to_owned()).filter(|text| !text.is_empty()));
            }
            Line::Fence { sign, count, .. } => {
                self.end();
                self.fence = Some((sign, count));
            }
            Line::Text => self.text(line.trim()),
        }
    }

    /// A line that is no heading and no code.
    fn text(&mut self, line: &str) {
        let line = line.trim_start_matches(['>', ' ']);
        if line.starts_with('|') || line.starts_with("<!--") {
            return self.end();
        }
        if is_rule(line) {
            // What stands above a rule of this kind was a heading.
            if line.starts_with(['=', '-']) {
                self.open.clear();
            }
            return self.end();
        }
        match item(line) {
            Some(item) => {
                self.end();
                self.add(item);
            }
            None => self.add(line),
        }
    }

    fn add(&mut self, line: &str) {
        if !self.open.is_empty() {
            self.open.push(' ');
        }
        self.open.push_str(line.trim());
    }

    fn end(&mut self) {
        let paragraph = std::mem::take(&mut self.open);
        let parts = sentences(&paragraph).into_iter().map(|range| paragraph[range].trim().to_owned());
        self.found.sentences.extend(parts.filter(|part| !part.is_empty()));
    }
}

/// Three or more of the same sign and nothing else.
fn is_rule(line: &str) -> bool {
    let bare: String = line.chars().filter(|sign| !sign.is_whitespace()).collect();
    let first = bare.chars().next();
    bare.len() >= 3
        && first.is_some_and(|first| "-=*_".contains(first))
        && bare.chars().all(|sign| Some(sign) == first)
}

/// What stands behind the sign of a list, and behind the box of a task.
fn item(line: &str) -> Option<&str> {
    let digits = line.len() - line.trim_start_matches(|sign: char| sign.is_ascii_digit()).len();
    let rest = match digits {
        0 => line.strip_prefix(['-', '*', '+'])?,
        1..=9 => line[digits..].strip_prefix(['.', ')'])?,
        _ => return None,
    };
    let rest = rest.strip_prefix([' ', '\t'])?.trim_start();
    let task = ["[ ] ", "[x] ", "[X] "].into_iter().find_map(|box_| rest.strip_prefix(box_));
    Some(task.unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kno_8_5_headings_code_and_tables_are_no_sentences() {
        let text = "# Wings\n\nWings make\nlift. Birds fly.\n## More\n```sh\n# wings --lift\n```\n- [x] They bend.\n2. They\n   flap!\n\n\
            > A quote.\n\n| a | b |\n|---|---|\nTitle\n=====\nThe end\n---\n***\n<!-- no -->\nLast one";
        let wanted = ["Wings make lift.", "Birds fly.", "They bend.", "They flap!", "A quote.", "Last one"];
        let found = prose(text, true);
        assert_eq!(found.sentences, wanted);
        assert_eq!(found.headings, ["Wings", "More"]);
    }

    #[test]
    fn plain_text_is_taken_as_it_is() {
        let found = |text: &str, markdown| prose(text, markdown).sentences;
        assert_eq!(found("# one\ntwo. 3) four\n\n- five", false), ["# one two.", "3) four", "- five"]);
        assert_eq!(found("東京。都\n", true), ["東京。", "都"]);
        assert!(found("", true).is_empty() && found("```\nnever closed", true).is_empty());
    }

    #[test]
    fn what_only_looks_like_a_list_is_text() {
        let found = prose("2024 was cold.\n-5 degrees. *Very* cold.", true).sentences;
        assert_eq!(found, ["2024 was cold.", "-5 degrees.", "*Very* cold."]);
    }
}
