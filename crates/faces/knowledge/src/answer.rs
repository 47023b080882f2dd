//! Answers as HTTP responses.

use axum::body::Body;
use axum::response::Response;
use http::header::CACHE_CONTROL;
use http::{HeaderValue, StatusCode};
pub(crate) use orchestr8_edge::answer::{NO_STORE, REPLAYED, correlate, json, locate, mark_replayed};
use serde_json::Value;

use crate::wire;

/// A success of the envelope.
pub(crate) fn success(status: StatusCode, data: &Value) -> Response {
    json(status, &wire::Success { ok: true, data, usage: None, replayed: false, ignored: false })
}

/// A body of another type that nobody keeps.
pub(crate) fn bytes(status: StatusCode, media: HeaderValue, body: impl Into<Body>) -> Response {
    let mut response = orchestr8_edge::answer::of(status, media, body);
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    response
}
