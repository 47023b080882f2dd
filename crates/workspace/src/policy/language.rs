//! The languages that have rules, how a file is known to be in one, and the files whose comments are read without a grammar.

use orchestr8_contract::Code;
use tree_sitter::Node;

use super::tokens::Syntax;
use super::{Rule, Source, Violations};
use super::{c, go, java, javascript, python, rust, shell};

/// A language, how its text is parsed, and its rules.
pub struct Language {
    pub endings: &'static [&'static str],
    /// Names of files without an ending, in lower case.
    pub names: &'static [&'static str],
    /// Programs that a first line (`#!`) names.
    pub interpreters: &'static [&'static str],
    pub grammar: fn() -> tree_sitter::Language,
    /// Looks at one node of the tree; the number is its depth.
    pub look: fn(Node<'_>, u32, &Source<'_>, &mut Violations),
    /// For parts that the grammar cannot read.
    pub syntax: Syntax,
    pub rules: &'static [Rule],
    /// The code of a violation.
    pub code: Code,
}

const LANGUAGES: [&Language; 8] = [
    &rust::LANGUAGE,
    &javascript::JAVASCRIPT,
    &javascript::TYPESCRIPT,
    &python::LANGUAGE,
    &shell::LANGUAGE,
    &go::LANGUAGE,
    &c::LANGUAGE,
    &java::LANGUAGE,
];

/// The language of a file, by the ending of its name whatever its case, by its name, or by its first line.
pub fn language_of(name: &str, text: &str) -> Option<&'static Language> {
    let name = name.to_lowercase();
    let ending = ending_of(&name);
    LANGUAGES
        .into_iter()
        .find(|language| language.endings.contains(&ending) || language.names.contains(&name.as_str()))
        .or_else(|| {
            let interpreter = interpreter_of(text)?;
            LANGUAGES.into_iter().find(|language| language.interpreters.contains(&interpreter.as_str()))
        })
}

fn ending_of(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, ending)| ending)
}

/// `#!/usr/bin/env -S python3.12 -u` gives `python`.
fn interpreter_of(text: &str) -> Option<String> {
    let line = text.strip_prefix("#!")?.lines().next()?;
    let words = line.split_whitespace().filter(|word| !word.starts_with('-') && !word.contains('='));
    let names = words.map(|word| word.rsplit('/').next().unwrap_or(word));
    let name = names.into_iter().find(|name| *name != "env")?;
    Some(name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').to_lowercase())
}

const HASH: Syntax =
    Syntax { line_comments: &["#"], block_comments: &[], quotes: &["\"", "'"], is_rust: false };
const SLASHES: Syntax =
    Syntax { line_comments: &["//"], block_comments: &[("/*", "*/")], quotes: &["\"", "'"], is_rust: false };
const DASHES: Syntax =
    Syntax { line_comments: &["--"], block_comments: &[("/*", "*/")], quotes: &["'"], is_rust: false };
const MARKUP: Syntax =
    Syntax { line_comments: &[], block_comments: &[("<!--", "-->")], quotes: &[], is_rust: false };
const PHP: Syntax = Syntax {
    line_comments: &["//", "#"],
    block_comments: &[("/*", "*/")],
    quotes: &["\"", "'"],
    is_rust: false,
};

/// Files without rules of their own, by their endings or names, and how they write comments.
const COMMENTED: &[(&[&str], Syntax)] = &[
    (
        &[
            "cc", "cpp", "cxx", "hh", "hpp", "hxx", "ipp", "m", "mm", "cs", "kt", "kts", "swift", "scala",
            "dart", "groovy", "gradle", "zig", "proto", "css", "scss", "less", "sol", "glsl", "hlsl", "cu",
        ],
        SLASHES,
    ),
    (
        &[
            "rb",
            "pl",
            "pm",
            "r",
            "jl",
            "ex",
            "exs",
            "nim",
            "cr",
            "tcl",
            "ps1",
            "yaml",
            "yml",
            "toml",
            "tf",
            "cmake",
            "mk",
            "nix",
            "makefile",
            "gnumakefile",
            "dockerfile",
            "containerfile",
            "justfile",
            "rakefile",
            "gemfile",
            "cmakelists.txt",
        ],
        HASH,
    ),
    (&["sql", "lua", "hs", "elm", "ada", "adb", "ads"], DASHES),
    (&["html", "htm", "xml", "xhtml", "svg", "xsl", "vue", "svelte"], MARKUP),
    (&["php"], PHP),
];

/// How a file without rules writes comments, if that is known.
pub fn comments_of(name: &str) -> Option<&'static Syntax> {
    let name = name.to_lowercase();
    let ending = ending_of(&name);
    let is_one = |names: &[&str]| names.contains(&name.as_str()) || names.contains(&ending);
    COMMENTED.iter().find(|(names, _)| is_one(names)).map(|(_, syntax)| syntax)
}
