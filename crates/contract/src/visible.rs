//! Makes hidden characters of untrusted text visible, for terminals and log lines.
//!
//! A text that others wrote may hold escape sequences that steer a terminal, bidirectional controls that show it in another
//! order than it has (Trojan Source, CVE-2021-42574), or characters that no font draws. All of them are shown as `\u{..}`.

use std::borrow::Cow;

/// Joins pictographs into one, as in a family or a flag.
const JOINER: char = '\u{200d}';
/// Asks for the coloured form of a pictograph.
const EMOJI_FORM: char = '\u{fe0f}';

/// Whether a reader would not see the character as it is: controls (C0, DEL, C1), line and paragraph separators, bidirectional
/// controls, zero-width and other invisible format characters, fillers, variation selectors, tags and noncharacters.
pub const fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\0'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fdd0}'..='\u{fdef}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1345f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    ) || (c as u32) & 0xfffe == 0xfffe
}

/// The text with hidden characters shown as `\u{..}`; line feeds and tabs stay. For text that may have several lines.
pub fn visible(text: &str) -> Cow<'_, str> {
    shown(text, |c| matches!(c, '\n' | '\t'))
}

/// The same on one line: a line feed of the text would look like a line of ours.
pub fn visible_line(text: &str) -> Cow<'_, str> {
    shown(text, |_| false)
}

/// The first character of a line that a reader would not see as it is, but for those that may stay.
pub fn first_hidden(line: &str, stays: impl Fn(char) -> bool) -> Option<char> {
    let mut before = None;
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        let next = rest.as_str().chars().next();
        if is_hidden(c) && !stays(c) && !is_part_of_emoji(before, c, next) {
            return Some(c);
        }
        before = Some(c);
    }
    None
}

/// Serialized JSON with hidden characters as JSON escapes: another spelling of the same value. JSON has such characters only
/// inside strings, and C0 controls are escaped there already; its own line feeds stay.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    let is_shown = |c: char| is_hidden(c) && c != '\n';
    let Some(first) = json.find(is_shown) else { return Cow::Borrowed(json) };
    let mut out = String::with_capacity(json.len() + 16);
    out.push_str(&json[..first]);
    for c in json[first..].chars() {
        if is_shown(c) { push_json_escape(&mut out, c) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// Appends `\uXXXX`, twice for what is beyond the first plane, as JSON spells a character.
pub fn push_json_escape(out: &mut String, c: char) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        out.push_str("\\u");
        for shift in [12, 8, 4, 0] {
            out.push(char::from_digit(u32::from(*unit >> shift) & 15, 16).unwrap_or('0'));
        }
    }
}

fn shown(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    let Some(first) = text.find(|c| is_hidden(c) && !stays(c)) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    let mut before = text[..first].chars().next_back();
    let mut rest = text[first..].chars();
    while let Some(c) = rest.next() {
        let next = rest.as_str().chars().next();
        if !is_hidden(c) || stays(c) || is_part_of_emoji(before, c, next) {
            out.push(c);
        } else {
            out.extend(c.escape_unicode());
        }
        before = Some(c);
    }
    Cow::Owned(out)
}

/// A joiner between two pictographs and a form right behind one hide nothing: they are drawn as one picture.
fn is_part_of_emoji(before: Option<char>, c: char, next: Option<char>) -> bool {
    match c {
        EMOJI_FORM => before.is_some_and(is_pictograph),
        JOINER => {
            before.is_some_and(|c| is_pictograph(c) || c == EMOJI_FORM) && next.is_some_and(is_pictograph)
        }
        _ => false,
    }
}

fn is_pictograph(c: char) -> bool {
    matches!(c, '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}' | '\u{25a0}'..='\u{27bf}' | '\u{1f000}'..='\u{1faff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_steers_a_terminal_or_hides_is_shown() {
        for (text, expected) in [
            ("a\u{1b}[31mb", r"a\u{1b}[31mb"),
            ("\u{1b}]52;c;Zm9v\u{7}", r"\u{1b}]52;c;Zm9v\u{7}"),
            ("x\u{9b}2J\u{7f}\r", r"x\u{9b}2J\u{7f}\u{d}"),
            ("if\u{202e} }\u{2066}", r"if\u{202e} }\u{2066}"),
            ("ad\u{200b}min\u{feff}\u{ad}\u{2060}", r"ad\u{200b}min\u{feff}\u{ad}\u{2060}"),
            ("a\u{e0041}b\u{e0100}", r"a\u{e0041}b\u{e0100}"),
            ("\u{3164}\u{fdd0}\u{1fffe}", r"\u{3164}\u{fdd0}\u{1fffe}"),
            ("one\n\ttwo", "one\n\ttwo"),
            ("Grüße, 你好, שלום, नमस्ते 🙂", "Grüße, 你好, שלום, नमस्ते 🙂"),
        ] {
            assert_eq!(visible(text), expected, "{text:?}");
        }
        assert_eq!(visible_line("one\n\ttwo"), r"one\u{a}\u{9}two");
        assert!(matches!(visible("plain"), Cow::Borrowed("plain")));
    }

    #[test]
    fn joined_pictographs_stay_and_joiners_elsewhere_do_not() {
        for whole in ["👩‍💻", "❤️", "🏳️‍🌈", "👨‍👩‍👧"] {
            assert_eq!(visible(whole), whole);
        }
        assert_eq!(visible("pay\u{200d}pal"), r"pay\u{200d}pal");
        assert_eq!(visible("🙂\u{200d}x"), r"🙂\u{200d}x");
        assert_eq!(visible("🙂\u{fe0f}\u{fe0f}"), "🙂\u{fe0f}\\u{fe0f}");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let value = serde_json::json!({"a\u{202e}": "\u{1b}[0m\u{9b}\u{7f}\u{e0041}\nb", "c": [1, "é"]});
        for text in [value.to_string(), format!("{value:#}")] {
            let shown = visible_json(&text);
            assert!(!shown.chars().any(|c| is_hidden(c) && c != '\n'), "{shown}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        }
    }

    proptest! {
        #[test]
        fn nothing_hidden_is_left_and_nothing_else_changes(text in "(\\PC|\\p{Cf}|\\p{Cc}){0,40}") {
            let line = visible_line(&text);
            let stays = |c: &char| !is_hidden(*c) || matches!(*c, JOINER | EMOJI_FORM);
            prop_assert!(line.chars().all(|c| stays(&c)));
            prop_assert_eq!(visible_line(&line), line.clone(), "once is enough");
            let is_plain = !text.chars().any(is_hidden);
            prop_assert_eq!(is_plain, matches!(visible_line(&text), Cow::Borrowed(_)) );
        }

        #[test]
        fn every_format_character_is_hidden(c in "\\p{Cf}") {
            prop_assert!(c.chars().all(is_hidden), "{:?}", c);
        }
    }
}
