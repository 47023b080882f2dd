//! Answers as HTTP responses.

use axum::body::Body;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use orchestr8_contract::id::CorrelationId;
use orchestr8_edge::CORRELATION;
use serde::Serialize;

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(crate) const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Most answers fit without growing.
const USUAL_BYTES: usize = 512;

/// Room for the headers of an answer and those the edge adds, so that the map is allocated once.
const HEADERS: usize = 12;

/// The JSON text of a shape of ours.
pub(crate) fn text(shape: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::with_capacity(USUAL_BYTES);
    // Our shapes and JSON values always serialize; were one not to, an empty body would be seen at once.
    if serde_json::to_writer(&mut out, shape).is_err() {
        out.clear();
    }
    out
}

/// A body of JSON that nobody keeps, since it tells of the moment.
pub(crate) fn json(status: StatusCode, shape: &impl Serialize) -> Response {
    let mut response = bytes(status, text(shape));
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    response
}

/// A body of JSON that is written already.
pub(crate) fn bytes(status: StatusCode, text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    let mut headers = HeaderMap::with_capacity(HEADERS);
    headers.insert(CONTENT_TYPE, JSON);
    *response.headers_mut() = headers;
    response
}

pub(crate) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

pub(crate) fn locate(response: &mut Response, url: &str) {
    if let Ok(value) = HeaderValue::from_str(url) {
        response.headers_mut().insert(LOCATION, value);
    }
}

/// Says that this answer repeats an earlier outcome.
pub(crate) fn mark_replayed(response: &mut Response, replayed: bool) {
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
}

pub(crate) fn correlate(headers: &mut HeaderMap, correlation: &CorrelationId) {
    // An id may hold letters that are not ASCII; they travel as the bytes they are.
    if let Ok(value) = HeaderValue::from_bytes(correlation.as_str().as_bytes()) {
        headers.insert(CORRELATION, value);
    }
}
