//! The blocks of a Markdown text: headings, paragraphs, lists, code, each under the headings above it.

use super::structure::{Block, lines};

/// How a line counts.
pub(super) enum Line<'a> {
    Blank,
    Heading {
        level: usize,
        text: &'a str,
    },
    /// Opens or closes code; the fence must be closed by at least as many of the same sign.
    Fence {
        sign: char,
        count: usize,
        bare: bool,
    },
    Text,
}

/// The blocks in order, without gaps between those of one section.
pub fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut headings: Vec<(usize, String)> = Vec::new();
    let mut fence: Option<(char, usize)> = None;
    let mut open = false;
    for range in lines(text) {
        let line = read(&text[range.clone()]);
        if let Some((sign, count)) = fence {
            if let Some(last) = blocks.last_mut() {
                last.range.end = range.end;
            }
            let closes =
                matches!(line, Line::Fence { sign: s, count: c, bare: true } if s == sign && c >= count);
            if closes {
                (fence, open) = (None, false);
            }
            continue;
        }
        match line {
            Line::Blank => open = false,
            Line::Heading { level, text } => {
                headings.retain(|(above, _)| *above < level);
                headings.push((level, text.to_owned()));
                blocks.push(Block { range, heading: path(&headings), opens: true });
                open = false;
            }
            Line::Fence { sign, count, .. } => {
                fence = Some((sign, count));
                blocks.push(Block { range, heading: path(&headings), opens: false });
            }
            Line::Text if open => {
                if let Some(last) = blocks.last_mut() {
                    last.range.end = range.end;
                }
            }
            Line::Text => {
                blocks.push(Block { range, heading: path(&headings), opens: false });
                open = true;
            }
        }
    }
    blocks
}

fn path(headings: &[(usize, String)]) -> String {
    let texts: Vec<&str> = headings.iter().map(|(_, text)| text.as_str()).collect();
    texts.join(" / ")
}

/// How a line outside of code counts.
pub(super) fn read(line: &str) -> Line<'_> {
    let text = line.trim();
    if text.is_empty() {
        return Line::Blank;
    }
    let indent = line.len() - line.trim_start_matches(' ').len();
    if indent > 3 {
        return Line::Text;
    }
    let level = text.len() - text.trim_start_matches('#').len();
    let after = &text[level..];
    if (1..=6).contains(&level) && (after.is_empty() || after.starts_with([' ', '\t'])) {
        return Line::Heading { level, text: after.trim().trim_end_matches('#').trim_end() };
    }
    for sign in ['`', '~'] {
        let count = text.len() - text.trim_start_matches(sign).len();
        if count >= 3 {
            let info = &text[count..];
            // A line like ```a``` is code within a paragraph.
            if sign == '~' || !info.contains('`') {
                return Line::Fence { sign, count, bare: info.trim().is_empty() };
            }
        }
    }
    Line::Text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_know_the_headings_above_them() {
        let text =
            "Intro.\n\n# One\nA\nB\n\n- x\n- y\n\n## Two ##\n```sh\n# no heading\n\n```\nafter\n# Three\n";
        let found: Vec<(String, &str)> =
            blocks(text).into_iter().map(|block| (block.heading, &text[block.range])).collect();
        let wanted = [
            ("", "Intro.\n"),
            ("One", "# One\n"),
            ("One", "A\nB\n"),
            ("One", "- x\n- y\n"),
            ("One / Two", "## Two ##\n"),
            ("One / Two", "```sh\n# no heading\n\n```\n"),
            ("One / Two", "after\n"),
            ("Three", "# Three\n"),
        ];
        let wanted: Vec<(String, &str)> = wanted.into_iter().map(|(a, b)| (a.to_owned(), b)).collect();
        assert_eq!(found, wanted);
    }

    #[test]
    fn code_that_is_never_closed_goes_to_the_end() {
        let text = "~~~\na\n```\n\nb";
        assert_eq!(blocks(text).len(), 1);
        assert_eq!(&text[blocks(text).remove(0).range], text);
    }
}
