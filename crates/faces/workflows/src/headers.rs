//! What the headers of a request say.

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName};
use orchestr8_contract::id::Key;
use orchestr8_edge::ask::one;

use crate::failure::Failure;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
pub(crate) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// The longest key a header may carry (ADR-003).
const KEY_BYTES: usize = 255;

/// What a body says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    Json,
    Form,
    /// A form of workflows that is not taken (ADR-002).
    XmlOrYaml,
    Other,
    Unsaid,
}

/// The key that makes repeats of a request recognisable: `^[A-Za-z0-9_-]{1,255}$` (ADR-003).
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<Key>, Failure> {
    let Some(text) = one(headers, &IDEMPOTENCY_KEY)? else { return Ok(None) };
    let fits = text.len() <= KEY_BYTES
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    match fits.then(|| Key::parse(text)) {
        Some(Ok(key)) => Ok(Some(key)),
        Some(Err(_)) | None => {
            Err(Failure::invalid("Idempotency-Key", "must be 1 to 255 of A-Z a-z 0-9 _ -"))
        }
    }
}

pub(crate) fn media(headers: &HeaderMap) -> Media {
    let Some(value) = headers.get(CONTENT_TYPE) else { return Media::Unsaid };
    let Ok(value) = value.to_str() else { return Media::Other };
    let media = value.split(';').next().unwrap_or_default().trim_ascii();
    if media.eq_ignore_ascii_case("application/json") {
        return Media::Json;
    }
    let media = media.to_ascii_lowercase();
    match media.as_str() {
        "application/x-www-form-urlencoded" => Media::Form,
        _ if media.contains("xml") || media.contains("yaml") => Media::XmlOrYaml,
        _ => Media::Other,
    }
}

/// Whether the client would rather see a page than JSON: it names HTML, as browsers do and programs do not.
pub(crate) fn wants_page(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|range| {
        let media = range.split(';').next().unwrap_or_default().trim_ascii();
        media.eq_ignore_ascii_case("text/html")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        headers
    }

    #[test]
    fn a_key_has_the_characters_of_a_key() {
        let of =
            |value: &str| idempotency_key(&headers(&[("idempotency-key", value)])).map(|key| key.is_some());
        assert!(of("order_42-A").unwrap());
        assert!(of(&"x".repeat(255)).unwrap());
        for wrong in ["", "two words", "a/b", "a.b", &"x".repeat(256), "é"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
        assert!(idempotency_key(&HeaderMap::new()).unwrap().is_none());
        let twice = headers(&[("idempotency-key", "a"), ("idempotency-key", "b")]);
        assert!(idempotency_key(&twice).is_err());
    }

    #[test]
    fn bodies_say_what_they_are() {
        for (value, found) in [
            ("application/json", Media::Json),
            ("Application/JSON; charset=utf-8", Media::Json),
            ("application/x-www-form-urlencoded", Media::Form),
            ("application/xml", Media::XmlOrYaml),
            ("text/x-yaml", Media::XmlOrYaml),
            ("text/plain", Media::Other),
            ("application/jsonx", Media::Other),
        ] {
            assert_eq!(media(&headers(&[("content-type", value)])), found, "{value}");
        }
        assert_eq!(media(&HeaderMap::new()), Media::Unsaid);
    }

    #[test]
    fn only_who_names_html_wants_a_page() {
        assert!(wants_page(&headers(&[("accept", "text/html,application/xhtml+xml;q=0.9")])));
        assert!(!wants_page(&headers(&[("accept", "*/*")])));
        assert!(!wants_page(&HeaderMap::new()));
    }
}
