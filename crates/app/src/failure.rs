//! Why a command did not succeed: what people read on stderr, and what scripts see as the exit code.

use orchestr8_contract::error::{Kind, Retry};
use orchestr8_contract::{Code, Fault};
use serde_json::{Value, json};

/// The exit codes of every command.
pub mod exit {
    pub const OK: u8 = 0;
    pub const FAILED: u8 = 1;
    pub const INVALID: u8 = 2;
    pub const NOT_FOUND: u8 = 3;
    pub const NOT_ALLOWED: u8 = 4;
    pub const CONFLICT: u8 = 5;
    pub const TIMED_OUT: u8 = 6;
    pub const UNREACHABLE: u8 = 7;
    pub const INTERRUPTED: u8 = 130;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub code: Code,
    pub message: String,
    /// One line for each thing that is wrong, when there are several.
    pub lines: Vec<String>,
    pub hint: Option<String>,
    /// Another process owns the data; it may end, or be attached to.
    pub is_data_held: bool,
}

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), lines: Vec::new(), hint: None, is_data_held: false }
    }

    /// Says what to do, when it is more than the advice of the code.
    #[must_use]
    pub fn hinting(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn listing(mut self, lines: Vec<String>) -> Self {
        self.lines = lines;
        self
    }

    pub fn hint(&self) -> &str {
        self.hint.as_deref().unwrap_or_else(|| self.code.advice())
    }

    pub fn exit_code(&self) -> u8 {
        exit_code(self.code.kind())
    }

    /// For people. The first word of each line is coloured by the caller.
    pub fn text(&self) -> Vec<(&'static str, String)> {
        let mut text = vec![("error:", self.message.clone())];
        text.extend(self.lines.iter().map(|line| ("     -", line.clone())));
        text.push(("hint:", self.hint().to_owned()));
        let again = match self.code.retry() {
            Retry::Later => "trying again may help",
            Retry::Never => "trying the same again does not help",
        };
        text.push(("code:", format!("{} ({again}; more: orchestr8 errors {})", self.code, self.code)));
        text
    }

    /// For programs.
    pub fn json(&self) -> Value {
        json!({"error": {
            "code": self.code, "message": self.message, "problems": self.lines, "hint": self.hint(),
            "retryable": self.code.retry() == Retry::Later,
        }})
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::new(fault.code, fault.message.into_owned())
    }
}

fn exit_code(kind: Kind) -> u8 {
    match kind {
        Kind::Invalid => exit::INVALID,
        Kind::NotFound => exit::NOT_FOUND,
        Kind::Unauthenticated | Kind::Forbidden => exit::NOT_ALLOWED,
        Kind::Conflict => exit::CONFLICT,
        Kind::Timeout | Kind::Unknown => exit::TIMED_OUT,
        Kind::Unavailable => exit::UNREACHABLE,
        Kind::Cancelled => exit::INTERRUPTED,
        Kind::Exhausted | Kind::Dependency | Kind::State | Kind::Internal => exit::FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_how_to_mend_it_and_whether_to_retry() {
        let failure = Failure::new(Code::Timeout, "no answer within 5 ms").listing(vec!["a: b".into()]);
        let text: Vec<String> =
            failure.text().into_iter().map(|(label, line)| format!("{label} {line}")).collect();
        assert_eq!(text[0], "error: no answer within 5 ms");
        assert_eq!(text[1], "     - a: b");
        assert!(text[2].starts_with("hint: The server stopped waiting"));
        assert_eq!(text[3], "code: TIMEOUT (trying again may help; more: orchestr8 errors TIMEOUT)");
        assert_eq!(failure.exit_code(), exit::TIMED_OUT);
        assert_eq!(failure.json()["error"]["retryable"], true);
    }

    #[test]
    fn every_code_has_its_exit_code() {
        let of = |code: Code| Failure::new(code, "").exit_code();
        assert_eq!(of(Code::Configuration), 2);
        assert_eq!(of(Code::NotFound), 3);
        assert_eq!(of(Code::Unauthorized), 4);
        assert_eq!(of(Code::KeyConflict), 5);
        assert_eq!(of(Code::OutcomeUnknown), 6);
        assert_eq!(of(Code::Unavailable), 7);
        assert_eq!(of(Code::Cancelled), 130);
        assert_eq!(of(Code::Internal), 1);
    }
}
