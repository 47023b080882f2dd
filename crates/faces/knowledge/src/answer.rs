//! Answers as HTTP responses.

use axum::body::Body;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use orchestr8_contract::id::CorrelationId;
use orchestr8_edge::CORRELATION;
use serde::Serialize;
use serde_json::Value;

use crate::wire;

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(crate) const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// A body of JSON that nobody keeps, since it tells of the moment.
pub(crate) fn json(status: StatusCode, shape: &impl Serialize) -> Response {
    // Our shapes and JSON values always serialize; were one not to, an empty body would be seen at once.
    bytes(status, JSON, serde_json::to_vec(shape).unwrap_or_default())
}

/// A success of the envelope.
pub(crate) fn success(status: StatusCode, data: &Value) -> Response {
    json(status, &wire::Success { ok: true, data, usage: None, replayed: false, ignored: false })
}

pub(crate) fn bytes(status: StatusCode, media: HeaderValue, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, media);
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    response
}

/// Says that this answer repeats an earlier outcome.
pub(crate) fn mark_replayed(response: &mut Response, replayed: bool) {
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
}

pub(crate) fn correlate(response: &mut Response, correlation: &CorrelationId) {
    // An id may hold letters that are not ASCII; they travel as the bytes they are.
    if let Ok(value) = HeaderValue::from_bytes(correlation.as_str().as_bytes()) {
        response.headers_mut().entry(CORRELATION).or_insert(value);
    }
}
