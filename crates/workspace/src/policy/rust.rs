//! Rules of Rust.

use orchestr8_contract::Code;

use super::{Language, Rule, Syntax};

pub const LANGUAGE: Language = Language {
    endings: &["rs"],
    syntax: Syntax {
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        quotes: &["\"", "'"],
        is_rust: true,
    },
    rules: RULES,
    code: Code::RustPolicyViolation,
};

const RULES: &[Rule] = &[
    Rule {
        id: "rust-unwrap",
        tokens: ". unwrap (",
        message: "unwrap gives up where the error should be handled",
        tests_may: true,
    },
    Rule {
        id: "rust-expect",
        tokens: ". expect (",
        message: "expect gives up where the error should be handled",
        tests_may: true,
    },
    Rule {
        id: "rust-panic",
        tokens: "panic !",
        message: "panic! gives up where the error should be handled",
        tests_may: true,
    },
    Rule {
        id: "rust-todo",
        tokens: "todo !",
        message: "todo! stands for work that was not done",
        tests_may: false,
    },
    Rule {
        id: "rust-unimplemented",
        tokens: "unimplemented !",
        message: "unimplemented! stands for work that was not done",
        tests_may: false,
    },
    Rule {
        id: "rust-unsafe",
        tokens: "unsafe",
        message: "unsafe code needs a review that a plan cannot give",
        tests_may: false,
    },
    Rule {
        id: "rust-ignored-result",
        tokens: "let _ = … (",
        message: "a result is thrown away",
        tests_may: true,
    },
];
