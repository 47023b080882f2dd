//! Reading code far enough to tell code, comments and quoted text apart.

use crate::limits;

/// How a language writes comments and quotes.
pub struct Syntax {
    pub line_comments: &'static [&'static str],
    pub block_comments: &'static [(&'static str, &'static str)],
    /// Longer ones first: `"""` before `"`.
    pub quotes: &'static [&'static str],
    /// `'a` without an end is no quote, and `r#"…"#` is one.
    pub is_rust: bool,
}

pub struct Token {
    pub line: usize,
    pub text: String,
}

#[derive(Default)]
pub struct Read {
    pub code: Vec<Token>,
    pub comments: Vec<Token>,
}

pub fn read(text: &str, syntax: &Syntax) -> Read {
    let mut reader = Reader { text, at: 0, line: 1, read: Read::default() };
    while reader.at < text.len() && reader.read.code.len() < limits::TOKENS {
        reader.step(syntax);
    }
    reader.read
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    read: Read,
}

impl Reader<'_> {
    fn step(&mut self, syntax: &Syntax) {
        let rest = &self.text[self.at..];
        let begins = |mark: &&&str| rest.starts_with(**mark);
        if syntax.line_comments.iter().find(begins).is_some() {
            let length = rest.find('\n').unwrap_or(rest.len());
            self.comment(length);
            return;
        }
        if let Some((open, close)) = syntax.block_comments.iter().find(|(open, _)| rest.starts_with(open)) {
            let length =
                rest[open.len()..].find(close).map_or(rest.len(), |at| open.len() + at + close.len());
            self.comment(length);
            return;
        }
        if let Some(length) = raw_length(rest).filter(|_| syntax.is_rust) {
            self.skip(length);
            return;
        }
        if let Some(quote) = syntax.quotes.iter().find(begins) {
            let length = match syntax.is_rust && *quote == "'" {
                true => letter_length(rest),
                false => quoted_length(rest, quote),
            };
            self.skip(length);
            return;
        }
        self.word(rest);
    }

    fn word(&mut self, rest: &str) {
        let is_letter = |c: char| c.is_alphanumeric() || c == '_';
        let length = match rest.chars().next() {
            Some(c) if is_letter(c) => rest.find(|c| !is_letter(c)).unwrap_or(rest.len()),
            Some(c) => c.len_utf8(),
            None => return,
        };
        let word = &rest[..length];
        if !word.trim().is_empty() {
            self.read.code.push(Token { line: self.line, text: word.to_owned() });
        }
        self.skip(length);
    }

    fn comment(&mut self, length: usize) {
        let lines = self.text[self.at..self.at + length].lines();
        for (number, text) in (self.line..).zip(lines) {
            self.read.comments.push(Token { line: number, text: text.to_owned() });
        }
        self.skip(length);
    }

    fn skip(&mut self, length: usize) {
        let skipped = &self.text[self.at..self.at + length];
        self.line += skipped.bytes().filter(|byte| *byte == b'\n').count();
        self.at += length;
    }
}

/// The length of a quoted text with its quotes; an open one goes on to the end.
fn quoted_length(rest: &str, quote: &str) -> usize {
    let mut escaped = false;
    let body = &rest[quote.len()..];
    for (at, c) in body.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if body[at..].starts_with(quote) => return quote.len() + at + quote.len(),
            _ => {}
        }
    }
    rest.len()
}

/// A letter in quotes, or the mark of a lifetime.
fn letter_length(rest: &str) -> usize {
    let mut letters = rest.char_indices().skip(1);
    match (letters.next(), letters.next()) {
        (Some((_, '\\')), Some(_)) => quoted_length(rest, "'"),
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

/// `r"…"`, `r#"…"#` and so on.
fn raw_length(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix('r').or_else(|| rest.strip_prefix("br"))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let body = after[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let begin = rest.len() - body.len();
    Some(body.find(&close).map_or(rest.len(), |at| begin + at + close.len()))
}
