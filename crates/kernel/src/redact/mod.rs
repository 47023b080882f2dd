//! Keeps secrets out of what is written: by the name of a key, and by the look of a value.
//!
//! The rule for keys (seed 000, "Redaction"). A key is redacted when
//! 1. it equals a redact key, once both are lower case and without `-`, `_`, `.` and spaces: `apiKey`, `API_KEY`, `api-key`; or
//! 2. its last words are one of the `ENDINGS` that belong to a redact key: `x-api-key`, `access_token`, `clientSecret`,
//!    `DB_PASSWORD`. A word begins at the start, after a separator, or at a capital: `monkey` and `keyboard` are not keys.
//!
//! The redact keys `key` and `session` match as whole names only, since `idempotencyKey` or `agentSession` are no secrets
//! and people need them in a log; the endings name the compound forms of `key` that are secrets.
//!
//! Nothing here changes what it is given: a value without secrets comes back borrowed, another as a copy.

mod mask;
mod text;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use orchestr8_contract::limits;
use orchestr8_contract::visible::{is_hidden, push_json_escape};
use parking_lot::RwLock;
use serde_json::{Map, Number, Value};
use std::sync::Arc;

pub use mask::{MASKED_BYTES, SecretMask};

/// What stands in the place of a secret.
pub const REDACTED: &str = "[REDACTED]";

/// The redact keys of the seed.
pub const DEFAULT_KEYS: [&str; 9] =
    ["token", "key", "secret", "password", "apiKey", "authorization", "bearer", "session", "cookie"];

/// Last words that make a longer name a secret, each with the redact key that switches it on.
const ENDINGS: [(&str, &str); 17] = [
    ("token", "token"),
    ("secret", "secret"),
    ("secrets", "secret"),
    ("password", "password"),
    ("passwords", "password"),
    ("apikey", "apikey"),
    ("apikeys", "apikey"),
    ("authkey", "key"),
    ("accesskey", "key"),
    ("secretkey", "key"),
    ("privatekey", "key"),
    ("signingkey", "key"),
    ("encryptionkey", "key"),
    ("authorization", "authorization"),
    ("bearer", "bearer"),
    ("cookie", "cookie"),
    ("cookies", "cookie"),
];

/// Knows the keys to redact. Cheap to ask; share it behind an `Arc`.
#[derive(Debug, Clone)]
pub struct Redactor {
    /// Plain forms, compared with whole names.
    keys: Vec<String>,
    /// Plain forms, compared with last words.
    endings: Vec<&'static str>,
    /// The last letters of all of them, so that most names are let go after one look.
    last_letters: u128,
    /// The values of the secrets that this process holds. Clones share them.
    live: Arc<RwLock<SecretMask>>,
}

impl Default for Redactor {
    fn default() -> Self {
        Self::new(DEFAULT_KEYS)
    }
}

impl Redactor {
    /// With these redact keys instead of the default ones. A key of one's own matches as a whole name.
    pub fn new<K: AsRef<str>>(keys: impl IntoIterator<Item = K>) -> Self {
        let keys: Vec<String> =
            keys.into_iter().map(|key| plain(key.as_ref())).filter(|key| !key.is_empty()).collect();
        let endings: Vec<&'static str> = ENDINGS
            .iter()
            .filter(|(_, key)| keys.iter().any(|own| own == key))
            .map(|(ending, _)| *ending)
            .collect();
        let last_letters =
            keys.iter().map(String::as_str).chain(endings.iter().copied()).fold(0, |set, key| {
                // A letter beyond ASCII cannot be kept in the set, so then every letter is in it.
                set | key
                    .chars()
                    .next_back()
                    .map_or(0, |c| if c.is_ascii() { 1 << u32::from(c) } else { u128::MAX })
            });
        Self { keys, endings, last_letters, live: Arc::default() }
    }

    /// Masks these values from now on, wherever they turn up, instead of those before.
    pub fn set_secrets(&self, mask: SecretMask) {
        *self.live.write() = mask;
    }

    /// Whether the value under this key is a secret.
    pub fn is_secret(&self, key: &str) -> bool {
        let Some(last) = key.chars().rev().find(|c| !is_separator(*c)) else { return false };
        if last.is_ascii() && self.last_letters & (1 << u32::from(last.to_ascii_lowercase())) == 0 {
            return false;
        }
        self.keys.iter().any(|own| start_of_ending(key, own).is_some_and(|at| is_start(key, at)))
            || self.ends_in_secret(key)
    }

    /// Whether the last words of this key, which may be all of it, make its value a secret.
    fn ends_in_secret(&self, key: &str) -> bool {
        self.endings.iter().any(|ending| start_of_ending(key, ending).is_some_and(|at| begins_word(key, at)))
    }

