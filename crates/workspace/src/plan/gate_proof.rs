//! Whether a command of a plan can fail because of what is in the workspace. One that cannot proves nothing.
//!
//! The status of a shell command is followed through its tree: `a || true` and `a; echo done` cannot fail, whatever `a` is.
//! This finds what the author of a plan wrote by mistake or to get by. What a script of the workspace does is not looked at.

use std::cell::RefCell;
use std::collections::HashMap;

use tree_sitter::Node;

use super::gate_words::words_outcome;
use crate::policy::{children, parse, shell_grammar, walk};
use crate::shell_words::{arguments_of, is_literal, name_of};

/// What is wrong with a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateFlaw {
    /// The shell would not read it as a command, or what its words mean is decided elsewhere: aliases, traps, variables.
    Unreadable,
    /// It succeeds, whatever is in the workspace.
    CannotFail,
}

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Succeeds,
    Fails,
    /// Always the same; it is not found out which.
    Fixed,
    /// As the workspace is.
    Depends,
}

/// Commands inside of commands (`sh -c`) that are followed.
const NESTED: usize = 4;

/// Groups inside of groups that are followed.
const DEPTH: usize = 64;

/// Checks the text of a command.
pub fn flaw_of(command: &str) -> Option<GateFlaw> {
    match script_outcome(command, 0) {
        Some(Outcome::Succeeds | Outcome::Fixed) => Some(GateFlaw::CannotFail),
        Some(Outcome::Fails | Outcome::Depends) => None,
        None => Some(GateFlaw::Unreadable),
    }
}

/// How a script ends. None: it cannot be read.
pub fn script_outcome(text: &str, nested: usize) -> Option<Outcome> {
    if nested >= NESTED {
        return None;
    }
    let tree = parse(&shell_grammar(), text).filter(|tree| !tree.root_node().has_error())?;
    let mut script = Script {
        text,
        nested,
        functions: HashMap::new(),
        ends: RefCell::default(),
        is_strict: false,
        sees_pipes: false,
    };
    let mut is_plain = true;
    walk(&tree, |node, _| is_plain &= script.prepare(node));
    if !is_plain {
        return None;
    }
    script.outcome(tree.root_node(), 0)
}

impl Outcome {
    pub fn and(self, next: Self) -> Self {
        match (self, next) {
            (Self::Succeeds, next) => next,
            (Self::Fails, _) | (_, Self::Fails) => Self::Fails,
            (Self::Depends, _) | (Self::Fixed, Self::Depends) => Self::Depends,
            (Self::Fixed, Self::Succeeds | Self::Fixed) => Self::Fixed,
        }
    }

    pub fn or(self, next: Self) -> Self {
        match (self, next) {
            (Self::Succeeds, _) | (_, Self::Succeeds) => Self::Succeeds,
            (Self::Fails, next) => next,
            (Self::Fixed, _) | (_, Self::Fixed) => Self::Fixed,
            (Self::Depends, Self::Fails | Self::Depends) => Self::Depends,
        }
    }

    pub fn not(self) -> Self {
        match self {
            Self::Succeeds => Self::Fails,
            Self::Fails => Self::Succeeds,
            Self::Fixed => Self::Fixed,
            Self::Depends => Self::Depends,
        }
    }

    /// One of two ways is taken.
    fn choose(self, yes: Self, no: Self) -> Self {
        match (self, yes, no) {
            (Self::Succeeds, yes, _) => yes,
            (Self::Fails, _, no) => no,
            (_, yes, no) if yes == no => yes,
            (Self::Depends, _, _) => Self::Depends,
            (Self::Fixed, _, _) => Self::Fixed,
        }
    }
}

struct Script<'t> {
    text: &'t str,
    nested: usize,
    functions: HashMap<String, Node<'t>>,
    /// How functions end; one that is being followed depends on itself.
    ends: RefCell<HashMap<String, Option<Outcome>>>,
    /// `set -e`
    is_strict: bool,
    /// `set -o pipefail`
    sees_pipes: bool,
}

