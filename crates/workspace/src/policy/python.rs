//! Rules of Python.

use orchestr8_contract::Code;
use tree_sitter::Node;

use super::language::Language;
use super::syntax::children;
use super::tokens::Syntax;
use super::{Rule, Source, Violations};

pub const LANGUAGE: Language = Language {
    endings: &["py", "pyi", "pyw"],
    names: &["sconstruct", "sconscript"],
    interpreters: &["python", "pypy"],
    grammar: || tree_sitter_python::LANGUAGE.into(),
    look,
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
        id: "python-suppressed-error",
        tokens: "contextlib . suppress (",
        message: "errors are suppressed and nothing is done about them",
        tests_may: true,
    },
    Rule {
        id: "python-not-implemented",
        tokens: "raise NotImplementedError",
        message: "the work is not done",
        tests_may: false,
    },
];

fn look(node: Node<'_>, _: u32, source: &Source<'_>, found: &mut Violations) {
    match node.kind() {
        "except_clause" | "except_group_clause" => {
            let parts = children(node);
            let body = parts.iter().find(|part| part.kind() == "block");
            if body.is_some_and(|body| is_idle(*body)) {
                let value = parts.iter().find(|part| part.kind() != "block");
                found.add(
                    match value.map(|value| value.kind()) {
                        None => "python-bare-except",
                        Some("as_pattern") => "python-swallowed-named-error",
                        Some(_) => "python-swallowed-error",
                    },
                    node,
                );
            }
        }
        "call" => {
            let function = source.field(node, "function");
            if function == "suppress" || function.ends_with(".suppress") {
                found.add("python-suppressed-error", node);
            }
        }
        "raise_statement" => {
            let raised = children(node).into_iter().next();
            let name = raised.map_or("", |raised| match raised.kind() {
                "call" => source.field(raised, "function"),
                _ => source.of(raised),
            });
            if name.rsplit('.').next() == Some("NotImplementedError") {
                found.add("python-not-implemented", node);
            }
        }
        // What describes a function or stands alone as a text is a comment to its readers.
        "expression_statement" => {
            let alone = children(node);
            if let [text] = alone.as_slice()
                && matches!(text.kind(), "string" | "concatenated_string")
            {
                found.add_comment(*text, source);
            }
        }
        _ => {}
    }
}

/// Whether a body does nothing.
fn is_idle(body: Node<'_>) -> bool {
    children(body).into_iter().all(|statement| match statement.kind() {
        "pass_statement" => true,
        "expression_statement" => children(statement).into_iter().all(|value| {
            matches!(
                value.kind(),
                "ellipsis"
                    | "string"
                    | "concatenated_string"
                    | "none"
                    | "true"
                    | "false"
                    | "integer"
                    | "float"
                    | "identifier"
            )
        }),
        _ => false,
    })
}
