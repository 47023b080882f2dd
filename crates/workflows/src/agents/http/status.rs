//! What a status means for a step: whether it worked, whether to try again, and whether it speaks against the server.
//!
//! The contract: timeouts, 5xx and the network count for the breaker; 429 is tried again and does not count; any other
//! 4xx is neither tried again nor counted. The kernel decides by the kind of a code, so the right code is chosen here.

use std::borrow::Cow;

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::redact::{REDACTED, SecretMask};
use orchestr8_kernel::resilience::retry::{RETRY_AFTER_MS, parse_retry_after};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Response, StatusCode};

use super::body;
use crate::limits::{REFUSAL_READ_BYTES, REFUSAL_SHOWN_BYTES};

/// The response, if its status is 2xx.
pub async fn accept(
    response: Response,
    what: &str,
    now_ms: i64,
    secrets: &[String],
    mask: &SecretMask,
) -> Result<Response, Fault> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let after_ms = retry_after_ms(response.headers(), now_ms);
    let beginning = body::beginning(response, REFUSAL_READ_BYTES).await;
    let text = String::from_utf8_lossy(&beginning);
    // Masked before it is cut, so that no half of a secret is left at the cut.
    let text = without(&mask.text(&text), secrets);
    Err(refusal(status, what, after_ms).with("body", shorten(&text, REFUSAL_SHOWN_BYTES)))
}

/// The fault for a status that is not 2xx.
pub fn refusal(status: StatusCode, what: &str, after_ms: Option<u64>) -> Fault {
    let hint = if status.is_redirection() { "; redirects are not followed" } else { "" };
    let fault =
        Fault::new(code(status), format!("{what} answered {status}{hint}")).with("status", status.as_u16());
    match after_ms {
        Some(ms) => fault.with(RETRY_AFTER_MS, ms),
        None => fault,
    }
}

fn code(status: StatusCode) -> Code {
    match status.as_u16() {
        408 | 504 => Code::Timeout,
        429 => Code::ResourceExhausted,
        401 | 403 | 407 => Code::Unauthorized,
        404 | 410 => Code::NotFound,
        500..=599 => Code::Unavailable,
        _ => Code::InvalidArgument,
    }
}

/// `Retry-After` in seconds or as a date.
pub fn retry_after_ms(headers: &HeaderMap, now_ms: i64) -> Option<u64> {
    parse_retry_after(headers.get(RETRY_AFTER)?.to_str().ok()?, now_ms)
}

/// A server may repeat what it was sent; what was secret on the way there is secret on the way back.
fn without(text: &str, secrets: &[String]) -> String {
    secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), REDACTED))
}

/// At most so many bytes, cut between characters.
pub fn shorten(text: &str, max_bytes: usize) -> Cow<'_, str> {
    if text.len() <= max_bytes {
        return Cow::Borrowed(text);
    }
    let end = (0..=max_bytes).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    Cow::Owned(format!("{}…", &text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestr8_kernel::ports::clock::Simulated;
    use orchestr8_kernel::resilience::retry::{counts, may_retry};
    use orchestr8_testing::Table;
    use reqwest::header::HeaderValue;

    #[test]
    fn each_status_is_retried_and_counted_as_the_contract_says() {
        for number in 300..600 {
            let fault = refusal(StatusCode::from_u16(number).unwrap(), "GET host", None);
            let (retried, counted) = match number {
                408 | 500..=599 => (true, true),
                429 => (true, false),
                _ => (false, false),
            };
            assert_eq!((may_retry(&fault), counts(&fault)), (retried, counted), "{fault}");
        }
        let gone = refusal(StatusCode::FOUND, "GET host", None);
        assert_eq!(gone.message, "GET host answered 302 Found; redirects are not followed");
    }

    #[test]
    fn wf_19_2_the_table_of_statuses() {
        let file =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/workflows/tables/http-statuses.md");
        let yes = |holds| String::from(if holds { "yes" } else { "no" });
        let columns = ["code", "category", "tried again", "counts for the breaker"];
        Table::read(file, "Statuses").holds(&columns, |row| {
            let status = StatusCode::from_u16(row.get("status").parse().unwrap()).unwrap();
            let fault = refusal(status, "GET host", None);
            let category = fault.category().as_str().to_owned();
            vec![fault.code.to_string(), category, yes(may_retry(&fault)), yes(counts(&fault))]
        });
    }

    #[test]
    fn retry_after_is_read_in_both_forms() {
        let after = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_str(text).unwrap());
            retry_after_ms(&headers, Simulated::START_MS)
        };
        assert_eq!(after("120"), Some(120_000));
        assert_eq!(after("Thu, 01 Jan 2026 00:00:05 GMT"), Some(5000));
        assert_eq!(after("Wed, 31 Dec 2025 00:00:00 GMT"), Some(0));
        assert_eq!(after("99999999999999999999"), None);
        assert_eq!((after("soon"), after("-5")), (None, None));
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(shorten("äöü", 3), "ä…");
        assert_eq!(shorten("abc", 3), "abc");
    }
}
