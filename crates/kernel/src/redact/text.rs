//! Finds secrets in running text by how they look, in one pass.
//!
//! Each look begins at the start of a word and reads on over a bounded stretch or to the end of what it takes away, so the
//! time is in proportion to the text whatever the text is.

use std::borrow::Cow;
use std::ops::Range;

use super::{REDACTED, Redactor};

/// No card number is smaller: the shortest ones have thirteen digits and begin with a four.
pub const SMALLEST_CARD: u64 = 4_000_000_000_000;

/// Beginnings of keys that vendors hand out, each with how many characters must follow at least.
const PREFIXES: [(&str, usize); 24] = [
    ("sk-", 20),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("rk_test_", 16),
    ("whsec_", 16),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("xoxa-", 16),
    ("xoxr-", 16),
    ("xoxs-", 16),
    ("AIza", 30),
    ("npm_", 30),
    ("hf_", 30),
    ("dop_v1_", 30),
    ("pypi-", 30),
    ("ya29", 30),
];

/// The shortest of those keys; most words are shorter.
const VENDOR_KEY_BYTES: usize = 21;

/// A name before `=` longer than this is not looked at: no key of ours or of others is.
const NAME_BYTES: usize = 64;

/// Nineteen digits and the separators between their groups.
const CARD_BYTES: usize = 24;

/// A quote behind more backslashes than JSON inside JSON inside JSON has is not taken for one.
const BACKSLASHES: usize = 7;

/// Headers whose whole line is a secret when they turn up in a text.
const HEADERS: [&str; 5] = ["authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"];

/// The text without what looks like a secret.
pub fn redact<'t>(redactor: &Redactor, text: &'t str) -> Cow<'t, str> {
    let scan = Scan { redactor, bytes: text.as_bytes(), text };
    let mut out = String::new();
    let (mut kept, mut at) = (0, 0);
    while at < text.len() {
        match scan.look(at) {
            Found::Secret(range) => {
                if &text[range.clone()] != REDACTED {
                    out.push_str(&text[kept..range.start]);
                    out.push_str(REDACTED);
                    kept = range.end;
                }
                at = range.end;
            }
            Found::Nothing { next } => at = next,
        }
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[kept..]);
    Cow::Owned(out)
}

/// Whether the digits are a card number: a known beginning, a length that goes with it, and a right check digit (Luhn).
pub fn is_card(digits: &str) -> bool {
    let known = match (digits.bytes().next(), digits.len()) {
        (Some(b'4'), 13 | 16 | 19)
        | (Some(b'2' | b'5'), 16)
        | (Some(b'3'), 14..=16)
        | (Some(b'6'), 16..=19) => true,
        (Some(_) | None, _) => false,
    };
    known && luhn(digits)
}

fn luhn(digits: &str) -> bool {
    let sum: u32 = (digits.bytes().rev().enumerate())
        .map(|(place, digit)| {
            let digit = u32::from(digit - b'0');
            if place % 2 == 0 {
                digit
            } else if digit > 4 {
                digit * 2 - 9
            } else {
                digit * 2
            }
        })
        .sum();
    sum.is_multiple_of(10)
}

enum Found {
    Secret(Range<usize>),
    Nothing { next: usize },
}

struct Scan<'s> {
    redactor: &'s Redactor,
    bytes: &'s [u8],
    text: &'s str,
}

