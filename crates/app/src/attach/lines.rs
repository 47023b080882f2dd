//! Bytes on their way through an attached process, cut into lines, and what of a line is looked at.

use memchr::memchr;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

/// What comes out of a stream of bytes.
pub(super) enum Piece<'a> {
    /// A line without its end.
    Line(&'a [u8]),
    /// A part of a line that is too long to be kept, as it came, the line end included.
    Part(&'a [u8]),
}

/// Cuts bytes into lines of a bounded length.
pub(super) struct LineSplitter {
    buffer: Vec<u8>,
    limit: usize,
    /// The rest of a line whose beginning was handed on.
    passing: bool,
}

impl LineSplitter {
    pub fn new(limit: usize) -> Self {
        Self { buffer: Vec::new(), limit, passing: false }
    }

    pub fn feed(&mut self, mut bytes: &[u8], mut give: impl FnMut(Piece<'_>)) {
        while let Some(end) = memchr(b'\n', bytes) {
            if self.passing {
                give(Piece::Part(&bytes[..=end]));
                self.passing = false;
            } else if self.buffer.is_empty() {
                give(Piece::Line(&bytes[..end]));
            } else {
                self.buffer.extend_from_slice(&bytes[..end]);
                give(Piece::Line(&self.buffer));
                self.buffer.clear();
            }
            bytes = &bytes[end + 1..];
        }
        if bytes.is_empty() {
            return;
        }
        if self.passing {
            give(Piece::Part(bytes));
        } else if self.buffer.len() + bytes.len() > self.limit {
            give(Piece::Part(&self.buffer));
            give(Piece::Part(bytes));
            self.buffer = Vec::new();
            self.passing = true;
        } else {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// What has come of a line that has no end.
    pub fn rest(&mut self) -> Option<Vec<u8>> {
        let rest = std::mem::take(&mut self.buffer);
        (!rest.is_empty()).then_some(rest)
    }
}

/// What of a message of the client matters.
#[derive(Deserialize)]
pub(super) struct Said {
    pub id: Option<Value>,
    pub method: Option<String>,
    pub params: Option<Value>,
}

/// What of a message of the server matters.
#[derive(Deserialize)]
pub(super) struct Heard {
    pub id: Option<Value>,
    pub method: Option<IgnoredAny>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(limit: usize, pieces: &[&str]) -> Vec<String> {
        let (mut splitter, mut out) = (LineSplitter::new(limit), Vec::new());
        for piece in pieces {
            splitter.feed(piece.as_bytes(), |piece| {
                out.push(match piece {
                    Piece::Line(line) => format!("line {}", String::from_utf8_lossy(line)),
                    Piece::Part(part) => format!("part {}", String::from_utf8_lossy(part)),
                });
            });
        }
        out
    }

    #[test]
    fn lines_come_whole_however_their_bytes_come() {
        assert_eq!(cut(9, &["ab\ncd", "ef\n", "\n", "g"]), ["line ab", "line cdef", "line "]);
    }

    #[test]
    fn a_line_that_is_too_long_passes_in_parts() {
        let out = cut(4, &["abc", "def", "gh\nij\n"]);
        assert_eq!(out, ["part abc", "part def", "part gh\n", "line ij"]);
    }
}
