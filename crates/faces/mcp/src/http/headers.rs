//! What the headers of a request say: era, session, media types, key.

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName};
use orchestr8_contract::id::{CorrelationId, Key};

use crate::era::{MODERN, Revision};
use crate::face::Eras;

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub(super) const NAME: HeaderName = HeaderName::from_static("mcp-name");
pub(super) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
pub(super) const ADMIN_TOKEN: HeaderName = HeaderName::from_static("x-admin-token");
pub(super) const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The longest key a header may carry.
const KEY_BYTES: usize = 255;

/// The two media types, as the clients of the official libraries name them.
const USUAL_ACCEPT: &str = "application/json, text/event-stream";

/// A header that is there more than once or holds more than visible ASCII and blanks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

/// The one value of a header, without the white space around it.
pub(super) fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Unreadable> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(|text| Some(text.trim_ascii())).map_err(|_| Unreadable),
        (Some(_), Some(_)) => Err(Unreadable),
    }
}

/// What the version header makes of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Era<'a> {
    Legacy,
    Modern,
    /// A revision that is not spoken here.
    Unsupported(&'a str),
}

/// The era of a request, by its version header. Without one it is of the legacy era, if that is spoken; modern metadata in
/// the body is then found to have no header beside it.
pub(super) fn era<'a>(headers: &'a HeaderMap, eras: Eras) -> Result<Era<'a>, Unreadable> {
    let Some(version) = one(headers, &VERSION)? else {
        return Ok(if eras.legacy { Era::Legacy } else { Era::Modern });
    };
    let is_legacy = || Revision::ALL.iter().any(|revision| revision.as_str() == version);
    Ok(match version {
        // Revisions are dates, so newer ones are greater. The face says which of them it speaks.
        _ if version >= MODERN && eras.modern => Era::Modern,
        _ if version < MODERN && eras.legacy && is_legacy() => Era::Legacy,
        _ => Era::Unsupported(version),
    })
}

/// The revisions spoken here, newest first.
pub(super) fn spoken(eras: Eras) -> Vec<&'static str> {
    let modern = eras.modern.then_some(MODERN);
    let legacy = Revision::ALL.iter().rev().filter(|_| eras.legacy).map(|revision| revision.as_str());
    modern.into_iter().chain(legacy).collect()
}

/// Which answers a client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accepts {
    pub json: bool,
    pub events: bool,
}

/// No Accept header means anything.
pub(super) fn accepts(headers: &HeaderMap) -> Accepts {
    let mut values = headers.get_all(ACCEPT).iter().peekable();
    if values.peek().is_none() {
        return Accepts { json: true, events: true };
    }
    // What nearly every client says, word for word.
    if values.peek().is_some_and(|value| *value == USUAL_ACCEPT) {
        return Accepts { json: true, events: true };
    }
    let mut accepts = Accepts { json: false, events: false };
    for range in values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')) {
        let mut parts = range.split(';');
        let media = parts.next().unwrap_or_default().trim_ascii();
        if parts.any(is_never) {
            continue;
        }
        let is = |name: &str| media.eq_ignore_ascii_case(name);
        let any = is("*/*");
        accepts.json |= any || is("application/json") || is("application/*");
        accepts.events |= any || is("text/event-stream") || is("text/*");
    }
    accepts
}

/// `q=0` takes a media type out.
fn is_never(parameter: &str) -> bool {
    let parameter = parameter.trim_ascii();
    let weight = parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="));
    weight.is_some_and(|weight| weight.parse::<f32>() == Ok(0.0))
}

/// Whether the body says that it is JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let Ok(Some(value)) = one(headers, &CONTENT_TYPE) else { return false };
    let media = value.split(';').next().unwrap_or_default();
    media.trim_ascii().eq_ignore_ascii_case("application/json")
}

/// The key that makes repeats of this request recognisable. An error says what a key looks like.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<Key>, Unreadable> {
    let Some(text) = one(headers, &IDEMPOTENCY_KEY)? else { return Ok(None) };
    let fits = text.len() <= KEY_BYTES
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    match fits.then(|| Key::parse(text)) {
        Some(Ok(key)) => Ok(Some(key)),
        Some(Err(_)) | None => Err(Unreadable),
    }
}

