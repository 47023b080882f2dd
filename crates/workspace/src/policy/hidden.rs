//! Characters that a reader would not see as they are: in any text, whatever its language.

use orchestr8_contract::visible;

use super::Violation;
use crate::limits;

/// Marks the encoding of a text, at its beginning only.
const BYTE_ORDER_MARK: char = '\u{feff}';

pub fn violations(text: &str) -> Vec<Violation> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.split('\n')) {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let Some(first) = visible::first_hidden(line, |c| matches!(c, '\t' | '\u{c}')) else { continue };
        let (rule, message) = match is_bidirectional(first) {
            true => {
                ("hidden-bidirectional", "a control character shows the text in another order than it has")
            }
            false => ("hidden-character", "there is a character here that readers do not see"),
        };
        found.push(Violation { rule, line: number, message });
        if found.len() >= limits::FINDINGS {
            break;
        }
    }
    found
}

fn is_bidirectional(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
