//! Answers as HTTP responses, written the same by every face.

use axum::body::Body;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use orchestr8_contract::id::CorrelationId;
use serde::Serialize;

use crate::correlation::CORRELATION;

pub const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
pub const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Most answers fit without growing.
const USUAL_BYTES: usize = 512;

/// Room for the headers of an answer and those the edge adds, so that the map is allocated once.
const HEADERS: usize = 12;

/// The JSON text of a shape of ours.
pub fn text(shape: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::with_capacity(USUAL_BYTES);
    // Our shapes and JSON values always serialize; were one not to, an empty body would be seen at once.
    if serde_json::to_writer(&mut out, shape).is_err() {
        out.clear();
    }
    out
}

/// A body of JSON that nobody keeps, since it tells of the moment.
pub fn json(status: StatusCode, shape: &impl Serialize) -> Response {
    let mut response = of(status, JSON, text(shape));
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    response
}

/// A body of this type.
pub fn of(status: StatusCode, media: HeaderValue, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let mut headers = HeaderMap::with_capacity(HEADERS);
    headers.insert(CONTENT_TYPE, media);
    *response.headers_mut() = headers;
    response
}

/// Says where to look.
pub fn locate(response: &mut Response, url: &str) {
    if let Ok(value) = HeaderValue::from_str(url) {
        response.headers_mut().insert(LOCATION, value);
    }
}

/// Says that this answer repeats an earlier outcome.
pub fn mark_replayed(response: &mut Response, replayed: bool) {
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
}

/// Names the request in its answer, unless another id stands there already.
pub fn correlate(headers: &mut HeaderMap, correlation: &CorrelationId) {
    // An id may hold letters that are not ASCII; they travel as the bytes they are.
    if let Ok(value) = HeaderValue::from_bytes(correlation.as_str().as_bytes()) {
        headers.entry(CORRELATION).or_insert(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_what_it_is_and_whose() {
        let mut response = json(StatusCode::ACCEPTED, &serde_json::json!({"a": 1}));
        let (one, other) = (CorrelationId::parse("c-1").unwrap(), CorrelationId::parse("c-2").unwrap());
        correlate(response.headers_mut(), &one);
        correlate(response.headers_mut(), &other);
        locate(&mut response, "/x");
        mark_replayed(&mut response, false);
        assert!(!response.headers().contains_key(REPLAYED));
        mark_replayed(&mut response, true);
        assert_eq!(response.status(), 202);
        for (name, value) in [
            ("content-type", "application/json"),
            ("cache-control", "no-store"),
            ("x-correlation-id", "c-1"),
            ("location", "/x"),
            ("idempotency-replayed", "true"),
        ] {
            assert_eq!(response.headers()[name], value, "{name}");
        }
    }
}
