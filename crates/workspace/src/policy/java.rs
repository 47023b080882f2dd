//! Rules of Java.

use orchestr8_contract::Code;
use tree_sitter::Node;

use super::language::Language;
use super::syntax::children;
use super::tokens::Syntax;
use super::{Rule, Source, Violations, placeholders};

pub const LANGUAGE: Language = Language {
    endings: &["java"],
    names: &[],
    interpreters: &["java"],
    grammar: || tree_sitter_java::LANGUAGE.into(),
    look,
    syntax: Syntax {
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        quotes: &["\"\"\"", "\"", "'"],
        is_rust: false,
    },
    rules: RULES,
    code: Code::PolicyViolation,
};

const RULES: &[Rule] = &[
    Rule {
        id: "java-swallowed-error",
        tokens: "catch ( … … ) { }",
        message: "an error is caught and nothing is done about it",
        tests_may: false,
    },
    Rule {
        id: "java-not-implemented",
        tokens: "throw new NotImplementedException",
        message: "the work is not done",
        tests_may: false,
    },
];

fn look(node: Node<'_>, _: u32, source: &Source<'_>, found: &mut Violations) {
    match node.kind() {
        "catch_clause" if node.child_by_field_name("body").is_some_and(|body| is_idle(body, source)) => {
            found.add("java-swallowed-error", node);
        }
        "throw_statement" => {
            let thrown = children(node).into_iter().next();
            let Some(thrown) = thrown.filter(|thrown| thrown.kind() == "object_creation_expression") else {
                return;
            };
            let kind = source.field(thrown, "type");
            let kind = kind.rsplit('.').next().unwrap_or(kind);
            let arguments = source.field(thrown, "arguments");
            let says_so = match kind {
                "NotImplementedException" | "NotImplementedError" => true,
                _ => placeholders::is_unfinished(arguments),
            };
            if says_so {
                found.add("java-not-implemented", node);
            }
        }
        _ => {}
    }
}

/// Whether a body does nothing.
fn is_idle(body: Node<'_>, source: &Source<'_>) -> bool {
    children(body).into_iter().all(|statement| match statement.kind() {
        ";" | "block" => children(statement).is_empty(),
        "return_statement" => children(statement).is_empty(),
        _ => source.of(statement) == ";",
    })
}
