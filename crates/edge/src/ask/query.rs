//! The parameters of a request target: known names only, each at most once, each checked.

use std::ops::RangeInclusive;

use http::Uri;
use jiff::Timestamp;

use super::Wrong;

/// The longest wait a client can ask for: below the idle limits of common proxies together with its answer.
pub const WAIT_LIMIT_MS: u64 = 60_000;

/// The parameters, read.
#[derive(Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads the target. A name that is not known is refused: it is a mistake the client should hear of.
    pub fn read(uri: &Uri, known: &[&str]) -> Result<Self, Wrong> {
        Self::read_with_lists(uri, known, &[])
    }

    /// The same with names that may be given several times, which must be known as well.
    pub fn read_with_lists(uri: &Uri, known: &[&str], lists: &[&str]) -> Result<Self, Wrong> {
        let Some(query) = uri.query() else { return Ok(Self::default()) };
        let pairs: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        for (place, (name, _)) in pairs.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                let names = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(Wrong::new(at(name), format!("there is no such parameter; known: {names}")));
            }
            if !lists.contains(&name.as_str()) && pairs[..place].iter().any(|(before, _)| before == name) {
                return Err(Wrong::new(at(name), "the parameter is given twice"));
            }
        }
        Ok(Self(pairs))
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// All values of a name that may be given several times.
    pub fn texts<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q str> {
        self.0.iter().filter(move |(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// A text of 1 to `limit` characters without control characters.
    pub fn bounded(&self, name: &str, limit: usize) -> Result<Option<&str>, Wrong> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let count = text.chars().count();
        if count == 0 || count > limit || text.chars().any(char::is_control) {
            return Err(Wrong::new(at(name), format!("must be 1 to {limit} printable characters")));
        }
        Ok(Some(text))
    }

    pub fn one_of<'a>(&self, name: &str, words: &[&'a str]) -> Result<Option<&'a str>, Wrong> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let found = words.iter().find(|word| **word == text).copied();
        match found {
            Some(word) => Ok(Some(word)),
            None => Err(Wrong::new(at(name), format!("must be one of {}", words.join(", ")))),
        }
    }

    pub fn number(&self, name: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, Wrong> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match digits(text).filter(|number| range.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => {
                let rule = format!("must be a whole number from {} to {}", range.start(), range.end());
                Err(Wrong::new(at(name), rule))
            }
        }
    }

    /// A moment in ISO 8601 with its offset.
    pub fn moment(&self, name: &str) -> Result<Option<&str>, Wrong> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match text.parse::<Timestamp>() {
            Ok(_) => Ok(Some(text)),
            Err(_) => Err(Wrong::new(at(name), "must be a time like 2026-01-01T00:00:00Z")),
        }
    }

    /// How long to wait: `10` or `10s` seconds, or `500ms`. More than the limit is the limit.
    pub fn wait_ms(&self, name: &str) -> Result<Option<u64>, Wrong> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let (number, factor) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
            (Some(number), _) => (number, 1),
            (None, Some(number)) => (number, 1000),
            (None, None) => (text, 1000),
        };
        match digits(number) {
            Some(number) => Ok(Some(number.saturating_mul(factor).min(WAIT_LIMIT_MS))),
            None => Err(Wrong::new(at(name), "must be seconds like 10 or 10s, or milliseconds like 500ms")),
        }
    }
}

fn at(name: &str) -> String {
    const SHOWN_CHARACTERS: usize = 64;
    let mut path = String::from("?");
    path.extend(name.chars().take(SHOWN_CHARACTERS));
    path
}

/// `parse` would also take a plus sign.
pub fn digits(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(target: &str) -> Result<Query, Wrong> {
        Query::read(&target.parse().unwrap(), &["a", "b"])
    }

    #[test]
    fn unknown_and_repeated_names_are_refused_by_name() {
        assert_eq!(read("/x?a=1&b=%C3%A9+c").unwrap().text("b"), Some("é c"));
        assert!(read("/x?").unwrap().text("a").is_none());
        assert_eq!(read("/x?c=1").unwrap_err().to_string(), "?c: there is no such parameter; known: a, b");
        assert_eq!(read("/x?a=1&a=1").unwrap_err().to_string(), "?a: the parameter is given twice");
        let lists = |target: &str| Query::read_with_lists(&target.parse().unwrap(), &["a", "b"], &["a"]);
        assert_eq!(lists("/x?a=2&b=0&a=1").unwrap().texts("a").collect::<Vec<_>>(), ["2", "1"]);
        assert_eq!(lists("/x?b=1&b=1").unwrap_err().to_string(), "?b: the parameter is given twice");
    }

    #[test]
    fn numbers_words_and_moments_are_checked() {
        let query = read("/x?a=17&b=2026-01-01T00:00:00%2B01:00").unwrap();
        assert_eq!(query.number("a", 1..=20).unwrap(), Some(17));
        assert!(query.number("a", 1..=16).is_err());
        assert!(query.moment("b").unwrap().is_some());
        assert!(query.moment("a").is_err());
        assert_eq!(query.one_of("a", &["16", "17"]).unwrap(), Some("17"));
        assert!(query.one_of("a", &["16"]).is_err());
        for wrong in ["+1", "", "1.0", "0x1", "99999999999999999999"] {
            assert!(read(&format!("/x?a={wrong}")).unwrap().number("a", 0..=u64::MAX).is_err(), "{wrong}");
        }
    }

    #[test]
    fn waits_are_seconds_or_milliseconds_and_capped() {
        for (text, ms) in [("10", 10_000), ("10s", 10_000), ("500ms", 500), ("0", 0), ("999", 60_000)] {
            assert_eq!(read(&format!("/x?a={text}")).unwrap().wait_ms("a").unwrap(), Some(ms), "{text}");
        }
        for wrong in ["", "s", "ms", "-1", "1.5", "1m"] {
            assert!(read(&format!("/x?a={wrong}")).unwrap().wait_ms("a").is_err(), "{wrong}");
        }
    }
}
