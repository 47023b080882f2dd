//! A refusal of this face: the contract's error body with its headers.

use std::borrow::Cow;

use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderName, HeaderValue, StatusCode};
use orchestr8_contract::id::CorrelationId;
use orchestr8_contract::{Code, FailureCategory, Fault};
use orchestr8_edge::ask::Wrong;
use orchestr8_edge::{WrongCredentials, body};
use orchestr8_kernel::ports::clock;
use serde_json::{Map, Value, json};

use crate::answer::{self, JSON};
use crate::to_wire::{self, Within, Word};
use crate::wire;

pub(crate) const ERROR_CODE: HeaderName = HeaderName::from_static("x-error-code");

/// Why a request got no success. In a box: it is the rare way, and it is large.
#[derive(Debug)]
pub(crate) struct Failure(Box<Inner>);

#[derive(Debug)]
struct Inner {
    fault: Fault,
    word: Word,
    status: StatusCode,
    retryable: bool,
    attempts: u64,
    execution: Option<String>,
    correlation: Option<CorrelationId>,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The edge counts it as a failed login of its address.
    wrong_credentials: bool,
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        let code = fault.code;
        let mut failure = Self::of(fault, to_wire::word(code, Within::Request), to_wire::status(code));
        if let Some(seconds) = to_wire::retry_after(code) {
            failure = failure.header(RETRY_AFTER, HeaderValue::from_static(seconds));
        }
        failure
    }
}

impl From<body::Error> for Failure {
    fn from(error: body::Error) -> Self {
        match error {
            body::Error::TooLarge { limit_bytes } => {
                Self::from(Fault::from(error)).with("limitBytes", limit_bytes)
            }
            body::Error::Slow => Self::from(Fault::from(error)).status(StatusCode::REQUEST_TIMEOUT),
            body::Error::Broken(_) => Fault::from(error).into(),
        }
    }
}

impl From<Wrong> for Failure {
    fn from(wrong: Wrong) -> Self {
        vec![wrong].into()
    }
}

impl From<Vec<Wrong>> for Failure {
    fn from(mistakes: Vec<Wrong>) -> Self {
        Self::mistakes(mistakes.into_iter().map(|wrong| (wrong.path, wrong.message)).collect())
    }
}

impl Failure {
    fn of(fault: Fault, word: Word, status: StatusCode) -> Self {
        let retryable = to_wire::is_retryable(fault.code);
        let (attempts, execution, correlation, headers) = (0, None, None, Vec::new());
        let wrong_credentials = false;
        Self(Box::new(Inner {
            fault,
            word,
            status,
            retryable,
            attempts,
            execution,
            correlation,
            headers,
            wrong_credentials,
        }))
    }

    /// The error of an execution, as the domain tells it, as the answer to a request.
    pub fn of_step(error: &Map<String, Value>) -> Self {
        let given = error.get("code").and_then(Value::as_str).unwrap_or_default();
        let code = to_wire::code(given);
        let retryable = error.get("isRetryable").and_then(Value::as_bool);
        let retryable = retryable.unwrap_or_else(|| to_wire::is_retryable(code));
        let word = to_wire::step_word(code, retryable);
        let message = error.get("message").and_then(Value::as_str).unwrap_or("the execution failed");
        let mut fault = Fault::new(code, message.to_owned());
        if let Some(Value::Object(details)) = error.get("details") {
            fault.details = Some(Box::new(details.clone()));
        }
        let fault = fault.in_category(to_wire::category_of(error, code));
        let mut failure = Self::of(fault, word, word.status());
        failure.0.retryable = retryable && code != Code::CircuitOpen;
        failure.0.attempts = error.get("attempts").and_then(Value::as_u64).unwrap_or(1);
        match error.get("stepId") {
            Some(step) => failure.with("stepId", step.clone()),
            None => failure,
        }
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.fault.details.get_or_insert_default().insert(name.to_owned(), value.into());
        self
    }

    /// Something of the request is wrong at `path`: a JSON pointer into the body, `?name` or the name of a header.
    pub fn invalid(path: &str, message: impl Into<Cow<'static, str>>) -> Self {
        let message = message.into();
        Self::mistakes(vec![(path.to_owned(), message)])
    }

    /// Several things are wrong, each at its path.
    pub fn mistakes(mistakes: Vec<(String, Cow<'static, str>)>) -> Self {
        let first = mistakes.first().map_or_else(String::new, |(path, message)| format!("{path}: {message}"));
        let errors: Vec<Value> =
            mistakes.iter().map(|(path, message)| json!({"path": path, "message": message})).collect();
        Fault::invalid(first).with("errors", errors).into()
    }

    pub fn not_found(message: impl Into<Cow<'static, str>>) -> Self {
        Fault::new(Code::NotFound, message).into()
    }

    #[must_use]
    pub fn status(mut self, status: StatusCode) -> Self {
        self.0.status = status;
        self
    }

    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.push((name, value));
        self
    }

    /// The request showed wrong credentials of this face's own.
    #[must_use]
    pub fn with_wrong_credentials(mut self) -> Self {
        self.0.wrong_credentials = true;
        self
    }

    /// Names the execution it is about.
    #[must_use]
    pub fn about(mut self, execution: impl Into<String>) -> Self {
        self.0.execution = Some(execution.into());
        self
    }

    /// Points to where the execution can be looked at.
    #[must_use]
    pub fn pointing_to(self, url: &str) -> Self {
        match HeaderValue::from_str(url) {
            Ok(value) => self.header(LOCATION, value),
            Err(_) => self,
        }
    }

    #[must_use]
    pub fn correlated(mut self, correlation: CorrelationId) -> Self {
        self.0.correlation = Some(correlation);
        self
    }

    pub fn code(&self) -> Code {
        self.0.fault.code
    }

    pub fn category(&self) -> FailureCategory {
        self.0.fault.category()
    }

    pub fn message(&self) -> &str {
        &self.0.fault.message
    }

    pub fn word(&self) -> &'static str {
        self.0.word.as_str()
    }

    pub fn http_status(&self) -> StatusCode {
        self.0.status
    }

    pub fn into_response(self, correlation: &CorrelationId, now_ms: i64) -> Response {
        let inner = *self.0;
        let correlation = inner.correlation.as_ref().unwrap_or(correlation);
        let code = inner.fault.code;
        let body = wire::ErrorBody {
            error: wire::Error {
                code: inner.word.as_str(),
                message: &inner.fault.message,
                is_retryable: inner.retryable,
                category: inner.fault.category(),
                attempts: inner.attempts,
                details: inner.fault.details.as_deref(),
                cause: Some(code.as_str()).filter(|cause| *cause != inner.word.as_str()),
            },
            timestamp: clock::iso(now_ms),
            correlation_id: correlation.as_str(),
            execution_id: inner.execution.as_deref(),
        };
        let mut response = Response::new(Body::from(answer::text(&body)));
        *response.status_mut() = inner.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(ERROR_CODE, HeaderValue::from_static(inner.word.as_str()));
        answer::correlate(headers, correlation);
        headers.extend(inner.headers);
        if inner.wrong_credentials {
            response.extensions_mut().insert(WrongCredentials);
        }
        response
    }
}
