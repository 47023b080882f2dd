//! Parses a text and goes through its tree, within limits.

use std::ops::ControlFlow;

use tree_sitter::{Language, Node, ParseOptions, ParseState, Parser, Tree};

use crate::limits;

/// The text of a tree.
pub struct Source<'t>(pub &'t str);

impl<'t> Source<'t> {
    pub fn of(&self, node: Node<'_>) -> &'t str {
        self.0.get(node.byte_range()).unwrap_or_default()
    }

    /// The text of a child by the name of its field.
    pub fn field(&self, node: Node<'_>, name: &str) -> &'t str {
        node.child_by_field_name(name).map_or("", |child| self.of(child))
    }
}

/// None: it takes more steps than a text of this length should.
pub fn parse(language: &Language, text: &str) -> Option<Tree> {
    if text.len() > limits::CODE_BYTES {
        return None;
    }
    let mut parser = Parser::new();
    parser.set_language(language).ok()?;
    // The parser asks every hundred steps. Counting them gives the same answer on a fast machine and on a slow one.
    let mut left = limits::PARSE_ASKS + text.len() / limits::PARSE_BYTES_PER_ASK;
    let mut progress = |_: &ParseState| match left.checked_sub(1) {
        Some(less) => {
            left = less;
            ControlFlow::Continue(())
        }
        None => ControlFlow::Break(()),
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    let bytes = text.as_bytes();
    parser.parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or_default(), None, Some(options))
}

/// Visits every node, a parent before its children, with its depth. However deep the tree is, the stack is not.
pub fn walk<'t>(tree: &'t Tree, mut visit: impl FnMut(Node<'t>, u32)) {
    let mut cursor = tree.walk();
    loop {
        visit(cursor.node(), cursor.depth());
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
        }
    }
}

pub fn is_comment(node: Node<'_>) -> bool {
    node.kind().contains("comment")
}

/// The children that mean something: no punctuation, no comments.
pub fn children<'t>(node: Node<'t>) -> Vec<Node<'t>> {
    let mut cursor = node.walk();
    let children: Vec<Node<'t>> =
        node.named_children(&mut cursor).filter(|child| !is_comment(*child)).collect();
    children
}

/// The first of several comments or words in a row of siblings.
pub fn line_of(node: Node<'_>) -> usize {
    node.start_position().row + 1
}
