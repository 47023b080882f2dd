//! The status of every error: one exhaustive match.

use http::StatusCode;
use orchestr8_contract::error::Retry;
use orchestr8_contract::{Code, Fault, Kind};
use serde_json::Value;

pub(crate) fn status(code: Code) -> StatusCode {
    match code.kind() {
        Kind::Invalid => StatusCode::BAD_REQUEST,
        Kind::NotFound => StatusCode::NOT_FOUND,
        Kind::Unauthenticated => StatusCode::UNAUTHORIZED,
        Kind::Forbidden => StatusCode::FORBIDDEN,
        Kind::Conflict | Kind::Dependency | Kind::State | Kind::Unknown | Kind::Cancelled => {
            StatusCode::CONFLICT
        }
        Kind::Exhausted if code == Code::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Kind::Exhausted => StatusCode::TOO_MANY_REQUESTS,
        Kind::Timeout => StatusCode::GATEWAY_TIMEOUT,
        Kind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Kind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Seconds to wait before sending again, where that may help: what the fault asks for, or a moment.
pub(crate) fn retry_after(fault: &Fault) -> Option<u64> {
    const MOMENT_S: u64 = 1;
    if fault.code.retry() == Retry::Never {
        return None;
    }
    let asked_ms =
        fault.details.as_ref().and_then(|details| details.get("retryAfterMs")).and_then(Value::as_u64);
    Some(asked_ms.map_or(MOMENT_S, |ms| ms.div_ceil(1000).max(MOMENT_S)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_sent_again_says_when() {
        let full = Fault::new(Code::ResourceExhausted, "full").with("retryAfterMs", 1500);
        assert_eq!((status(full.code), retry_after(&full)), (StatusCode::TOO_MANY_REQUESTS, Some(2)));
        assert_eq!(retry_after(&Fault::invalid("no")), None);
    }

    #[test]
    fn every_code_has_a_status_that_says_whose_fault_it_is() {
        for code in Code::ALL {
            let ours = matches!(code.kind(), Kind::Internal | Kind::Unavailable | Kind::Timeout);
            assert_eq!(status(*code).is_server_error(), ours, "{code}");
        }
    }
}
