//! Rules of every language: words in comments that stand for work that was not done.

use orchestr8_contract::visible::is_hidden;

/// A word or a phrase in a comment.
pub struct Placeholder {
    pub id: &'static str,
    pub words: &'static str,
    pub message: &'static str,
}

pub const PLACEHOLDERS: &[Placeholder] = &[
    Placeholder { id: "placeholder-todo", words: "todo", message: "work that was not done is marked here" },
    Placeholder { id: "placeholder-fixme", words: "fixme", message: "a known mistake is marked here" },
    Placeholder {
        id: "placeholder-xxx",
        words: "xxx",
        message: "a place that is not finished is marked here",
    },
    Placeholder { id: "placeholder-hack", words: "hack", message: "a known mistake is marked here" },
    Placeholder { id: "placeholder-stub", words: "stub", message: "a stub does not do the work" },
    Placeholder {
        id: "placeholder-not-implemented",
        words: "not implemented",
        message: "the work is not done",
    },
    Placeholder { id: "placeholder-later", words: "implement later", message: "the work is not done" },
    Placeholder {
        id: "placeholder-placeholder",
        words: "placeholder",
        message: "a placeholder does not do the work",
    },
];

/// Whether a message says that the work was not done.
pub fn is_unfinished(message: &str) -> bool {
    let told =
        ["todo", "not implemented", "implement later", "unimplemented", "placeholder", "not yet implemented"];
    let plain = plain(message);
    told.iter().any(|words| plain.contains(&format!(" {words} ")))
}

/// Whether the words stand in the comment as words.
pub fn is_in(rule: &Placeholder, comment: &str) -> bool {
    plain(comment).contains(&format!(" {} ", rule.words))
}

/// Words in lower case between single blanks. Characters that are not seen separate nothing.
fn plain(text: &str) -> String {
    let seen = text.chars().filter(|c| c.is_whitespace() || !is_hidden(*c));
    let plain: String =
        seen.flat_map(char::to_lowercase).map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    format!(" {} ", plain.split_whitespace().collect::<Vec<_>>().join(" "))
}
