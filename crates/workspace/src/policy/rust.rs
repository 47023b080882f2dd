//! Rules of Rust.

use orchestr8_contract::Code;
use tree_sitter::Node;

use super::language::Language;
use super::syntax::{children, is_comment};
use super::tokens::Syntax;
use super::{Rule, Source, Violations};

pub const LANGUAGE: Language = Language {
    endings: &["rs"],
    names: &[],
    interpreters: &["rust-script", "cargo"],
    grammar: || tree_sitter_rust::LANGUAGE.into(),
    look,
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
        tokens: "unwrap (",
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
        id: "rust-unreachable",
        tokens: "unreachable !",
        message: "unreachable! gives up where the error should be handled",
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
    Rule {
        id: "rust-swallowed-error",
        tokens: "Err ( … ) = > { }",
        message: "an error is seen and nothing is done about it",
        tests_may: true,
    },
];

/// Names of functions that give up, and of macros.
const CALLS: [(&str, &str); 6] = [
    ("unwrap", "rust-unwrap"),
    ("unwrap_err", "rust-unwrap"),
    ("unwrap_unchecked", "rust-unwrap"),
    ("expect", "rust-expect"),
    ("expect_err", "rust-expect"),
    ("panic_any", "rust-panic"),
];
const MACROS: [(&str, &str); 4] = [
    ("panic", "rust-panic"),
    ("unreachable", "rust-unreachable"),
    ("todo", "rust-todo"),
    ("unimplemented", "rust-unimplemented"),
];

fn rule_of(names: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    let name = name.strip_prefix("r#").unwrap_or(name);
    names.iter().find(|(known, _)| *known == name).map(|(_, rule)| *rule)
}

fn look(node: Node<'_>, depth: u32, source: &Source<'_>, found: &mut Violations) {
    follow_test_attributes(node, depth, source, found);
    match node.kind() {
        // A method, and a function by its path, called or handed on.
        "field_expression" => found.add_some(rule_of(&CALLS, source.field(node, "field")), node),
        "scoped_identifier" => found.add_some(rule_of(&CALLS, source.field(node, "name")), node),
        "use_as_clause" | "scoped_use_list" | "use_list" => {}
        "macro_invocation" => {
            let name = source.field(node, "macro");
            let name = name.rsplit("::").next().unwrap_or(name).trim();
            found.add_some(rule_of(&MACROS, name), node);
        }
        "token_tree" => look_at_tokens(node, source, found),
        "unsafe" => found.add("rust-unsafe", node),
        "let_declaration" => {
            let value = node.child_by_field_name("value");
            if source.field(node, "pattern") == "_" && value.is_some_and(is_work) {
                found.add("rust-ignored-result", node);
            }
        }
        "assignment_expression"
            if source.field(node, "left") == "_"
                && node.child_by_field_name("right").is_some_and(is_work) =>
        {
            found.add("rust-ignored-result", node);
        }
        "expression_statement" if is_dropped_with_ok(node, source) => found.add("rust-ignored-result", node),
        "if_expression" => {
            let condition = source.field(node, "condition");
            let is_empty = node.child_by_field_name("consequence").is_some_and(is_empty);
            if is_empty && condition.trim_start().starts_with("let") && names_error(condition) {
                found.add("rust-swallowed-error", node);
            }
        }
        "match_arm" => {
            let is_empty = node.child_by_field_name("value").is_some_and(is_empty);
            if is_empty && names_error(source.field(node, "pattern")) {
                found.add("rust-swallowed-error", node);
            }
        }
        _ => {}
    }
}

/// What is compiled for tests only may do what tests may.
fn follow_test_attributes(node: Node<'_>, depth: u32, source: &Source<'_>, found: &mut Violations) {
    let is_attribute = matches!(node.kind(), "attribute_item" | "inner_attribute_item");
    if is_attribute {
        let text: String = source.of(node).split_whitespace().collect();
        match text.as_str() {
            "#[cfg(test)]" | "#[test]" | "#[tokio::test]" => found.test_attribute = Some(depth),
            "#![cfg(test)]" => found.tests_until = usize::MAX,
            _ => {}
        }
    } else if let Some(of) = found.test_attribute
        && depth <= of
        && !is_comment(node)
    {
        found.test_attribute = None;
        if depth == of {
            found.tests_until = found.tests_until.max(node.end_byte());
        }
    }
}

/// The arguments of a macro are words without an order that a grammar knows.
fn look_at_tokens(node: Node<'_>, source: &Source<'_>, found: &mut Violations) {
    let mut cursor = node.walk();
    let tokens: Vec<(Node<'_>, &str)> =
        node.children(&mut cursor).map(|child| (child, source.of(child))).collect();
    for (at, (token, text)) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| tokens.get(at)).map_or("", |(_, text)| *text);
        let after = tokens.get(at + 1).map_or("", |(_, text)| *text);
        if *text == "unsafe" && token.kind() != "unsafe" {
            found.add("rust-unsafe", *token);
        }
        if matches!(before, "." | "::") {
            found.add_some(rule_of(&CALLS, text), *token);
        }
        if after == "!" {
            found.add_some(rule_of(&MACROS, text), *token);
        }
    }
}

/// Whether evaluating it does something that can fail.
fn is_work(node: Node<'_>) -> bool {
    matches!(node.kind(), "call_expression" | "await_expression" | "try_expression" | "macro_invocation")
}

/// `f().ok();`
fn is_dropped_with_ok(node: Node<'_>, source: &Source<'_>) -> bool {
    let call = children(node).into_iter().next().filter(|call| call.kind() == "call_expression");
    let function = call.and_then(|call| call.child_by_field_name("function"));
    function.is_some_and(|function| {
        function.kind() == "field_expression" && source.field(function, "field") == "ok"
    })
}

fn names_error(pattern: &str) -> bool {
    let words = pattern.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    words.into_iter().any(|word| word == "Err")
}

fn is_empty(node: Node<'_>) -> bool {
    match node.kind() {
        "block" => {
            children(node).into_iter().all(|child| child.kind() == "empty_statement" || is_unit(child))
        }
        _ => is_unit(node),
    }
}

fn is_unit(node: Node<'_>) -> bool {
    node.kind() == "unit_expression"
        || (node.kind() == "expression_statement" && children(node).into_iter().all(is_unit))
}