/// The client's own id for this request, if it is fit to be one.
pub(super) fn correlation(headers: &HeaderMap) -> Option<CorrelationId> {
    let value = headers.get(&orchestr8_edge::CORRELATION)?.to_str().ok()?;
    CorrelationId::parse(value.trim_ascii()).ok()
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

    const BOTH: Eras = Eras { legacy: true, modern: true };
    const LEGACY: Eras = Eras { legacy: true, modern: false };
    const MODERN_ONLY: Eras = Eras { legacy: false, modern: true };

    #[test]
    fn the_version_header_decides_the_era() {
        let of = |version: &str, eras| {
            era(&headers(&[("mcp-protocol-version", version)]), eras).map(|era| format!("{era:?}"))
        };
        for version in ["2024-11-05", "2025-03-26", "2025-06-18", " 2025-11-25 "] {
            assert_eq!(of(version, BOTH).unwrap(), "Legacy");
        }
        for version in ["2026-07-28", "2027-01-01", "v999.0.0"] {
            assert_eq!(of(version, BOTH).unwrap(), "Modern");
            assert_eq!(of(version, LEGACY).unwrap(), format!("Unsupported({version:?})"));
        }
        for version in ["1999-01-01", "2025-12-31", "", "1"] {
            assert_eq!(of(version, BOTH).unwrap(), format!("Unsupported({version:?})"));
        }
        assert_eq!(of("2025-11-25", MODERN_ONLY).unwrap(), "Unsupported(\"2025-11-25\")");
        assert_eq!(era(&HeaderMap::new(), BOTH), Ok(Era::Legacy));
        assert_eq!(era(&HeaderMap::new(), MODERN_ONLY), Ok(Era::Modern));
        let twice =
            headers(&[("mcp-protocol-version", "2025-11-25"), ("mcp-protocol-version", "2026-07-28")]);
        assert_eq!(era(&twice, BOTH), Err(Unreadable));
    }

    #[test]
    fn accept_takes_lists_wildcards_and_weights() {
        let of = |value: &str| {
            let accepts = accepts(&headers(&[("accept", value)]));
            (accepts.json, accepts.events)
        };
        assert_eq!(of("application/json, text/event-stream"), (true, true));
        assert_eq!(of("text/event-stream;q=0.9,Application/JSON;charset=utf-8"), (true, true));
        assert_eq!(of("*/*"), (true, true));
        assert_eq!(of("application/*, text/*"), (true, true));
        assert_eq!(of("application/json"), (true, false));
        assert_eq!(of("text/event-stream"), (false, true));
        assert_eq!(of("*/*;q=0"), (false, false));
        assert_eq!(of("text/html"), (false, false));
        assert_eq!(of(""), (false, false));
        let two = accepts(&headers(&[("accept", "application/json"), ("accept", "text/event-stream")]));
        assert_eq!(two, Accepts { json: true, events: true });
        assert_eq!(accepts(&HeaderMap::new()), Accepts { json: true, events: true });
    }

    #[test]
    fn only_json_is_json() {
        for (value, json) in [
            ("application/json", true),
            ("Application/Json; charset=utf-8", true),
            ("application/jsonx", false),
            ("text/plain", false),
            ("", false),
        ] {
            assert_eq!(is_json(&headers(&[("content-type", value)])), json, "{value}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }

    #[test]
    fn a_key_has_the_characters_of_a_key() {
        let of =
            |value: &str| idempotency_key(&headers(&[("idempotency-key", value)])).map(|key| key.is_some());
        assert_eq!(of("order_42-A"), Ok(true));
        assert_eq!(of(&"x".repeat(255)), Ok(true));
        for wrong in ["", "two words", "a/b", &"x".repeat(256), "é"] {
            assert_eq!(of(wrong), Err(Unreadable), "{wrong}");
        }
        assert_eq!(idempotency_key(&HeaderMap::new()), Ok(None));
    }
}