impl<'t> Script<'t> {
    /// Takes in what holds for the whole script. False: its words may mean something else than they say.
    fn prepare(&mut self, node: Node<'t>) -> bool {
        match node.kind() {
            "function_definition" => {
                let name = node.child_by_field_name("name").map(|name| self.written(name).to_owned());
                if let (Some(name), Some(body)) = (name, node.child_by_field_name("body")) {
                    self.functions.insert(name, body);
                }
                true
            }
            "command" => {
                let arguments = arguments_of(node, self.text);
                let name = node.child_by_field_name("name");
                match name_of(node, self.text).as_str() {
                    "set" => {
                        let flag = |word: &String| {
                            word.strip_prefix('-')
                                .is_some_and(|letters| !letters.starts_with('-') && letters.contains('e'))
                        };
                        self.is_strict |=
                            arguments.iter().any(flag) || arguments.iter().any(|word| word == "errexit");
                        self.sees_pipes |= arguments.iter().any(|word| word == "pipefail");
                        !arguments.iter().any(|word| word.starts_with('+'))
                    }
                    "alias" | "trap" | "source" | "." | "enable" => false,
                    _ => name.is_none_or(|name| is_literal(name, self.text)),
                }
            }
            _ => true,
        }
    }

    fn written(&self, node: Node<'_>) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    fn outcome(&self, node: Node<'t>, depth: usize) -> Option<Outcome> {
        if depth > DEPTH {
            return None;
        }
        let inner = |node| self.outcome(node, depth + 1);
        let field = |name| node.child_by_field_name(name).map_or(Some(Outcome::Succeeds), inner);
        match node.kind() {
            "compound_statement" if self.written(node).starts_with("((") => Some(self.arithmetic(node)),
            "program" | "compound_statement" | "subshell" | "do_group" | "else_clause" | "elif_clause" => {
                self.sequence(node, depth)
            }
            "list" => self.list(node, depth),
            "pipeline" => self.pipeline(node, depth),
            "negated_command" => Some(inner(children(node).into_iter().next()?)?.not()),
            "redirected_statement" => field("body"),
            "command" => self.command(node, depth, false),
            "test_command" => {
                let words: Vec<String> = self
                    .written(node)
                    .trim_matches(['[', ']', ' '])
                    .split_whitespace()
                    .map(|word| word.trim_matches(['"', '\'']).to_owned())
                    .collect();
                words_outcome("test", &words, self.nested, false)
            }
            "if_statement" => self.choice(node, depth),
            "while_statement" => {
                let condition = field("condition")?;
                let is_until = self.written(node).starts_with("until");
                let body = field("body")?;
                Some((if is_until { condition.not() } else { condition }).choose(body, Outcome::Succeeds))
            }
            "for_statement" => {
                let mut cursor = node.walk();
                let has_words = node.children_by_field_name("value", &mut cursor).next().is_some();
                if has_words { field("body") } else { Some(Outcome::Succeeds) }
            }
            "c_style_for_statement" => field("body"),
            "case_statement" => {
                let items = children(node).into_iter().filter(|child| child.kind() == "case_item");
                let outcomes: Option<Vec<Outcome>> = items.map(|item| self.sequence(item, depth)).collect();
                let is_idle = outcomes?.into_iter().all(|outcome| outcome == Outcome::Succeeds);
                Some(if is_idle { Outcome::Succeeds } else { Outcome::Depends })
            }
            "variable_assignment" | "variable_assignments" => self.assigned(node, depth),
            _ => Some(Outcome::Succeeds),
        }
    }

    /// Statements one after the other: the last one that is reached decides, or each with `set -e`.
    fn sequence(&self, node: Node<'t>, depth: usize) -> Option<Outcome> {
        if depth > DEPTH {
            return None;
        }
        let mut cursor = node.walk();
        let mut outcome = Outcome::Succeeds;
        for child in node.children(&mut cursor) {
            if child.kind() == "&" {
                // It is not waited for.
                outcome = if self.is_strict { outcome } else { Outcome::Succeeds };
                continue;
            }
            let is_statement = child.is_named()
                && !matches!(child.kind(), "comment" | "word" | "extglob_pattern" | "heredoc_body");
            if !is_statement {
                continue;
            }
            if self.ends_with_last_status(child) {
                return Some(outcome);
            }
            let last = self.outcome(child, depth + 1)?;
            outcome = if self.is_strict { outcome.and(last) } else { last };
            if self.leaves(child) {
                break;
            }
        }
        Some(outcome)
    }

    /// `exit` and `exit $?`
    fn ends_with_last_status(&self, node: Node<'t>) -> bool {
        node.kind() == "command" && self.leaves(node) && {
            let arguments = arguments_of(node, self.text);
            arguments.is_empty() || arguments.first().is_some_and(|word| word == "$?")
        }
    }

    /// Whether nothing after it is reached.
    fn leaves(&self, node: Node<'t>) -> bool {
        node.kind() == "command" && matches!(name_of(node, self.text).as_str(), "exit" | "return" | "exec")
    }