impl Scan<'_> {
    /// Looks for a secret in the word that begins here, or goes on to where the next word may begin.
    fn look(&self, at: usize) -> Found {
        if self.bytes[at..].starts_with(b"://") {
            return self.password_of_address(at + 3).map_or(Found::Nothing { next: at + 3 }, Found::Secret);
        }
        if !is_word(self.bytes[at]) {
            return Found::Nothing { next: at + 1 };
        }
        let end = self.run_end(at, is_word);
        self.secret_in_word(at..end).map_or(Found::Nothing { next: end }, Found::Secret)
    }

    fn secret_in_word(&self, word: Range<usize>) -> Option<Range<usize>> {
        let bytes = &self.bytes[word.clone()];
        let found = if bytes.ends_with(b"-----BEGIN") {
            return Some(word.end - "-----BEGIN".len()..self.pem_end(word.end));
        } else if bytes[0].is_ascii_digit() {
            self.card_end(word.start).map(|end| word.start..end)
        } else if bytes.starts_with(b"eyJ") {
            self.jwt_end(word.clone()).map(|end| word.start..end)
        } else if is_vendor_key(bytes) || is_aws_key(bytes) {
            return Some(word);
        } else if bytes.eq_ignore_ascii_case(b"bearer") || bytes.eq_ignore_ascii_case(b"basic") {
            self.token_after(word.end)
        } else {
            None
        };
        found.or_else(|| self.assigned(word))
    }

    /// To the end of the block, or of the text when the block was cut off.
    fn pem_end(&self, start: usize) -> usize {
        let Some(end) = self.text[start..].find("-----END ") else { return self.text.len() };
        let after = start + end + "-----END ".len();
        match self.text[after..].find("-----") {
            Some(dashes) if dashes <= NAME_BYTES => after + dashes + "-----".len(),
            Some(_) | None => after,
        }
    }

    /// `user:password@` after `://`.
    fn password_of_address(&self, start: usize) -> Option<Range<usize>> {
        let end = self.run_end(start, |byte| {
            !is_blank(byte) && !matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'\\')
        });
        let at = start + self.bytes[start..end].iter().rposition(|byte| *byte == b'@')?;
        let colon = start + self.bytes[start..at].iter().position(|byte| *byte == b':')?;
        (colon + 1 < at).then_some(colon + 1..at)
    }

    /// Two parts or more with dots between, the first the base64 of `{"`.
    fn jwt_end(&self, first: Range<usize>) -> Option<usize> {
        let mut end = first.end;
        // Asked first, or a long row of short parts would be read again from each of them.
        while first.len() >= 10 && self.bytes.get(end) == Some(&b'.') && self.is_word_at(end + 1) {
            end = self.run_end(end + 1, is_word);
        }
        (end > first.end).then_some(end)
    }

    /// Thirteen to nineteen digits, in one piece or in groups as on a card, and nothing else attached to them.
    fn card_end(&self, start: usize) -> Option<usize> {
        let before = start.checked_sub(1).and_then(|at| self.bytes.get(at));
        let first = self.run_end(start, |byte| byte.is_ascii_digit()) - start;
        if before == Some(&b'.') || !matches!(first, 4 | 13..=19) {
            return None;
        }
        let mut digits = String::new();
        let mut groups: Vec<usize> = Vec::new();
        let mut at = start;
        let mut best = None;
        while at < start + CARD_BYTES {
            let end = self.run_end(at, |byte| byte.is_ascii_digit()).min(start + CARD_BYTES);
            digits.push_str(&self.text[at..end]);
            groups.push(end - at);
            let fraction = self.bytes.get(end) == Some(&b'.') && self.is_digit_at(end + 1);
            if !self.is_word_at(end) && !fraction && is_grouping(&groups) && is_card(&digits) {
                best = Some(end);
            }
            let separator = self.bytes.get(start + first);
            let goes_on = matches!(separator, Some(b' ' | b'-')) && self.bytes.get(end) == separator;
            if !goes_on || !self.is_digit_at(end + 1) {
                break;
            }
            at = end + 1;
        }
        best
    }

    /// What follows `Bearer` or `Basic`, when it does not read like a word.
    fn token_after(&self, start: usize) -> Option<Range<usize>> {
        let begin = self.run_end(start, |byte| byte == b' ');
        if begin == start || begin > start + 2 {
            return None;
        }
        let end =
            self.run_end(begin, |byte| is_word(byte) || matches!(byte, b'.' | b'~' | b'+' | b'/' | b'='));
        let token = &self.bytes[begin..end];
        let mixed = token.windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
        let random = mixed || token.iter().any(u8::is_ascii_digit) || token.len() >= 20;
        (token.len() >= 8 && random).then_some(begin..end)
    }

    /// The value of `name=value` and `"name":"value"` under a redact key, and the rest of a header's line.
    fn assigned(&self, word: Range<usize>) -> Option<Range<usize>> {
        let sign = *self.bytes.get(word.end)?;
        let name = &self.text[word.clone()];
        if name.len() > NAME_BYTES || !matches!(sign, b'=' | b':' | b'"' | b'\\') {
            return None;
        }
        if sign == b':' {
            return self.rest_of_header(name, word.end + 1);
        }
        if !self.redactor.is_secret(name) {
            return None;
        }
        if sign == b'=' {
            return self.quoted_or_not(word.end + 1);
        }
        // The text is itself JSON, or JSON inside a text of JSON.
        let colon = self.run_end(word.end, |byte| matches!(byte, b'\\' | b'"' | b' '));
        if self.bytes.get(colon) != Some(&b':') {
            return None;
        }
        self.quoted_or_not(self.run_end(colon + 1, |byte| byte == b' '))
    }

    fn rest_of_header(&self, name: &str, start: usize) -> Option<Range<usize>> {
        if !HEADERS.iter().any(|header| header.eq_ignore_ascii_case(name)) {
            return None;
        }
        let begin = self.run_end(start, |byte| byte == b' ');
        let end = self.run_end(begin, |byte| !matches!(byte, b'\n' | b'\r' | b'"' | b'\''));
        (end > begin).then_some(begin..end)
    }

    /// The value that begins here, within its quotes when it has some.
    fn quoted_or_not(&self, start: usize) -> Option<Range<usize>> {
        let quote = self.run_end(start, |byte| byte == b'\\');
        if quote - start > BACKSLASHES || !matches!(self.bytes.get(quote), Some(b'"' | b'\'')) {
            let end = self
                .run_end(start, |byte| !is_blank(byte) && !matches!(byte, b',' | b';' | b'&' | b'"' | b'\''));
            return (end > start).then_some(start..end);
        }
        let begin = quote + 1;
        let opening = &self.bytes[start..begin];
        // A quote behind a backslash belongs to the value; one that never comes was cut off.
        let end = (begin..self.bytes.len())
            .find(|at| self.bytes[*at..].starts_with(opening) && self.bytes[at - 1] != b'\\')
            .unwrap_or(self.bytes.len());
        (end > begin).then_some(begin..end)
    }

    fn is_word_at(&self, at: usize) -> bool {
        self.bytes.get(at).copied().is_some_and(is_word)
    }

    fn is_digit_at(&self, at: usize) -> bool {
        self.bytes.get(at).is_some_and(u8::is_ascii_digit)
    }

    /// Where the bytes stop being of the kind.
    fn run_end(&self, start: usize, kind: impl Fn(u8) -> bool) -> usize {
        let end = self.bytes[start..]
            .iter()
            .position(|byte| !kind(*byte))
            .map_or(self.bytes.len(), |length| start + length);
        #[cfg(test)]
        super::tests::BYTES_READ.with(|read| read.set(read.get() + end - start));
        end
    }
}

/// What words, keys and base64url are made of.
fn is_word(byte: u8) -> bool {
    WORD[usize::from(byte)]
}

/// Looked up rather than computed: every byte that is searched is asked about.
const WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        table[byte as usize] = byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        byte += 1;
    }
    table
};

fn is_blank(byte: u8) -> bool {
    byte <= b' '
}

/// One piece, or the groups in which cards print their number.
fn is_grouping(groups: &[usize]) -> bool {
    match groups {
        [_] | [4, 6, 4 | 5] | [4, 4, 4, 1..=4] | [4, 4, 4, 4, 1..=3] => true,
        [..] => false,
    }
}

fn is_vendor_key(word: &[u8]) -> bool {
    let begins_so = |(prefix, length): &(&str, usize)| {
        word.len() >= prefix.len() + length && word.starts_with(prefix.as_bytes())
    };
    word.len() >= VENDOR_KEY_BYTES && PREFIXES.iter().any(begins_so) && word.iter().any(u8::is_ascii_digit)
}

fn is_aws_key(word: &[u8]) -> bool {
    word.len() == 20
        && (word.starts_with(b"AKIA") || word.starts_with(b"ASIA"))
        && word.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}
