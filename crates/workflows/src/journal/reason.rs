//! The reason of a failure, without the values that happen to be in it: those of inputs and outputs stay hidden in a journal.

use std::borrow::Cow;

use orchestr8_kernel::redact::REDACTED;
use serde_json::Value;

use crate::limits::VALUES_SEARCHED;

/// Shorter texts and numbers are in every sentence.
const SHORTEST_TEXT: usize = 3;
const SHORTEST_NUMBER: usize = 4;

/// The text without these values, or the texts and numbers inside them, where they stand as words of their own.
pub fn without_values<'t, 'v>(text: &'t str, values: impl IntoIterator<Item = &'v Value>) -> Cow<'t, str> {
    let mut words = Vec::new();
    for value in values {
        collect(value, &mut words);
    }
    // The longest first: one may be a part of another.
    words.sort_unstable_by_key(|word| std::cmp::Reverse(word.len()));
    let mut shown = Cow::Borrowed(text);
    for word in &words {
        if let Some(replaced) = replace(&shown, word) {
            shown = Cow::Owned(replaced);
        }
    }
    shown
}

fn collect<'v>(value: &'v Value, words: &mut Vec<Cow<'v, str>>) {
    if words.len() >= VALUES_SEARCHED {
        return;
    }
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => {
            let text = number.to_string();
            if text.len() >= SHORTEST_NUMBER {
                words.push(Cow::Owned(text));
            }
        }
        Value::String(text) => {
            let text = text.trim();
            if text.len() >= SHORTEST_TEXT {
                words.push(Cow::Borrowed(text));
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, words)),
        Value::Object(map) => map.values().for_each(|value| collect(value, words)),
    }
}

fn replace(text: &str, word: &str) -> Option<String> {
    let is_word = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    let mut out = String::new();
    let mut from = 0;
    for (at, _) in text.match_indices(word) {
        let end = at + word.len();
        let inside = is_word(text[..at].chars().next_back()) && is_word(word.chars().next());
        let goes_on = is_word(text[end..].chars().next()) && is_word(word.chars().next_back());
        if inside || goes_on {
            continue;
        }
        out.push_str(&text[from..at]);
        out.push_str(REDACTED);
        from = end;
    }
    (from > 0).then(|| out + &text[from..])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_hidden_and_the_reason_stays() {
        for (text, value, shown) in [
            ("no account for ada@example.org", json!("ada@example.org"), "no account for [REDACTED]"),
            (
                "there is no agent named 'nowhere'",
                json!({"courier": "nowhere"}),
                "there is no agent named '[REDACTED]'",
            ),
            (
                "GET host answered 404 Not Found",
                json!([404, "Found"]),
                "GET host answered 404 Not [REDACTED]",
            ),
            ("card 4711 is blocked", json!(4711), "card [REDACTED] is blocked"),
            // Parts of words, and short ones, say nothing.
            (
                "the attempt took longer than 30 ms",
                json!(["temp", "an", 30]),
                "the attempt took longer than 30 ms",
            ),
            ("Ada Lovelace is unknown", json!(["Ada", "Ada Lovelace"]), "[REDACTED] is unknown"),
        ] {
            assert_eq!(without_values(text, [&value]), shown);
        }
    }
}
