//! Rules of JavaScript and TypeScript.

use orchestr8_contract::Code;

use super::{Language, Rule, Syntax};

pub const LANGUAGE: Language = Language {
    endings: &["js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"],
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
    Rule {
        id: "js-swallowed-error",
        tokens: "catch ( … ) { }",
        message: "an error is caught and nothing is done about it",
        tests_may: false,
    },
    Rule {
        id: "js-swallowed-error-unbound",
        tokens: "catch { }",
        message: "an error is caught and nothing is done about it",
        tests_may: false,
    },
    Rule {
        id: "js-swallowed-rejection",
        tokens: ". catch ( ( ) = > { } )",
        message: "a rejection is caught and nothing is done about it",
        tests_may: false,
    },
    Rule {
        id: "js-swallowed-rejection-bound",
        tokens: ". catch ( ( … ) = > { } )",
        message: "a rejection is caught and nothing is done about it",
        tests_may: false,
    },
];
