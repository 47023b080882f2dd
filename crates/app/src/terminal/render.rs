//! The one way of text to a terminal: hidden characters become visible, and only our own styles become escape sequences.
//!
//! Styles stand in texts as noncharacters of Unicode, which are meant for use inside a program. So an escape character in a
//! text is never ours, and all that another's noncharacter can do is to change a colour.

use orchestr8_contract::visible;

pub const BOLD: &str = "\u{fdd0}";
pub const DIM: &str = "\u{fdd1}";
pub const RED: &str = "\u{fdd2}";
pub const GREEN: &str = "\u{fdd3}";
pub const YELLOW: &str = "\u{fdd4}";
pub const CYAN: &str = "\u{fdd5}";
pub const PLAIN: &str = "\u{fdd6}";

/// The escape sequence of a style.
fn sequence(c: char) -> Option<&'static str> {
    match c {
        '\u{fdd0}' => Some("\x1b[1m"),
        '\u{fdd1}' => Some("\x1b[2m"),
        '\u{fdd2}' => Some("\x1b[1;31m"),
        '\u{fdd3}' => Some("\x1b[32m"),
        '\u{fdd4}' => Some("\x1b[1;33m"),
        '\u{fdd5}' => Some("\x1b[36m"),
        '\u{fdd6}' => Some("\x1b[0m"),
        _ => None,
    }
}

fn is_style(c: char) -> bool {
    sequence(c).is_some()
}

/// The text as a terminal gets it, with colours or without.
pub fn render(text: &str, colored: bool) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for part in text.split_inclusive(is_style) {
        let style = part.chars().next_back().and_then(sequence);
        let words = if style.is_some() { part.trim_end_matches(is_style) } else { part };
        out.push_str(&visible::visible(words));
        out.push_str(style.filter(|_| colored).unwrap_or_default());
    }
    out
}

/// The same for a whole text: no style lasts beyond its end, wherever it came from.
pub fn render_whole(text: &str, colored: bool) -> String {
    let last = text.chars().rev().find(|c| is_style(*c));
    let open = last.is_some_and(|style| !PLAIN.contains(style));
    let (text, end) = text.strip_suffix('\n').map_or((text, ""), |text| (text, "\n"));
    let reset = if open { PLAIN } else { "" };
    render(&format!("{text}{reset}{end}"), colored)
}

/// A text of others that may have several lines.
pub fn visible(text: &str) -> String {
    visible::visible(text).into_owned()
}

/// A text of others on a line of ours.
pub fn visible_line(text: &str) -> String {
    visible::visible_line(text).into_owned()
}

/// A text with our styles on one line.
pub fn styled_line(text: &str) -> String {
    let parts = text.split_inclusive(is_style).map(|part| {
        let style = part.chars().next_back().filter(|c| is_style(*c));
        let words = if style.is_some() { part.trim_end_matches(is_style) } else { part };
        let mut line = visible_line(words);
        line.extend(style);
        line
    });
    parts.collect()
}

/// The same for several lines: a line feed inside one of them does not make two.
pub fn styled_lines(lines: &[String]) -> String {
    lines.iter().map(|line| styled_line(line)).collect::<Vec<_>>().join("\n")
}

/// How many letters of a text a terminal shows.
pub fn width(text: &str) -> usize {
    text.chars().filter(|c| !is_style(*c)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_are_ours_and_escape_characters_are_not() {
        let text = format!("{RED}error:{PLAIN} \x1b]0;title\x07 \x1b[31mred\u{9b}2J\u{202e}");
        assert_eq!(
            render(&text, true),
            "\x1b[1;31merror:\x1b[0m \\u{1b}]0;title\\u{7} \\u{1b}[31mred\\u{9b}2J\\u{202e}"
        );
        assert_eq!(render(&text, false), "error: \\u{1b}]0;title\\u{7} \\u{1b}[31mred\\u{9b}2J\\u{202e}");
        assert_eq!(render(&format!("{BOLD}{PLAIN}\n\t"), true), "\x1b[1m\x1b[0m\n\t");
        assert_eq!(render("\u{fdd7}", true), "\\u{fdd7}", "not a style of ours");
        assert_eq!(render_whole(&format!("a{RED}b\n"), true), "a\x1b[1;31mb\x1b[0m\n", "no style is left on");
        assert_eq!(render_whole(&format!("{RED}a{PLAIN}\n"), true), "\x1b[1;31ma\x1b[0m\n");
    }

    #[test]
    fn a_text_of_others_has_no_styles_and_a_line_is_one_line() {
        assert_eq!(visible(RED), "\\u{fdd2}");
        assert_eq!(visible_line("a\nhint: rm"), "a\\u{a}hint: rm");
        assert_eq!(styled_line(&format!("{DIM}a\nb{PLAIN}")), format!("{DIM}a\\u{{a}}b{PLAIN}"));
        assert_eq!(width(&format!("{DIM}ab{PLAIN}")), 2);
    }
}
