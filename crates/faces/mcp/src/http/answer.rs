//! Answers as HTTP responses.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use orchestr8_contract::id::CorrelationId;
use orchestr8_edge::CORRELATION;

use crate::connection::Reply;
use crate::wire::{self, Id, Message};

use super::headers::{ACCEL_BUFFERING, REPLAYED};
use super::session::header;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-cache, no-transform");
const NO_BUFFERING: HeaderValue = HeaderValue::from_static("no");

/// Room for the headers of a plain answer and those the edge adds, so that the map is allocated once. There is more than an
/// answer needs, because the HTTP layer reads the next request of the connection into the same map.
const HEADERS: usize = 12;

fn response(status: StatusCode, body: Body, correlation: HeaderValue) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let mut headers = HeaderMap::with_capacity(HEADERS);
    headers.insert(CORRELATION, correlation);
    *response.headers_mut() = headers;
    response
}

/// One JSON body, with the id that stands in it or in the log.
pub(super) fn json(reply: Reply) -> Response {
    let correlation = header(&reply.correlation);
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK);
    let mut response = response(status, Body::from(reply.text), correlation);
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    if reply.is_replay {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

/// A status and nothing else.
pub(super) fn empty(status: StatusCode, correlation: HeaderValue) -> Response {
    response(status, Body::empty(), correlation)
}

/// An event stream.
pub(super) fn events(body: Body, correlation: HeaderValue) -> Response {
    let mut response = response(StatusCode::OK, body, correlation);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, EVENTS);
    headers.insert(CACHE_CONTROL, NO_STORE);
    headers.insert(ACCEL_BUFFERING, NO_BUFFERING);
    response
}

/// The answer to a request that was cancelled: a stream that ends without a word, since none may follow a cancel.
pub(super) fn silence(correlation: HeaderValue) -> Response {
    events(Body::empty(), correlation)
}

/// A refusal by the transport, with the id of the request if it can be read.
pub(super) fn refuse(error: &wire::Error, text: Option<&Bytes>, correlation: &CorrelationId) -> Response {
    let id = text.and_then(|text| id_of(text));
    let text = wire::response(id.as_ref(), "error", &error.to_json(correlation));
    json(Reply { text, status: error.status, correlation: correlation.clone(), is_replay: false })
}

/// Names the methods that are taken, as a 405 must.
pub(super) fn allowing(mut response: Response, methods: &'static str) -> Response {
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    response
}

fn id_of(text: &[u8]) -> Option<Id> {
    match wire::read(text) {
        Ok(Message::Request { id, .. }) => Some(id),
        // A message that is itself a response is never answered, so its id is not repeated.
        Ok(Message::Notification { .. } | Message::Response { .. } | Message::Batch(_)) => None,
        Err(refused) => refused.id,
    }
}
