//! Rules of Python.

use orchestr8_contract::Code;

use super::{Language, Rule, Syntax};

pub const LANGUAGE: Language = Language {
    endings: &["py", "pyi"],
    syntax: Syntax {
        line_comments: &["#"],
        block_comments: &[],
        quotes: &["\"\"\"", "'''", "\"", "'"],
        is_rust: false,
    },
    rules: RULES,
    code: Code::PolicyViolation,
};

const RULES: &[Rule] = &[
    Rule {
        id: "python-bare-except",
        tokens: "except : pass",
        message: "every error is caught and nothing is done about it",
        tests_may: false,
    },
    Rule {
        id: "python-swallowed-error",
        tokens: "except … : pass",
        message: "an error is caught and nothing is done about it",
        tests_may: false,
    },
    Rule {
        id: "python-swallowed-named-error",
        tokens: "except … as … : pass",
        message: "an error is caught and nothing is done about it",
        tests_may: false,
    },
    Rule {
        id: "python-not-implemented",
        tokens: "raise NotImplementedError",
        message: "the work is not done",
        tests_may: false,
    },
];
