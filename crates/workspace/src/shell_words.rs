//! Words of shell commands as the shell will take them: without quotes, as far as they do not depend on anything.

use tree_sitter::Node;

/// The name of a command, without its folder; empty if it depends on an expansion.
pub fn name_of(command: Node<'_>, text: &str) -> String {
    let word = command.child_by_field_name("name").map(|name| literal(name, text));
    let word = word.flatten().unwrap_or_default();
    word.rsplit('/').next().unwrap_or_default().to_owned()
}

/// The arguments of a command; what depends on an expansion stands as it is written.
pub fn arguments_of(command: Node<'_>, text: &str) -> Vec<String> {
    let mut cursor = command.walk();
    let arguments: Vec<Node<'_>> = command.children_by_field_name("argument", &mut cursor).collect();
    arguments
        .into_iter()
        .map(|argument| literal(argument, text).unwrap_or_else(|| written(argument, text).to_owned()))
        .collect()
}

/// Whether a word depends on nothing.
pub fn is_literal(word: Node<'_>, text: &str) -> bool {
    literal(word, text).is_some()
}

/// The value of a word that does not depend on anything.
fn literal(word: Node<'_>, text: &str) -> Option<String> {
    let mut value = String::new();
    let mut left = vec![word];
    while let Some(node) = left.pop() {
        let written = written(node, text);
        match node.kind() {
            "word" | "number" | "special_character" | "test_operator" => {
                value.push_str(&without_backslashes(written))
            }
            "raw_string" => value.push_str(written.trim_matches('\'')),
            "string_content" => value.push_str(written),
            "ansi_c_string" => value.push_str(written.trim_start_matches('$').trim_matches('\'')),
            "command_name" | "concatenation" | "string" => {
                let mut cursor = node.walk();
                let mut parts: Vec<Node<'_>> = node.children(&mut cursor).collect();
                parts.reverse();
                left.extend(parts);
            }
            "\"" => {}
            _ if !node.is_named() => value.push_str(written),
            _ => return None,
        }
    }
    Some(value)
}

fn written<'t>(node: Node<'_>, text: &'t str) -> &'t str {
    text.get(node.byte_range()).unwrap_or_default()
}

fn without_backslashes(word: &str) -> String {
    let mut letters = word.chars();
    let mut value = String::with_capacity(word.len());
    while let Some(c) = letters.next() {
        value.extend(if c == '\\' { letters.next() } else { Some(c) });
    }
    value
}
