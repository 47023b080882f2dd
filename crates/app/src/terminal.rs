//! How commands speak: data on stdout, words for people on stderr, colour only where it is wanted.

use std::io::{IsTerminal, Write};

use clap::ValueEnum;
use serde_json::Value;

use crate::failure::Failure;

/// When to use colour; `auto` is on a terminal, unless NO_COLOR is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

pub const BOLD: &str = "\x1b[1m";
pub const DIM: &str = "\x1b[2m";
pub const RED: &str = "\x1b[1;31m";
pub const GREEN: &str = "\x1b[32m";
pub const YELLOW: &str = "\x1b[1;33m";
pub const CYAN: &str = "\x1b[36m";
pub const PLAIN: &str = "\x1b[0m";

/// A terminal whose size nobody tells.
const USUAL_SIZE: Size = Size { columns: 80, rows: 24 };

/// How much a terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub columns: usize,
    pub rows: usize,
}

/// Writing to a terminal that is gone fails, and there is nobody left to tell: the errors are let go.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terminal {
    pub json: bool,
    pub quiet: bool,
    /// The terminal cannot move its cursor.
    pub dumb: bool,
}

impl Terminal {
    pub fn new(json: bool, quiet: bool, color: Color) -> Self {
        match color {
            Color::Auto => {}
            Color::Always => anstream::ColorChoice::Always.write_global(),
            Color::Never => anstream::ColorChoice::Never.write_global(),
        }
        Self { json, quiet, dumb: false }
    }

    /// The same, for work nobody is told about.
    pub fn quietly(self) -> Self {
        Self { quiet: true, ..self }
    }

    /// Data, as it is.
    pub fn data(&self, text: &str) {
        let mut out = anstream::stdout().lock();
        let _ = out.write_all(text.as_bytes());
        let _ = if text.ends_with('\n') { Ok(()) } else { out.write_all(b"\n") };
        let _ = out.flush();
    }

    /// A piece of data while the rest of it is still to come.
    pub fn piece(&self, text: &str) {
        let mut out = anstream::stdout().lock();
        let _ = out.write_all(text.as_bytes());
        let _ = out.flush();
    }

    /// A piece of what is said to whoever watches.
    pub fn aside(&self, text: &str) {
        if !self.quiet {
            let mut err = anstream::stderr().lock();
            let _ = err.write_all(text.as_bytes());
            let _ = err.flush();
        }
    }

    /// Whether somebody reads stdout as it comes.
    pub fn is_watched(&self) -> bool {
        !self.json && std::io::stdout().is_terminal()
    }

    /// Data for programs.
    pub fn value(&self, value: &Value) {
        self.data(&format!("{value:#}"));
    }

    /// Says something to whoever watches.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            let _ = writeln!(anstream::stderr().lock(), "{text}");
        }
    }

    /// Says something that should not be missed.
    pub fn warn(&self, text: &str) {
        if !self.quiet {
            let _ = writeln!(anstream::stderr().lock(), "{YELLOW}warning:{PLAIN} {text}");
        }
    }

    /// Whether somebody watches stderr on a terminal on which lines can be drawn anew.
    pub fn is_live(&self) -> bool {
        !self.json && !self.quiet && !self.dumb && std::io::stderr().is_terminal()
    }

    /// Whether stdin and stderr are a terminal, so that a question would reach somebody.
    pub fn can_ask(&self) -> bool {
        !self.json && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }

    /// Asks on stderr; true for yes. Only for terminals: see `can_ask`.
    pub fn ask(&self, question: &str) -> bool {
        let _ = write!(anstream::stderr().lock(), "{BOLD}{question}{PLAIN} [y/N] ");
        let mut line = String::new();
        let answered = std::io::stdin().read_line(&mut line).is_ok();
        answered && matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
    }

    /// The size of the terminal of stderr.
    pub fn size(&self) -> Size {
        match rustix::termios::tcgetwinsize(rustix::stdio::stderr()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                Size { columns: size.ws_col.into(), rows: size.ws_row.into() }
            }
            Ok(_) | Err(_) => USUAL_SIZE,
        }
    }

    /// Draws lines on stderr in the place of so many drawn before. Only for terminals: see `is_live`.
    pub fn draw(&self, lines: &[String], in_place_of: usize) {
        let err = std::io::stderr();
        let is_plain = anstream::AutoStream::choice(&err) == anstream::ColorChoice::Never;
        let mut text = String::new();
        if in_place_of > 0 {
            text.push_str(&format!("\x1b[{in_place_of}A\r"));
        }
        for line in lines {
            // The movements of the cursor must stay when the colours go.
            let shown = if is_plain { anstream::adapter::strip_str(line).to_string() } else { line.clone() };
            text.push_str(&format!("{shown}\x1b[K\n"));
        }
        text.push_str("\x1b[J");
        let mut err = err.lock();
        let _ = err.write_all(text.as_bytes());
        let _ = err.flush();
    }

    /// Says why it did not work, quiet or not.
    pub fn fail(&self, failure: &Failure) {
        let mut err = anstream::stderr().lock();
        if self.json {
            let _ = writeln!(err, "{}", failure.json());
            return;
        }
        for (label, text) in failure.text() {
            let style = if label == "error:" { RED } else { BOLD };
            let _ = writeln!(err, "{style}{label}{PLAIN} {text}");
        }
    }
}

/// A text without what would steer a terminal: others wrote it.
pub fn harmless(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

/// Columns aligned by spaces, the last one free to be long.
pub fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            line.push_str(&format!("{cell:width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_does_not_steer_the_terminal() {
        assert_eq!(harmless("a\x1b[31mb\r\u{9b}c\n\td"), "a[31mbc\n\td");
    }

    #[test]
    fn columns_line_up_and_lines_have_no_loose_ends() {
        let rows = [["a", "1", "x"], ["long", "22", ""]].map(|row| row.map(String::from));
        assert_eq!(columns(&rows), "a     1   x\nlong  22\n");
    }
}
