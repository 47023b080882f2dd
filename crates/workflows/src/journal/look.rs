//! Whether a text looks like a secret: the patterns of the seed (WF-19.7), each as a look at bytes.

use std::borrow::Cow;
use std::sync::LazyLock;

use orchestr8_kernel::redact::{REDACTED, Redactor};

/// Finds tokens, keys and card numbers by their look.
pub static REDACTOR: LazyLock<Redactor> = LazyLock::new(Redactor::default);

/// JWTs, card numbers, vendor keys and what else looks like a secret by itself.
pub fn is_secret(text: &str) -> bool {
    has_card_groups(text.as_bytes()) || matches!(REDACTOR.text(text), Cow::Owned(_))
}

/// The text without what looks like a secret.
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    let shown = REDACTOR.text(text);
    if !has_card_groups(shown.as_bytes()) {
        return shown;
    }
    let mut out = String::with_capacity(shown.len());
    let mut from = 0;
    while let Some((at, end)) = card_groups(shown.as_bytes(), from) {
        out.push_str(&shown[from..at]);
        out.push_str(REDACTED);
        from = end;
    }
    Cow::Owned(out + &shown[from..])
}

/// Words after which a secret may follow: `api[_-]?key`, `access[_-]?token`, `secret`, `password`, `auth`, `bearer`.
pub fn has_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().any(|(at, byte)| match byte {
        b'a' | b'A' => {
            let rest = &bytes[at..];
            begins(rest, b"auth") || joined(rest, b"api", b"key") || joined(rest, b"access", b"token")
        }
        b's' | b'S' => begins(&bytes[at..], b"secret"),
        b'p' | b'P' => begins(&bytes[at..], b"password"),
        b'b' | b'B' => begins(&bytes[at..], b"bearer"),
        _ => false,
    })
}

fn begins(text: &[u8], word: &[u8]) -> bool {
    text.len() >= word.len() && text[..word.len()].eq_ignore_ascii_case(word)
}

/// Both words, with nothing, `_` or `-` between.
fn joined(text: &[u8], first: &[u8], second: &[u8]) -> bool {
    if !begins(text, first) {
        return false;
    }
    let rest = &text[first.len()..];
    let rest = if matches!(rest.first(), Some(b'_' | b'-')) { &rest[1..] } else { rest };
    begins(rest, second)
}

/// `\b\d{4}[- ]?\d{4}[- ]?\d{4}[- ]?\d{4}\b`, whether or not the check digit is right.
fn has_card_groups(bytes: &[u8]) -> bool {
    card_groups(bytes, 0).is_some()
}

/// Where the next one begins and ends.
fn card_groups(bytes: &[u8], from: usize) -> Option<(usize, usize)> {
    let word = |at: usize| bytes.get(at).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let starts = (from..bytes.len()).filter(|at| bytes[*at].is_ascii_digit() && (*at == 0 || !word(at - 1)));
    starts.filter_map(|at| Some((at, card_end(bytes, at)?))).find(|(_, end)| !word(*end))
}

fn card_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    for group in 0..4 {
        if group > 0 && matches!(bytes.get(at), Some(b'-' | b' ')) {
            at += 1;
        }
        let digits = bytes.get(at..at + 4)?;
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        at += 4;
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_every_spelling() {
        for text in [
            "apikey",
            "my API-Key",
            "api_key=1",
            "ACCESS_TOKEN",
            "accesstoken",
            "a secret",
            "Password",
            "author",
            "BEARER x",
        ] {
            assert!(has_word(text), "{text}");
        }
        for text in ["", "api  key", "access to", "secre", "pass word", "bear", "completed", "step-1", "aut"]
        {
            assert!(!has_word(text), "{text}");
        }
    }

    #[test]
    fn cards_and_tokens_are_found_by_their_look() {
        for text in [
            "1234567812345678",
            "x 1234-5678-1234-5678.",
            "1234 5678 12345678",
            "eyJhbGciOiJI.eyJzdWIiOiIx.x",
        ] {
            assert!(is_secret(text), "{text}");
        }
        for text in [
            "123456781234567",
            "12345678123456789",
            "x1234567812345678",
            "1234--567812345678",
            "2026-01-01T00:00:00.000Z",
        ] {
            assert!(!is_secret(text), "{text}");
        }
        assert_eq!(
            without_secrets("card 1234-5678-1234-5678 and 1234567812345678 refused: 401 Unauthorized"),
            "card [REDACTED] and [REDACTED] refused: 401 Unauthorized"
        );
        let id = "3f2b8c1e-9a4d-4e5f-8a7b-0c1d2e3f4a5b";
        assert!(!is_secret(id) && !has_word(id));
    }
}
