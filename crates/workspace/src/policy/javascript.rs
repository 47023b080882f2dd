//! Rules of JavaScript and TypeScript.

use orchestr8_contract::Code;
use tree_sitter::Node;

use super::language::Language;
use super::syntax::children;
use super::tokens::Syntax;
use super::{Rule, Source, Violations, placeholders};

const SYNTAX: Syntax = Syntax {
    line_comments: &["//"],
    block_comments: &[("/*", "*/")],
    quotes: &["\"", "'", "`"],
    is_rust: false,
};

/// The grammar of TSX reads JavaScript too.
pub const JAVASCRIPT: Language = Language {
    endings: &["js", "jsx", "mjs", "cjs", "tsx"],
    names: &[],
    interpreters: &["node", "nodejs", "bun"],
    grammar: || tree_sitter_typescript::LANGUAGE_TSX.into(),
    look,
    syntax: SYNTAX,
    rules: RULES,
    code: Code::PolicyViolation,
};

pub const TYPESCRIPT: Language = Language {
    endings: &["ts", "mts", "cts"],
    interpreters: &["deno", "ts-node", "tsx"],
    grammar: || tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
    ..JAVASCRIPT
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
    Rule { id: "js-not-implemented", tokens: "", message: "the work is not done", tests_may: false },
];

fn look(node: Node<'_>, _: u32, source: &Source<'_>, found: &mut Violations) {
    match node.kind() {
        "catch_clause" if node.child_by_field_name("body").is_some_and(|body| is_idle(body, source)) => {
            let is_bound = node.child_by_field_name("parameter").is_some();
            found.add(if is_bound { "js-swallowed-error" } else { "js-swallowed-error-unbound" }, node);
        }
        "call_expression" => look_at_call(node, source, found),
        "throw_statement" if says_not_implemented(node, source) => found.add("js-not-implemented", node),
        _ => {}
    }
}

/// `.catch(idle)` and `.then(work, idle)`, also as `["catch"]`.
fn look_at_call(node: Node<'_>, source: &Source<'_>, found: &mut Violations) {
    let Some(function) = node.child_by_field_name("function") else { return };
    let name = match function.kind() {
        "member_expression" => source.field(function, "property"),
        "subscript_expression" => source.field(function, "index").trim_matches(['"', '\'', '`']),
        _ => return,
    };
    let position = match name {
        "catch" => 0,
        "then" => 1,
        _ => return,
    };
    let arguments = node.child_by_field_name("arguments").map(children).unwrap_or_default();
    let Some(handler) = arguments.get(position) else { return };
    if is_idle_function(*handler, source) {
        let has_parameter = handler.child_by_field_name("parameter").is_some()
            || handler.child_by_field_name("parameters").is_some_and(|list| !children(list).is_empty());
        found
            .add(if has_parameter { "js-swallowed-rejection-bound" } else { "js-swallowed-rejection" }, node);
    }
}

fn is_idle_function(node: Node<'_>, source: &Source<'_>) -> bool {
    match node.kind() {
        "arrow_function" | "function_expression" | "generator_function" => {
            node.child_by_field_name("body").is_some_and(|body| is_idle(body, source))
        }
        "parenthesized_expression" => {
            children(node)
                .into_iter()
                .all(|inner| matches!(inner.kind(), "arrow_function" | "function_expression"))
                && children(node).first().is_some_and(|inner| {
                    inner.child_by_field_name("body").is_some_and(|body| is_idle(body, source))
                })
        }
        "identifier" | "member_expression" => {
            matches!(source.of(node), "noop" | "_.noop" | "Function.prototype" | "$.noop")
        }
        _ => false,
    }
}

/// Whether a body does nothing: no statements, or only such as have no effect.
fn is_idle(body: Node<'_>, source: &Source<'_>) -> bool {
    let mut left = vec![body];
    while let Some(node) = left.pop() {
        match node.kind() {
            "statement_block"
            | "expression_statement"
            | "parenthesized_expression"
            | "return_statement"
            | "sequence_expression" => left.extend(children(node)),
            "empty_statement" | "undefined" | "null" | "true" | "false" | "number" | "string"
            | "identifier" => {}
            "object" | "array" if children(node).is_empty() => {}
            "unary_expression" if source.of(node).starts_with("void") => {
                left.extend(node.child_by_field_name("argument"));
            }
            _ => return false,
        }
    }
    true
}

fn says_not_implemented(node: Node<'_>, source: &Source<'_>) -> bool {
    let thrown = children(node).into_iter().next();
    let arguments = thrown.and_then(|thrown| thrown.child_by_field_name("arguments"));
    arguments.map(children).unwrap_or_default().into_iter().any(|argument| {
        matches!(argument.kind(), "string" | "template_string")
            && placeholders::is_unfinished(source.of(argument))
    })
}
