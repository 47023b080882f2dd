//! Answers as HTTP responses.

use axum::body::Body;
use axum::response::Response;
use http::StatusCode;
pub(crate) use orchestr8_edge::answer::{
    JSON, NO_STORE, REPLAYED, correlate, json, locate, mark_replayed, text,
};

/// A body of JSON that is written already.
pub(crate) fn bytes(status: StatusCode, text: impl Into<Body>) -> Response {
    orchestr8_edge::answer::of(status, JSON, text)
}

pub(crate) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
