//! Rules of C.

use orchestr8_contract::Code;
use tree_sitter::Node;

use super::language::Language;
use super::syntax::children;
use super::tokens::Syntax;
use super::{Rule, Source, Violations, placeholders};

pub const LANGUAGE: Language = Language {
    endings: &["c", "h"],
    names: &[],
    interpreters: &[],
    grammar: || tree_sitter_c::LANGUAGE.into(),
    look,
    syntax: Syntax {
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        quotes: &["\"", "'"],
        is_rust: false,
    },
    rules: RULES,
    code: Code::PolicyViolation,
};

const RULES: &[Rule] = &[
    Rule {
        id: "c-empty-branch",
        tokens: "",
        message: "a condition is checked and nothing is done about it",
        tests_may: false,
    },
    Rule {
        id: "c-abort",
        tokens: "abort ( )",
        message: "abort gives up where the error should be handled",
        tests_may: true,
    },
    Rule { id: "c-not-implemented", tokens: "", message: "the work is not done", tests_may: false },
];

fn look(node: Node<'_>, _: u32, source: &Source<'_>, found: &mut Violations) {
    match node.kind() {
        "if_statement" => {
            let is_empty = node.child_by_field_name("consequence").is_some_and(|branch| {
                matches!(branch.kind(), "compound_statement" | "expression_statement")
                    && children(branch).into_iter().all(|inner| source.of(inner) == ";")
            });
            // With an `else`, it is another way to write the opposite condition.
            if is_empty && node.child_by_field_name("alternative").is_none() {
                found.add("c-empty-branch", node);
            }
        }
        "call_expression" if source.field(node, "function") == "abort" => found.add("c-abort", node),
        "preproc_call" if placeholders::is_unfinished(source.field(node, "argument")) => {
            found.add("c-not-implemented", node);
        }
        _ => {}
    }
}
