//! Bytes as they come, cut into lines at LF and nowhere else: U+2028 and U+2029 are characters like any other (SES-3).

use std::borrow::Cow;

use memchr::memchr;

pub struct Lines {
    /// The beginning of a line whose end has not come.
    begun: Vec<u8>,
    /// How long that line is, with what was too much to be kept.
    bytes: usize,
    limit: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    Whole(Cow<'a, [u8]>),
    /// Too long to be kept; so many bytes.
    Oversized(usize),
}

impl Lines {
    /// Lines of at most this many bytes.
    pub fn new(limit: usize) -> Self {
        Self { begun: Vec::new(), bytes: 0, limit }
    }

    /// The next line that ends in these bytes, which are taken as far as it goes; none when no line ends in them.
    pub fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Option<Line<'a>> {
        let Some(end) = memchr(b'\n', bytes) else {
            self.grow(bytes);
            *bytes = &[];
            return None;
        };
        let (line, rest) = bytes.split_at(end);
        *bytes = &rest[1..];
        if self.bytes == 0 {
            let line = without_return(line);
            let is_kept = line.len() <= self.limit;
            return Some(if is_kept { Line::Whole(line.into()) } else { Line::Oversized(line.len()) });
        }
        self.grow(line);
        self.finish()
    }

    /// What has come of a last line that has no end; none when nothing has.
    pub fn finish<'a>(&mut self) -> Option<Line<'a>> {
        let mut line = std::mem::take(&mut self.begun);
        match std::mem::take(&mut self.bytes) {
            0 => None,
            bytes if line.len() < bytes => Some(Line::Oversized(bytes)),
            _ => {
                line.truncate(without_return(&line).len());
                Some(if line.len() <= self.limit {
                    Line::Whole(line.into())
                } else {
                    Line::Oversized(line.len())
                })
            }
        }
    }

    fn grow(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        // One more than the limit is kept, since it may be the carriage return.
        if self.bytes <= self.limit + 1 {
            self.begun.extend_from_slice(bytes);
        } else {
            self.begun = Vec::new();
        }
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, limit: usize, piece: usize) -> Vec<String> {
        let mut lines = Lines::new(limit);
        let mut found = Vec::new();
        let mut keep = |line: Line<'_>| {
            found.push(match line {
                Line::Whole(line) => String::from_utf8(line.into_owned()).unwrap(),
                Line::Oversized(bytes) => format!("<{bytes}>"),
            });
        };
        for mut piece in text.as_bytes().chunks(piece) {
            while !piece.is_empty() {
                if let Some(line) = lines.next(&mut piece) {
                    keep(line);
                }
            }
        }
        if let Some(line) = lines.finish() {
            keep(line);
        }
        found
    }

    #[test]
    fn only_lf_ends_a_line() {
        let text = "a\nb\u{2028}c\u{2029}d\r\n\r\ne\rf\n\r\r\n\nlast";
        for piece in 1..text.len() {
            let expected = ["a", "b\u{2028}c\u{2029}d", "", "e\rf", "\r", "", "last"];
            assert_eq!(lines(text, 100, piece), expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_measured_and_not_kept() {
        let text = format!("{}\nb\n{}\r\n{}", "x".repeat(9), "y".repeat(8), "z".repeat(30));
        for piece in 1..text.len() {
            assert_eq!(lines(&text, 8, piece), ["<9>", "b", "yyyyyyyy", "<30>"], "in pieces of {piece}");
        }
    }
}
