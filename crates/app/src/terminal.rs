//! How commands speak: data on stdout, words for people on stderr, colour only where it is wanted.

use std::io::Write;

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

const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[1;31m";
const YELLOW: &str = "\x1b[1;33m";
const PLAIN: &str = "\x1b[0m";

/// Writing to a terminal that is gone fails, and there is nobody left to tell: the errors are let go.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terminal {
    pub json: bool,
    pub quiet: bool,
}

impl Terminal {
    pub fn new(json: bool, quiet: bool, color: Color) -> Self {
        match color {
            Color::Auto => {}
            Color::Always => anstream::ColorChoice::Always.write_global(),
            Color::Never => anstream::ColorChoice::Never.write_global(),
        }
        Self { json, quiet }
    }

    /// Data, as it is.
    pub fn data(&self, text: &str) {
        let mut out = anstream::stdout().lock();
        let _ = out.write_all(text.as_bytes());
        let _ = if text.ends_with('\n') { Ok(()) } else { out.write_all(b"\n") };
        let _ = out.flush();
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
    fn columns_line_up_and_lines_have_no_loose_ends() {
        let rows = [["a", "1", "x"], ["long", "22", ""]].map(|row| row.map(String::from));
        assert_eq!(columns(&rows), "a     1   x\nlong  22\n");
    }
}
