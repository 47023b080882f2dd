//! What happens in a session, told as it happens: words as they come, tool calls and everything else as lines between them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::words::{self, text};
use crate::terminal::{BOLD, CYAN, DIM, PLAIN, RED, Terminal, YELLOW, visible, visible_line};

/// What is told, and where.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// The words of the agent as they come; otherwise somebody else prints its answer.
    pub words: bool,
    pub thinking: bool,
    /// What people said.
    pub people: bool,
    /// Everything on stdout; otherwise only the words of the agent, and the rest on stderr.
    pub together: bool,
}

/// What is being written on the present line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Words,
    Thinking,
}

/// Arguments and results in at most so many letters.
const ARGUMENT_LETTERS: usize = 200;
const RESULT_LETTERS: usize = 300;

pub struct Telling {
    terminal: Terminal,
    style: Style,
    open: Option<Open>,
    /// How much of each part of the present message has been told.
    told: BTreeMap<usize, usize>,
}

impl Telling {
    pub fn new(terminal: Terminal, style: Style) -> Self {
        Self { terminal, style, open: None, told: BTreeMap::new() }
    }

    pub fn take(&mut self, event: &Value) {
        match text(event, "type") {
            "message_start" => self.told.clear(),
            "message_update" => self.parts(&event["message"]),
            "message_end" => self.message(&event["message"]),
            "tool_execution_start" => {
                let (name, args) = (text(event, "toolName"), event["args"].to_string());
                self.line(&format!(
                    "{CYAN}→ {}{PLAIN} {}",
                    visible_line(name),
                    short(&args, ARGUMENT_LETTERS)
                ));
            }
            "tool_execution_end" => self.result(event),
            "auto_retry_start" => {
                let wait = words::duration(event["delayMs"].as_u64().unwrap_or(0));
                let (attempt, most) = (&event["attempt"], &event["maxAttempts"]);
                let why = short(text(event, "errorMessage"), RESULT_LETTERS);
                self.line(&format!("{YELLOW}{why}; attempt {attempt} of {most} in {wait}{PLAIN}"));
            }
            "auto_compaction_start" => self.line(&format!("{DIM}making room in the context{PLAIN}")),
            "auto_compaction_end" if event["errorMessage"].is_string() => {
                let why = short(text(event, "errorMessage"), RESULT_LETTERS);
                self.line(&format!("{RED}no room could be made: {why}{PLAIN}"));
            }
            _ => {}
        }
    }

    /// A message that was said earlier.
    pub fn message(&mut self, message: &Value) {
        match text(message, "role") {
            "user" if self.style.people => {
                self.line(&format!("{BOLD}> {}{PLAIN}", visible(&said(message))));
            }
            "assistant" => {
                self.parts(message);
                self.close();
                // In a conversation of one's own the failure is told as one.
                if text(message, "stopReason") == "error" && self.style.together {
                    let why = short(text(message, "errorMessage"), RESULT_LETTERS);
                    self.line(&format!("{RED}the model failed: {why}{PLAIN}"));
                } else if text(message, "stopReason") == "aborted" {
                    self.line(&format!("{YELLOW}stopped{PLAIN}"));
                }
            }
            "bashExecution" if self.style.people => {
                self.line(&format!("{BOLD}$ {}{PLAIN}", visible(text(message, "command"))));
                self.line(&visible(text(message, "output")));
            }
            _ => {}
        }
        self.told.clear();
    }

    /// The same for a list of messages, in which tool calls and their results are messages too.
    pub fn past(&mut self, messages: &[Value]) {
        for message in messages {
            self.message(message);
            for call in blocks(message, "toolCall") {
                let args = short(&call["arguments"].to_string(), ARGUMENT_LETTERS);
                self.line(&format!("{CYAN}→ {}{PLAIN} {args}", visible_line(text(call, "name"))));
            }
            if text(message, "role") == "toolResult" {
                self.outcome(text(message, "toolName"), &said(message), message["isError"] == true);
            }
        }
    }

    /// A line of its own.
    pub fn line(&mut self, line: &str) {
        self.close();
        match self.style.together {
            true => self.terminal.data(line),
            false => self.terminal.note(line),
        }
    }

    /// Ends the line that is being written.
    pub fn close(&mut self) {
        match self.open.take() {
            None => {}
            Some(Open::Words) => self.terminal.piece("\n"),
            Some(Open::Thinking) => self.aside(&format!("{PLAIN}\n")),
        }
    }

    /// What is new in a message that is coming. A piece that was missed is in the next one.
    fn parts(&mut self, message: &Value) {
        for (index, part) in message["content"].as_array().into_iter().flatten().enumerate() {
            let (kind, whole) = match text(part, "type") {
                "text" if self.style.words => (Open::Words, text(part, "text")),
                "thinking" if self.style.thinking => (Open::Thinking, text(part, "thinking")),
                _ => continue,
            };
            let told = self.told.entry(index).or_default();
            let Some(new) = whole.get(*told..).filter(|new| !new.is_empty()) else { continue };
            *told = whole.len();
            self.write(kind, new);
        }
    }

    fn write(&mut self, kind: Open, piece: &str) {
        if self.open != Some(kind) {
            self.close();
            self.open = Some(kind);
            if kind == Open::Thinking {
                self.aside(DIM);
            }
        }
        match kind {
            Open::Words => self.terminal.piece(&visible(piece)),
            Open::Thinking => self.aside(&visible(piece)),
        }
    }

    fn aside(&self, piece: &str) {
        match self.style.together {
            true => self.terminal.piece(piece),
            false => self.terminal.aside(piece),
        }
    }

    fn result(&mut self, event: &Value) {
        self.outcome(text(event, "toolName"), &said(&event["result"]), event["isError"] == true);
    }

    fn outcome(&mut self, tool: &str, result: &str, failed: bool) {
        let (tool, result) = (visible_line(tool), short(result, RESULT_LETTERS));
        match failed {
            true => self.line(&format!("{RED}← {tool} failed: {result}{PLAIN}")),
            false => self.line(&format!("{CYAN}← {tool}{PLAIN} {DIM}{result}{PLAIN}")),
        }
    }
}

/// The parts of a message that are of this kind.
pub fn blocks<'a>(message: &'a Value, kind: &'static str) -> impl Iterator<Item = &'a Value> {
    message["content"].as_array().into_iter().flatten().filter(move |part| text(part, "type") == kind)
}

/// What is written in a message, without thinking, calls and images.
pub fn said(message: &Value) -> String {
    let texts: Vec<&str> = blocks(message, "text").map(|part| text(part, "text")).collect();
    texts.join("\n")
}

/// On one line, and not too long.
pub fn short(text: &str, letters: usize) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    words::cut(&line.join(" "), letters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_result_is_one_short_line() {
        assert_eq!(short("a\n  b\tc\x1b[1m", 20), "a b c\\u{1b}[1m");
        assert_eq!(short(&"ä".repeat(30), 5), "ääää…");
    }

    #[test]
    fn what_is_said_is_its_texts() {
        let message = json!({"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"},
            {"type": "toolCall", "name": "x"}, {"type": "text", "text": "b"}]});
        assert_eq!(said(&message), "a\nb");
        assert_eq!(blocks(&message, "toolCall").count(), 1);
    }
}
