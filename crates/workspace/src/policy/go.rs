//! Rules of Go.

use orchestr8_contract::Code;

use super::{Language, Rule, Syntax};

pub const LANGUAGE: Language = Language {
    endings: &["go"],
    syntax: Syntax {
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        quotes: &["\"", "'", "`"],
        is_rust: false,
    },
    rules: RULES,
    code: Code::PolicyViolation,
};

const RULES: &[Rule] = &[
    Rule { id: "go-ignored-error", tokens: "_ = err", message: "an error is thrown away", tests_may: true },
    Rule {
        id: "go-swallowed-error",
        tokens: "if err ! = nil { }",
        message: "an error is seen and nothing is done about it",
        tests_may: false,
    },
    Rule {
        id: "go-panic",
        tokens: "panic (",
        message: "panic gives up where the error should be returned",
        tests_may: true,
    },
];
