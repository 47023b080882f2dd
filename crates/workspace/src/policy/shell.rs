//! Rules of shell scripts.

use orchestr8_contract::Code;

use super::{Language, Rule, Syntax};

pub const LANGUAGE: Language = Language {
    endings: &["sh", "bash"],
    syntax: Syntax { line_comments: &["#"], block_comments: &[], quotes: &["\"", "'"], is_rust: false },
    rules: RULES,
    code: Code::PolicyViolation,
};

const RULES: &[Rule] = &[
    Rule {
        id: "shell-swallowed-error",
        tokens: "| | true",
        message: "a failure is thrown away",
        tests_may: false,
    },
    Rule {
        id: "shell-ignored-errors",
        tokens: "set + e",
        message: "from here on, failures are thrown away",
        tests_may: false,
    },
];
