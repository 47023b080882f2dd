//! What may not be written, whatever the plan: placeholders, swallowed errors, hidden characters, and what each language has of
//! its own.
//!
//! One file per language: its rules, and a function that looks at one node of the syntax tree (ADR 61). The grammars go on after
//! mistakes; a text with mistakes is also searched for rows of tokens, so that what a grammar cannot read hides nothing.

mod c;
mod go;
mod hidden;
mod java;
mod javascript;
mod language;
mod placeholders;
mod purpose;
mod python;
mod rust;
mod shell;
mod syntax;
mod tokens;

#[cfg(test)]
mod tests;

use orchestr8_contract::Code;
use serde_json::{Value, json};
use tree_sitter::Node;

use crate::limits;
use crate::refusal::Refusal;
use crate::root::Inside;

use language::{Language, comments_of, language_of};
pub use purpose::Purpose;
pub use shell::grammar as shell_grammar;
use syntax::{Source, is_comment, line_of};
pub use syntax::{children, parse, walk};

/// One thing that may not be written.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    pub id: &'static str,
    /// How it looks without a tree: tokens separated by blanks; `…` stands for any one token. Empty: only a tree shows it.
    pub tokens: &'static str,
    pub message: &'static str,
    /// Whether tests may.
    pub tests_may: bool,
}

/// One place that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub rule: &'static str,
    pub line: usize,
    pub message: &'static str,
}

/// What was found in a text so far.
pub struct Violations {
    rules: &'static [Rule],
    purpose: Purpose,
    found: Vec<Violation>,
    /// Up to this byte the text is compiled for tests only.
    pub tests_until: usize,
    /// The depth of an attribute that says so about what follows it.
    pub test_attribute: Option<u32>,
}

const TOO_LARGE: Violation = Violation {
    rule: "code-too-large",
    line: 1,
    message: "the text is too large or too tangled to be checked; split it",
};

/// Refuses a text that breaks a rule. What is quoted of it is nothing: it may hold secrets.
pub fn check(path: &Inside, text: &str, claimed: Option<Purpose>) -> Result<(), Refusal> {
    let purpose = Purpose::in_force(path.as_str(), claimed);
    let name = path.split().1;
    let language = language_of(name, text);
    let mut violations = match (language, comments_of(name)) {
        (Some(language), _) => in_code(language, text, purpose),
        (None, Some(syntax)) => in_comments(syntax, text),
        (None, None) => Vec::new(),
    };
    violations.extend(hidden::violations(text));
    violations.sort_by_key(|violation| violation.line);
    violations.dedup();
    violations.truncate(limits::FINDINGS);
    let Some(first) = violations.first() else { return Ok(()) };
    let code = match language {
        Some(language) if language.rules.iter().any(|rule| rule.id == first.rule) => language.code,
        Some(_) | None => Code::PolicyViolation,
    };
    let mut message =
        format!("line {} of '{path}': {} ({} in all)", first.line, first.message, violations.len());
    if claimed == Some(Purpose::Verification) && purpose != Purpose::Verification {
        message.push_str("; the role VERIFICATION is for files whose path is that of a test");
    }
    let shown: Vec<Value> = violations
        .iter()
        .map(
            |violation| json!({"rule": violation.rule, "line": violation.line, "message": violation.message}),
        )
        .collect();
    Err(Refusal::new(code, message).with("violations", shown))
}

fn in_code(language: &'static Language, text: &str, purpose: Purpose) -> Vec<Violation> {
    let Some(tree) = parse(&(language.grammar)(), text) else { return vec![TOO_LARGE] };
    let mut violations = Violations {
        rules: language.rules,
        purpose,
        found: Vec::new(),
        tests_until: 0,
        test_attribute: None,
    };
    let source = Source(text);
    walk(&tree, |node, depth| {
        if is_comment(node) {
            violations.add_comment(node, &source);
        }
        (language.look)(node, depth, &source, &mut violations);
    });
    let mut found = violations.found;
    if tree.root_node().has_error() {
        found.extend(in_tokens(language, text, purpose));
    }
    found
}

/// For texts that a grammar cannot read whole.
fn in_tokens(language: &'static Language, text: &str, purpose: Purpose) -> Vec<Violation> {
    let read = tokens::read(text, &language.syntax);
    let mut found = in_comments(&language.syntax, text);
    for rule in language.rules.iter().filter(|rule| !rule.tokens.is_empty()) {
        if rule.tests_may && purpose == Purpose::Verification {
            continue;
        }
        let wanted: Vec<&str> = rule.tokens.split(' ').collect();
        for window in read.code.windows(wanted.len()) {
            if window.iter().zip(&wanted).all(|(token, wanted)| *wanted == "…" || token.text == *wanted) {
                found.push(Violation { rule: rule.id, line: window[0].line, message: rule.message });
            }
        }
    }
    found
}

fn in_comments(syntax: &tokens::Syntax, text: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for comment in tokens::read(text, syntax).comments {
        found.extend(in_comment(&comment.text, comment.line));
    }
    found
}

fn in_comment(text: &str, line: usize) -> impl Iterator<Item = Violation> {
    let broken = placeholders::PLACEHOLDERS.iter().filter(move |rule| placeholders::is_in(rule, text));
    broken.map(move |rule| Violation { rule: rule.id, line, message: rule.message })
}

impl Violations {
    /// The rule with this id is broken by a node, unless it is for code that is not a test.
    pub fn add(&mut self, id: &'static str, node: Node<'_>) {
        let Some(rule) = self.rules.iter().find(|rule| rule.id == id) else { return };
        let is_test = self.purpose == Purpose::Verification || node.start_byte() < self.tests_until;
        if self.found.len() < limits::FINDINGS && !(rule.tests_may && is_test) {
            self.found.push(Violation { rule: rule.id, line: line_of(node), message: rule.message });
        }
    }

    pub fn add_some(&mut self, id: Option<&'static str>, node: Node<'_>) {
        if let Some(id) = id {
            self.add(id, node);
        }
    }

    /// Looks for placeholders in what readers take for a comment.
    pub fn add_comment(&mut self, node: Node<'_>, source: &Source<'_>) {
        for (line, text) in (line_of(node)..).zip(source.of(node).lines()) {
            if self.found.len() < limits::FINDINGS {
                self.found.extend(in_comment(text, line));
            }
        }
    }
}
