//! Answers as HTTP responses.

use axum::body::Body;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use orchestr8_contract::id::CorrelationId;
use orchestr8_edge::CORRELATION;
use serde::Serialize;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// A body of JSON that nobody keeps, since it tells of the moment.
pub(crate) fn json(status: StatusCode, shape: &impl Serialize) -> Response {
    // Our shapes and JSON values always serialize; were one not to, an empty body would be seen at once.
    let mut response = Response::new(Body::from(serde_json::to_vec(shape).unwrap_or_default()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    response
}

pub(crate) fn correlate(headers: &mut HeaderMap, correlation: &CorrelationId) {
    // An id may hold letters that are not ASCII; they travel as the bytes they are.
    if let Ok(value) = HeaderValue::from_bytes(correlation.as_str().as_bytes()) {
        headers.entry(CORRELATION).or_insert(value);
    }
}
