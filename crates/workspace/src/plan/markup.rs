//! What a person who reads a plan would not see: markup that hides text when the plan is rendered, characters that no font
//! draws, and text moved out of sight.

use orchestr8_contract::visible;

/// Blanks inside of a line; what follows more of them is out of sight.
const BLANKS: usize = 40;

/// What hides something in a line, if anything does.
pub fn hidden_in(line: &str) -> Option<&'static str> {
    if visible::first_hidden(line, |c| matches!(c, '\t' | '\r')).is_some() {
        return Some("there is a character here that nobody sees");
    }
    if line.trim().contains(&" ".repeat(BLANKS)) || line.trim().contains("\t\t\t\t") {
        return Some("blanks move text out of sight");
    }
    let text = without_code(line);
    if text.contains("<!--") || text.contains("-->") {
        return Some("a comment hides text from whoever reads the plan rendered");
    }
    if has_tag(&text) {
        return Some("markup can hide text from whoever reads the plan rendered; put < in backticks");
    }
    if is_link_definition(&text) {
        return Some("a link definition is not shown when the plan is rendered");
    }
    if has_entity(&text) {
        return Some("a character reference shows another text than it is; write the character");
    }
    None
}

/// The line without what stands in backticks, which is rendered as it is.
fn without_code(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    // With an odd number of backticks, the last one begins nothing.
    let is_closed = parts.len() % 2 == 1;
    let last = parts.len() - 1;
    let outside = parts
        .iter()
        .enumerate()
        .filter(|(at, _)| at % 2 == 0 || (!is_closed && *at == last))
        .map(|(_, part)| *part);
    outside.collect::<Vec<_>>().join(" ")
}

fn has_tag(text: &str) -> bool {
    text.split('<')
        .skip(1)
        .any(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?')))
}

/// `[name]: target`, also in a list.
fn is_link_definition(text: &str) -> bool {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '-' | '*' | '+' | '>'));
    let text =
        text.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches(['.', ')']).trim_start();
    text.starts_with('[') && text.contains("]:")
}

fn has_entity(text: &str) -> bool {
    text.split('&').skip(1).any(|rest| {
        rest.split_once(';').is_some_and(|(name, _)| {
            !name.is_empty()
                && name.len() <= 32
                && name.trim_start_matches('#').bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_is_found() {
        for line in [
            "<div hidden>",
            "- src/** <div style='display:none'>",
            "</div>",
            "<details><summary>more</summary>",
            "<!-- x",
            "x -->",
            "<![CDATA[",
            "- [//]: # (- **)",
            "[comment]: <> (x)",
            "- a\u{200b}b",
            "- \u{202e}sr/**",
            "- src\u{feff}/**",
            "- src&#47;**",
            "- a &nbsp; b",
            "- a` <span hidden>",
            &format!("- a{}- **", " ".repeat(200)),
        ] {
            assert!(hidden_in(line).is_some(), "{line}");
        }
        for line in [
            "- `Vec<u8>` is returned",
            "- a < b and c > d",
            "- `cargo test 2>&1 | grep -q '<ok>'` (limit 60 s)",
            "- R&D, a && b; c",
            "- Plan ID: A [1]",
            "| a            | b |",
        ] {
            assert_eq!(hidden_in(line), None, "{line}");
        }
    }
}
