//! Rules of Go.

use orchestr8_contract::Code;
use tree_sitter::Node;

use super::language::Language;
use super::syntax::children;
use super::tokens::Syntax;
use super::{Rule, Source, Violations};

pub const LANGUAGE: Language = Language {
    endings: &["go"],
    names: &[],
    interpreters: &[],
    grammar: || tree_sitter_go::LANGUAGE.into(),
    look,
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
        id: "go-swallowed-panic",
        tokens: "",
        message: "a panic is caught and nothing is done about it",
        tests_may: false,
    },
    Rule {
        id: "go-panic",
        tokens: "panic (",
        message: "panic gives up where the error should be returned",
        tests_may: true,
    },
];

fn look(node: Node<'_>, _: u32, source: &Source<'_>, found: &mut Violations) {
    match node.kind() {
        "assignment_statement" | "short_var_declaration" => {
            let list = |name| node.child_by_field_name(name).map(children).unwrap_or_default();
            let (left, right) = (list("left"), list("right"));
            let throws_all_away = !left.is_empty() && left.iter().all(|name| source.of(*name) == "_");
            let is_error = |value: &Node<'_>| {
                value.kind() == "call_expression" || source.of(*value).to_lowercase().ends_with("err")
            };
            if throws_all_away && right.iter().any(is_error) {
                found.add("go-ignored-error", node);
            }
        }
        "if_statement" => {
            let compares = node.child_by_field_name("condition").is_some_and(|condition| {
                source.field(condition, "operator") == "!="
                    && [source.field(condition, "left"), source.field(condition, "right")].contains(&"nil")
            });
            let is_empty =
                node.child_by_field_name("consequence").is_some_and(|body| children(body).is_empty());
            if compares && is_empty {
                found.add("go-swallowed-error", node);
            }
        }
        "call_expression" if source.field(node, "function") == "panic" => found.add("go-panic", node),
        "expression_statement" => {
            let call = children(node).into_iter().next();
            if call.is_some_and(|call| source.field(call, "function") == "recover") {
                found.add("go-swallowed-panic", node);
            }
        }
        _ => {}
    }
}
