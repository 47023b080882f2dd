//! Rules of shell scripts.

use orchestr8_contract::Code;
use tree_sitter::Node;

use super::language::Language;
use super::syntax::children;
use super::tokens::Syntax;
use super::{Rule, Source, Violations};
use crate::shell_words::{arguments_of, name_of};

pub const LANGUAGE: Language = Language {
    endings: &["sh", "bash", "zsh", "ksh", "dash", "bats"],
    names: &[".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".envrc"],
    interpreters: &["sh", "bash", "zsh", "ksh", "dash", "ash", "busybox"],
    grammar,
    look,
    syntax: Syntax { line_comments: &["#"], block_comments: &[], quotes: &["\"", "'"], is_rust: false },
    rules: RULES,
    code: Code::PolicyViolation,
};

const RULES: &[Rule] = &[
    Rule {
        id: "shell-swallowed-error",
        tokens: "| | true",
        message: "a failure is thrown away",
        tests_may: false,
    },
    Rule {
        id: "shell-swallowed-error",
        tokens: "| | :",
        message: "a failure is thrown away",
        tests_may: false,
    },
    Rule {
        id: "shell-ignored-errors",
        tokens: "set + e",
        message: "from here on, failures are thrown away",
        tests_may: false,
    },
];

/// The grammar of shell commands, those of plans too.
pub fn grammar() -> tree_sitter::Language {
    tree_sitter_bash::LANGUAGE.into()
}

fn look(node: Node<'_>, _: u32, source: &Source<'_>, found: &mut Violations) {
    match node.kind() {
        "list" => {
            let mut cursor = node.walk();
            let is_or = node.children(&mut cursor).any(|child| child.kind() == "||");
            let last = children(node).into_iter().last();
            if is_or && last.is_some_and(|last| is_idle(last, source)) {
                found.add("shell-swallowed-error", node);
            }
        }
        "if_statement" => {
            let parts = children(node);
            let condition = node.child_by_field_name("condition");
            let is_negated = condition.is_some_and(|condition| condition.kind() == "negated_command");
            let bodies: Vec<_> = parts.into_iter().filter(|part| Some(*part) != condition).collect();
            if is_negated && !bodies.is_empty() && bodies.into_iter().all(|body| is_idle(body, source)) {
                found.add("shell-swallowed-error", node);
            }
        }
        "command" => {
            let arguments = arguments_of(node, source.0);
            match name_of(node, source.0).as_str() {
                "set" if turns_off(&arguments) => found.add("shell-ignored-errors", node),
                "trap" if ignores_errors(&arguments) => found.add("shell-ignored-errors", node),
                _ => {}
            }
        }
        _ => {}
    }
}

/// `set +e`, `set +xe`, `set +o errexit`
fn turns_off(arguments: &[String]) -> bool {
    let is_short = |word: &String| {
        word.strip_prefix('+').is_some_and(|letters| letters.contains('e') && !letters.starts_with('o'))
    };
    let is_long = |pair: &[String]| pair[0] == "+o" && pair[1] == "errexit";
    arguments.iter().any(is_short) || arguments.windows(2).any(is_long)
}

/// `trap '' ERR`, `trap : ERR`
fn ignores_errors(arguments: &[String]) -> bool {
    let is_idle = arguments.first().is_some_and(|word| matches!(word.trim(), "" | ":" | "true"));
    is_idle && arguments.iter().any(|word| word == "ERR")
}

/// Whether a command succeeds without doing anything.
fn is_idle(node: Node<'_>, source: &Source<'_>) -> bool {
    let mut left = vec![node];
    while let Some(node) = left.pop() {
        match node.kind() {
            "compound_statement" | "subshell" | "redirected_statement" => {
                left.extend(children(node).into_iter().filter(|child| child.kind() != "file_redirect"));
            }
            "command" => {
                let arguments = arguments_of(node, source.0);
                let is_idle = match name_of(node, source.0).as_str() {
                    "true" | ":" => true,
                    "exit" | "return" => arguments.first().is_some_and(|word| word == "0"),
                    _ => false,
                };
                if !is_idle {
                    return false;
                }
            }
            _ => return false,
        }
    }
    true
}
