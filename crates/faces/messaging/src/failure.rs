//! A refusal of this face: the error body with its headers.

use axum::response::Response;
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};
use orchestr8_contract::error::Retry;
use orchestr8_contract::id::CorrelationId;
use orchestr8_contract::{Code, Fault};
use orchestr8_edge::ask::Wrong;
use orchestr8_edge::body;
use serde_json::{Value, json};

use crate::{answer, to_wire, wire};

/// Why a request got no success. In a box: it is the rare way, and it is large.
#[derive(Debug)]
pub(crate) struct Failure(Box<(Fault, StatusCode)>);

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        let reason = fault.details.as_ref().and_then(|details| details.get("reason")).and_then(Value::as_str);
        let status = match reason {
            Some("payload_too_large") => StatusCode::PAYLOAD_TOO_LARGE,
            Some(_) | None => to_wire::status(fault.code),
        };
        Self(Box::new((fault, status)))
    }
}

impl From<Wrong> for Failure {
    fn from(wrong: Wrong) -> Self {
        vec![wrong].into()
    }
}

impl From<Vec<Wrong>> for Failure {
    fn from(mistakes: Vec<Wrong>) -> Self {
        let text: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        let errors: Vec<Value> =
            mistakes.iter().map(|wrong| json!({"path": wrong.path, "message": wrong.message})).collect();
        Fault::invalid(text.join("; ")).with("errors", errors).into()
    }
}

impl From<body::Error> for Failure {
    fn from(error: body::Error) -> Self {
        let slow = matches!(error, body::Error::Slow);
        let failure = Self::from(Fault::from(error));
        if slow { failure.status(StatusCode::REQUEST_TIMEOUT) } else { failure }
    }
}

impl Failure {
    #[must_use]
    pub fn status(mut self, status: StatusCode) -> Self {
        self.0.1 = status;
        self
    }

    pub fn not_found() -> Self {
        Fault::new(Code::NotFound, "there is nothing at this path").into()
    }

    pub fn into_response(self, correlation: &CorrelationId) -> Response {
        let (fault, status) = *self.0;
        let body = wire::ErrorBody {
            error: wire::Error {
                code: fault.code.as_str(),
                message: &fault.message,
                hint: fault.code.advice(),
                is_retryable: fault.code.retry() == Retry::Later,
                details: fault.details.as_deref(),
            },
            correlation_id: correlation.as_str(),
        };
        let mut response = answer::json(status, &body);
        if let Some(seconds) = to_wire::retry_after(&fault) {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
