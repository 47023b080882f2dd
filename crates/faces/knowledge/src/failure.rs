//! A refusal of this face: the error body of the envelope with its headers.

use std::borrow::Cow;

use axum::response::Response;
use http::header::RETRY_AFTER;
use http::{HeaderName, HeaderValue, StatusCode};
use orchestr8_contract::id::CorrelationId;
use orchestr8_contract::{Code, Fault};
use orchestr8_edge::ask::Wrong;
use orchestr8_edge::body;
use serde_json::{Map, Value, json};

use crate::answer;
use crate::limits;
use crate::to_wire::{self, Within, Word};
use crate::wire;

/// Why a request got no success. In a box: it is the rare way, and it is large.
#[derive(Debug)]
pub(crate) struct Failure(Box<Inner>);

#[derive(Debug)]
struct Inner {
    fault: Fault,
    word: Word,
    status: StatusCode,
    replayed: bool,
    /// This face refused it, and not an action, whose refusals are recorded where it is run.
    own_refusal: bool,
    trace: Option<String>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// Goes with the response, for whoever delivers envelopes another way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failed {
    pub code: Code,
    pub word: Word,
}

impl From<Fault> for Failure {
    /// A fault of the envelope, an address or a header.
    fn from(fault: Fault) -> Self {
        let word = to_wire::word(fault.code, Within::Envelope);
        Self::of(fault, word)
    }
}

impl From<Wrong> for Failure {
    fn from(wrong: Wrong) -> Self {
        Self::invalid(&wrong.path, wrong.message)
    }
}

impl From<body::Error> for Failure {
    fn from(error: body::Error) -> Self {
        match error {
            body::Error::TooLarge { limit_bytes } => {
                Self::from(Fault::from(error)).with("max_payload_bytes", limit_bytes).with("hint", TOO_LARGE)
            }
            body::Error::Slow | body::Error::Broken(_) => Fault::from(error).into(),
        }
    }
}

/// What to do with what is too large.
pub(crate) const TOO_LARGE: &str = "send large content as artifact_uri and artifact_hash";

impl Failure {
    pub fn of(fault: Fault, word: Word) -> Self {
        let headers = match to_wire::retry_after(word) {
            Some(seconds) => vec![(RETRY_AFTER, HeaderValue::from_static(seconds))],
            None => Vec::new(),
        };
        let status = word.status();
        Self(Box::new(Inner {
            fault,
            word,
            status,
            replayed: false,
            own_refusal: false,
            trace: None,
            headers,
        }))
    }

    /// A fault of an action: what is invalid there is invalid in the arguments.
    pub fn of_action(fault: Fault) -> Self {
        let reason = fault.details.as_ref().and_then(|details| details.get("reason")).and_then(Value::as_str);
        let word = match reason {
            Some("NOT_FOUND_IN_CONTENT") => Word::NotFoundInContent,
            Some("AMBIGUOUS") => Word::Ambiguous,
            // Sending the same again later would not help, which is what the word for limits says.
            Some("payload_too_large") => Word::InvalidArgument,
            Some(_) | None => to_wire::word(fault.code, Within::Action),
        };
        Self::of(fault, word)
    }

    /// Several things are wrong with the envelope, each at its path.
    pub fn mistakes(mistakes: Vec<(String, Cow<'static, str>)>) -> Self {
        let shown: Vec<_> = mistakes.into_iter().take(limits::MISTAKES).collect();
        let text: Vec<String> = shown.iter().map(|(path, message)| format!("{path}: {message}")).collect();
        let errors: Vec<Value> =
            shown.iter().map(|(path, message)| json!({"path": path, "message": message})).collect();
        Fault::invalid(text.join("; ")).with("errors", errors).into()
    }

    pub fn invalid(path: &str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::mistakes(vec![(path.to_owned(), message.into())])
    }

    pub fn not_found(message: impl Into<Cow<'static, str>>) -> Self {
        Fault::new(Code::NotFound, message).into()
    }

    /// The credentials do not prove what the request claims.
    pub fn forbidden(message: impl Into<Cow<'static, str>>) -> Self {
        let mut failure = Self::from(Fault::new(Code::Unauthorized, message));
        failure.0.own_refusal = true;
        failure
    }

    /// The fault of a refusal that this face decided on its own.
    pub fn own_refusal(&self) -> Option<&Fault> {
        self.0.own_refusal.then_some(&self.0.fault)
    }

    /// Nobody known is asking.
    pub fn unauthenticated(message: impl Into<Cow<'static, str>>) -> Self {
        Fault::new(Code::Unauthenticated, message).into()
    }

    pub fn expired(message: impl Into<Cow<'static, str>>) -> Self {
        let fault = Fault::invalid(message).with("hint", "send it again with a fresh timestamp");
        Self::of(fault, Word::Expired)
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.fault.details.get_or_insert_default().insert(name.to_owned(), value.into());
        self
    }

    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.retain(|(known, _)| *known != name);
        self.0.headers.push((name, value));
        self
    }

    pub fn is_replayed(&self) -> bool {
        self.0.replayed
    }

    #[must_use]
    pub fn status(mut self, status: StatusCode) -> Self {
        self.0.status = status;
        self
    }

    #[must_use]
    pub fn replayed(mut self, replayed: bool) -> Self {
        self.0.replayed = replayed;
        self
    }

    /// Names the trace of the envelope, unless one is named already.
    #[must_use]
    pub fn traced(mut self, trace: &str) -> Self {
        self.0.trace.get_or_insert_with(|| trace.to_owned());
        self
    }

    pub fn into_fault(self) -> Fault {
        self.0.fault
    }

    pub fn word(&self) -> &'static str {
        self.0.word.as_str()
    }

    #[cfg(test)]
    pub fn message(&self) -> &str {
        &self.0.fault.message
    }

    /// The body as JSON, to be kept.
    pub fn body(&self, correlation: &CorrelationId) -> Value {
        self.shaped(correlation, |body| serde_json::to_value(body).unwrap_or_default())
    }

    /// The body: its details always have a hint and a trace id (KNO-4).
    fn shaped<T>(&self, correlation: &CorrelationId, then: impl FnOnce(&wire::ErrorBody<'_>) -> T) -> T {
        let fault = &self.0.fault;
        let mut details: Map<String, Value> = fault.details.as_deref().cloned().unwrap_or_default();
        details.entry("hint").or_insert_with(|| fault.code.advice().into());
        let trace = self.0.trace.as_deref().unwrap_or(correlation.as_str());
        details.insert("trace_id".into(), trace.into());
        let error = wire::Error { code: self.0.word.as_str(), message: &fault.message, details: &details };
        then(&wire::ErrorBody { ok: false, error, replayed: self.0.replayed })
    }

    pub fn into_response(self, correlation: &CorrelationId) -> Response {
        let mut response = self.shaped(correlation, |body| answer::json(self.0.status, body));
        answer::mark_replayed(&mut response, self.0.replayed);
        response.extensions_mut().insert(Failed { code: self.0.fault.code, word: self.0.word });
        response.headers_mut().extend(self.0.headers);
        answer::correlate(response.headers_mut(), correlation);
        response
    }
}
