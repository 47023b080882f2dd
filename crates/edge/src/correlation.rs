//! The id by which a person finds one refusal in the log (MCP-CORR-2), and the trace a request is a part of.

use http::{HeaderMap, HeaderName, HeaderValue};
use orchestr8_contract::TraceParent;
use orchestr8_contract::trace::TRACEPARENT;
use orchestr8_kernel::ports::ids::{For, Ids};

pub const CORRELATION: HeaderName = HeaderName::from_static("x-correlation-id");

/// The trace a request is a part of. What is not well formed, or said twice, is ignored, as the standard has it.
pub fn trace(headers: &HeaderMap) -> Option<TraceParent> {
    let mut values = headers.get_all(TRACEPARENT).iter();
    let (only, None) = (values.next()?, values.next()) else { return None };
    TraceParent::parse(only.to_str().ok()?.trim_ascii())
}

/// Long enough for every id scheme in use, short enough for a log line.
const LENGTH_LIMIT: usize = 128;

/// The client's own id, if it is fit to be logged and echoed.
pub(crate) fn given(headers: &HeaderMap) -> Option<HeaderValue> {
    let value = headers.get(&CORRELATION)?;
    let fit = (1..=LENGTH_LIMIT).contains(&value.len()) && value.as_bytes().iter().all(u8::is_ascii_graphic);
    fit.then(|| value.clone())
}

pub(crate) fn fresh(ids: &dyn Ids) -> HeaderValue {
    let text = ids.fresh(For::Correlation).to_string();
    // A UUID is always a valid header value; the fallback only spares a panic path.
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("unknown"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestr8_kernel::ports::ids::Counted;

    #[test]
    fn only_short_visible_ascii_is_echoed() {
        let long = "x".repeat(129);
        let limit = "x".repeat(128);
        let cases: [(&[u8], bool); 6] = [
            (b"req-1", true),
            (limit.as_bytes(), true),
            (long.as_bytes(), false),
            (b"", false),
            (b"two words", false),
            (b"caf\xc3\xa9", false),
        ];
        for (value, fit) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(CORRELATION, HeaderValue::from_bytes(value).unwrap());
            assert_eq!(given(&headers).is_some(), fit, "{}", value.escape_ascii());
        }
        assert!(given(&HeaderMap::new()).is_none());
    }

    #[test]
    fn a_trace_is_read_from_the_one_header_there_is() {
        const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let mut headers = HeaderMap::new();
        assert_eq!(trace(&headers), None);
        headers.append(TRACEPARENT, HeaderValue::from_static(GOOD));
        assert_eq!(trace(&headers).unwrap().to_string(), GOOD);
        headers.append(TRACEPARENT, HeaderValue::from_static(GOOD));
        assert_eq!(trace(&headers), None, "two say nothing");
        headers.insert(TRACEPARENT, HeaderValue::from_static("00-x"));
        assert_eq!(trace(&headers), None);
    }

    #[test]
    fn a_fresh_id_comes_from_the_port() {
        assert_eq!(fresh(&Counted::default()), "00000001-0000-4000-8000-000000000001");
    }
}