    /// The value with everything under a redact key replaced (seed 000, `redact`).
    pub fn keys<'v>(&self, value: &'v Value) -> Cow<'v, Value> {
        self.changed(value, false, 0).map_or(Cow::Borrowed(value), Cow::Owned)
    }

    /// The value with everything under a redact key replaced, and every text without what looks like a secret.
    pub fn value<'v>(&self, value: &'v Value) -> Cow<'v, Value> {
        self.changed(value, true, 0).map_or(Cow::Borrowed(value), Cow::Owned)
    }

    /// The text without what looks like a secret: bearer tokens, JWTs, vendor keys, PEM blocks, card numbers, passwords in
    /// addresses, and `password=…` or `"password":"…"` by the rule for keys. Takes time in proportion to the text.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.live.read().text(text) {
            Cow::Borrowed(text) => text::redact(self, text),
            Cow::Owned(masked) => Cow::Owned(text::redact(self, &masked).into_owned()),
        }
    }

    /// The redacted copy, or nothing when there is nothing to redact. Copies each part at most once.
    fn changed(&self, value: &Value, texts: bool, depth: usize) -> Option<Value> {
        match value {
            Value::Null | Value::Bool(_) => None,
            Value::Number(number) => (texts && is_card_number(number)).then(|| REDACTED.into()),
            Value::String(text) => texts.then(|| self.changed_text(text)).flatten(),
            // What is too deep to look at might hold anything.
            Value::Array(_) | Value::Object(_) if depth >= limits::JSON_DEPTH => Some(REDACTED.into()),
            Value::Array(items) => self.changed_items(items, texts, depth),
            Value::Object(map) => self.changed_map(map, texts, depth),
        }
    }

    fn changed_text(&self, text: &str) -> Option<Value> {
        match self.text(text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(text) => Some(Value::String(text)),
        }
    }

    fn changed_items(&self, items: &[Value], texts: bool, depth: usize) -> Option<Value> {
        let mut copy: Option<Vec<Value>> = None;
        for (index, item) in items.iter().enumerate() {
            match (&mut copy, self.changed(item, texts, depth + 1)) {
                (None, None) => {}
                (None, Some(new)) => {
                    let mut items = items[..index].to_vec();
                    items.push(new);
                    copy = Some(items);
                }
                (Some(copy), new) => copy.push(new.unwrap_or_else(|| item.clone())),
            }
        }
        copy.map(Value::Array)
    }

    fn changed_map(&self, map: &Map<String, Value>, texts: bool, depth: usize) -> Option<Value> {
        let mut copy: Option<Map<String, Value>> = None;
        for (index, (key, value)) in map.iter().enumerate() {
            let new_value = if self.is_secret(key) {
                (value.as_str() != Some(REDACTED)).then(|| REDACTED.into())
            } else {
                self.changed(value, texts, depth + 1)
            };
            let new_key = if texts { self.text(key) } else { Cow::Borrowed(key.as_str()) };
            if copy.is_none() && new_value.is_none() && matches!(new_key, Cow::Borrowed(_)) {
                continue;
            }
            let copy = copy.get_or_insert_with(|| {
                map.iter().take(index).map(|(key, value)| (key.clone(), value.clone())).collect()
            });
            copy.insert(new_key.into_owned(), new_value.unwrap_or_else(|| value.clone()));
        }
        copy.map(Value::Object)
    }
}

/// Writes hidden characters as unicode escapes, so that one entry stays one line, no terminal obeys it and no reader is misled
/// (seed 000, "Sanitization"). For logs only; which characters these are is said in `contract::visible`.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find(is_hidden) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    for c in text[first..].chars() {
        if is_hidden(c) { push_json_escape(&mut out, c) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// Whether a JSON number is a card number.
pub(crate) fn is_card_number(number: &Number) -> bool {
    number.as_u64().is_some_and(|number| number >= text::SMALLEST_CARD && text::is_card(&number.to_string()))
}

/// The form in which keys are compared.
fn plain(key: &str) -> String {
    key.chars().filter(|c| !is_separator(*c)).map(|c| c.to_ascii_lowercase()).collect()
}

fn is_separator(c: char) -> bool {
    matches!(c, '-' | '_' | '.' | ' ')
}

/// Where in the key the ending begins, if the key ends so in its plain form.
fn start_of_ending(key: &str, ending: &str) -> Option<usize> {
    let mut letters = key.char_indices().rev().filter(|(_, c)| !is_separator(*c));
    let mut start = key.len();
    for wanted in ending.chars().rev() {
        let (at, found) = letters.next()?;
        if found.to_ascii_lowercase() != wanted {
            return None;
        }
        start = at;
    }
    Some(start)
}

fn is_start(key: &str, at: usize) -> bool {
    key[..at].chars().all(is_separator)
}

fn begins_word(key: &str, at: usize) -> bool {
    let Some(before) = key[..at].chars().next_back() else { return true };
    let mut rest = key[at..].chars();
    let first = rest.next().unwrap_or(' ');
    if !before.is_alphanumeric() || (first.is_uppercase() && !before.is_uppercase()) {
        return true;
    }
    // A capital after capitals begins a word when a small letter follows: `JWTToken`.
    first.is_uppercase() && rest.next().is_some_and(char::is_lowercase)
}
