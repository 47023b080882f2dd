//! How commands speak: data on stdout, words for people on stderr, colour only where it is wanted. Everything passes `render`.

mod render;

use std::io::{IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use clap::ValueEnum;
use orchestr8_contract::visible::visible_json;
use serde_json::Value;

use crate::failure::Failure;
use render::{render_whole, width};

pub use render::{
    BOLD, CYAN, DIM, GREEN, PLAIN, RED, YELLOW, render, styled_line, styled_lines, visible, visible_line,
};

/// When to use colour; `auto` is on a terminal, unless NO_COLOR is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

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

    /// Words for people about data.
    pub fn data(&self, text: &str) {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        write_out(&render_whole(&format!("{text}{end}"), is_colored(&std::io::stdout())));
    }

    /// A piece of the same while the rest of it is still to come.
    pub fn piece(&self, text: &str) {
        write_out(&render(text, is_colored(&std::io::stdout())));
    }

    /// A text of others that was asked for as such, a document or what a tool answered: a program or a file gets it exactly as
    /// it is, a person at a terminal sees what is in it.
    pub fn content(&self, text: &str) {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let shown = match std::io::stdout().is_terminal() {
            true => visible(text),
            false => text.to_owned(),
        };
        write_out(&format!("{shown}{end}"));
    }

    /// A piece of what is said to the person who watches.
    pub fn aside(&self, text: &str) {
        if !self.quiet {
            write_err(&render(text, is_colored(&std::io::stderr())));
        }
    }

    /// Whether somebody reads stdout as it comes.
    pub fn is_watched(&self) -> bool {
        !self.json && std::io::stdout().is_terminal()
    }

    /// Data for programs.
    pub fn value(&self, value: &Value) {
        self.json_text(&format!("{value:#}"));
    }

    /// One line of JSON for programs.
    pub fn record(&self, value: &Value) {
        self.json_text(&value.to_string());
    }

    /// Serialized JSON. Hidden characters in it are written as JSON escapes, which mean the same.
    pub fn json_text(&self, json: &str) {
        write_out(&format!("{}\n", visible_json(json).trim_end_matches('\n')));
    }

    /// Says something to whoever watches.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            err(&format!("{text}\n"));
        }
    }

    /// Says something that should not be missed.
    pub fn warn(&self, text: &str) {
        if !self.quiet {
            err(&format!("{YELLOW}warning:{PLAIN} {text}\n"));
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
        err(&format!("{BOLD}{question}{PLAIN} [y/N] "));
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
        let colored = is_colored(&std::io::stderr());
        let mut text = String::new();
        if in_place_of > 0 {
            text.push_str(&format!("\x1b[{in_place_of}A\r"));
        }
        for line in lines {
            // The movements of the cursor are ours and stay when the colours go.
            text.push_str(&format!("{}\x1b[K\n", render_whole(&styled_line(line), colored)));
        }
        text.push_str("\x1b[J");
        write_err(&text);
    }

    /// Says why it did not work, quiet or not.
    pub fn fail(&self, failure: &Failure) {
        if self.json {
            write_err(&format!("{}\n", visible_json(&failure.json().to_string())));
            return;
        }
        for (label, text) in failure.text() {
            let style = if label == "error:" { RED } else { BOLD };
            // On one line each: a line feed in a name must not look like a hint of ours.
            err(&format!("{style}{label}{PLAIN} {}\n", visible_line(&text)));
        }
    }
}

/// A whole text on stderr.
fn err(text: &str) {
    write_err(&render_whole(text, is_colored(&std::io::stderr())));
}

fn is_colored(stream: &impl anstream::stream::RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}

fn write_out(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

fn write_err(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(text.as_bytes());
    let _ = err.flush();
}

/// Columns aligned by spaces, the last one free to be long. A cell is on one line.
pub fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let rows: Vec<[String; N]> =
        rows.iter().map(|row| row.each_ref().map(|cell| styled_line(cell))).collect();
    let column_width = |column: usize| rows.iter().map(|row| width(&row[column])).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(column_width);
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, whole) in row.iter().zip(widths) {
            line.push_str(cell);
            line.push_str(&" ".repeat(whole - width(cell) + 2));
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
        let rows =
            [[format!("{RED}a\nb{PLAIN}"), String::from("c")], [String::from("long text"), String::new()]];
        assert_eq!(columns(&rows), format!("{RED}a\\u{{a}}b{PLAIN}    c\nlong text\n"));
    }
}
