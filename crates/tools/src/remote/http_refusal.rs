//! HTTP answers of another server that hold no result, and what they mean for a call.

use std::fmt;

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use orchestr8_contract::Code;
use orchestr8_kernel::resilience::retry::parse_retry_after;

/// An answer without a message of the protocol, or with a status that says more than the message in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRefusal {
    pub status: StatusCode,
    pub retry_after_ms: Option<u64>,
    /// The beginning of the body, or the message of the error in it.
    pub text: String,
}

impl HttpRefusal {
    /// The code for a request that was refused; none if it may have been executed all the same.
    pub fn code(&self) -> Option<Code> {
        Some(match self.status.as_u16() {
            401 | 403 | 407 => Code::Unauthorized,
            404 | 410 => Code::NotFound,
            408 => Code::Timeout,
            413 => Code::PayloadTooLarge,
            425 | 429 => Code::ResourceExhausted,
            // Redirects are not followed: they would carry credentials elsewhere.
            300..=399 | 501 | 503 | 505 => Code::Unavailable,
            400..=499 => Code::InvalidArgument,
            _ => return None,
        })
    }
}

impl fmt::Display for HttpRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "answered {}", self.status)?;
        if self.status.is_redirection() {
            f.write_str("; redirects are not followed")?;
        }
        if self.status.is_success() {
            f.write_str(" without a message of the protocol")?;
        }
        if self.text.is_empty() { Ok(()) } else { write!(f, ": {}", self.text) }
    }
}

/// Whether a status says more about a refusal than an error of the protocol in its body.
pub fn outweighs_message(status: StatusCode) -> bool {
    matches!(status.as_u16(), 401 | 403 | 407 | 408 | 413 | 425 | 429 | 500..=599)
}

pub fn retry_after_ms(headers: &HeaderMap, now_ms: i64) -> Option<u64> {
    parse_retry_after(headers.get(RETRY_AFTER)?.to_str().ok()?, now_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_have_been_executed_has_no_code() {
        let refusal = |status| HttpRefusal {
            status: StatusCode::from_u16(status).unwrap(),
            retry_after_ms: None,
            text: "why".into(),
        };
        let unknown: Vec<u16> = (200..600).filter(|status| refusal(*status).code().is_none()).collect();
        assert!(unknown.iter().all(|status| matches!(status, 200..=299 | 500..=599)), "{unknown:?}");
        assert!(![501, 503, 505].iter().any(|status| unknown.contains(status)));
        assert_eq!(refusal(302).to_string(), "answered 302 Found; redirects are not followed: why");
        assert_eq!(refusal(200).to_string(), "answered 200 OK without a message of the protocol: why");
    }
}