    fn list(&self, node: Node<'t>, depth: usize) -> Option<Outcome> {
        let mut cursor = node.walk();
        let is_or = node.children(&mut cursor).any(|child| child.kind() == "||");
        let parts = children(node);
        let (first, second) = (*parts.first()?, *parts.last()?);
        let one = self.outcome(first, depth + 1)?;
        if self.leaves(first) {
            return Some(one);
        }
        let other = self.outcome(second, depth + 1)?;
        Some(if is_or { one.or(other) } else { one.and(other) })
    }

    fn pipeline(&self, node: Node<'t>, depth: usize) -> Option<Outcome> {
        let parts = children(node);
        let last = *parts.last()?;
        let mut outcome = match last.kind() {
            "command" => self.command(last, depth, true)?,
            _ => self.outcome(last, depth + 1)?,
        };
        if self.sees_pipes {
            for part in parts.iter().take(parts.len() - 1) {
                outcome = self.outcome(*part, depth + 1)?.and(outcome);
            }
        }
        Some(outcome)
    }

    fn choice(&self, node: Node<'t>, depth: usize) -> Option<Outcome> {
        let mut cursor = node.walk();
        let condition = node.child_by_field_name("condition")?;
        let condition_end = node
            .children_by_field_name("condition", &mut cursor)
            .last()
            .map_or(condition.end_byte(), |last| last.end_byte());
        let (mut yes, mut no) = (Outcome::Succeeds, Outcome::Succeeds);
        for part in children(node).into_iter().filter(|part| part.start_byte() >= condition_end) {
            match part.kind() {
                "else_clause" => no = self.sequence(part, depth + 1)?,
                // Another condition: it may or may not hold.
                "elif_clause" => no = Outcome::Depends.choose(self.sequence(part, depth + 1)?, no),
                _ if self.is_strict => yes = yes.and(self.outcome(part, depth + 1)?),
                _ => yes = self.outcome(part, depth + 1)?,
            }
        }
        Some(self.outcome(condition, depth + 1)?.choose(yes, no))
    }

    fn arithmetic(&self, node: Node<'t>) -> Outcome {
        let depends = self.written(node).contains(|c: char| c.is_alphabetic() || c == '$' || c == '`');
        if depends { Outcome::Depends } else { Outcome::Fixed }
    }

    /// The status of an assignment is that of the command whose output is assigned.
    fn assigned(&self, node: Node<'t>, depth: usize) -> Option<Outcome> {
        let mut left = vec![node];
        while let Some(node) = left.pop() {
            if node.kind() == "command_substitution" {
                return self.sequence(node, depth + 1);
            }
            left.extend(children(node));
        }
        Some(Outcome::Succeeds)
    }

    fn command(&self, node: Node<'t>, depth: usize, is_piped: bool) -> Option<Outcome> {
        let name = name_of(node, self.text);
        if let Some(body) = self.functions.get(&name) {
            if let Some(known) = self.ends.borrow().get(&name) {
                return *known;
            }
            self.ends.borrow_mut().insert(name.clone(), Some(Outcome::Depends));
            let end = self.outcome(*body, depth + 1);
            self.ends.borrow_mut().insert(name, end);
            return end;
        }
        if name.is_empty() {
            return self.assigned(node, depth);
        }
        words_outcome(&name, &arguments_of(node, self.text), self.nested, is_piped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_cannot_fail_are_found() {
        let commands = include_str!("idle_gates.txt").lines().filter(|line| !line.is_empty());
        let missed: Vec<&str> = commands.filter(|command| flaw_of(command).is_none()).collect();
        assert!(missed.is_empty(), "{missed:#?}");
    }

    /// Each function calls the next one twice, and the last one itself: followed call by call, they would take for ever.
    #[test]
    fn functions_are_followed_once() {
        let chain: String =
            (0..14).map(|n| format!("f{n}() {{ {} }}; ", format!("f{}; ", n + 1).repeat(9))).collect();
        assert_eq!(flaw_of(&format!("{chain} f14() {{ true; }}; f0")), Some(GateFlaw::CannotFail));
        assert_eq!(flaw_of("f() { f | f & f; }; f"), None);
    }

    #[test]
    fn commands_that_can_fail_are_left_alone() {
        let commands = include_str!("working_gates.txt").lines().filter(|line| !line.is_empty());
        let refused: Vec<_> =
            commands.map(|command| (command, flaw_of(command))).filter(|(_, flaw)| flaw.is_some()).collect();
        assert!(refused.is_empty(), "{refused:#?}");
    }
}
