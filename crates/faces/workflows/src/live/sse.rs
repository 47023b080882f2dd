//! `GET /events`: the feed as server-sent events. A browser that reconnects goes on where it was.

use std::convert::Infallible;

use axum::body::Body;
use bytes::{BufMut, Bytes, BytesMut};
use futures::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use orchestr8_edge::ask::{digits, one};
use orchestr8_kernel::Transport;
use orchestr8_kernel::ports::clock;
use orchestr8_kernel::ports::ids::For;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::feed::{Feed, Interest};
use crate::answer;
use crate::call::{Call, Outcome};
use crate::endpoints::text;
use crate::failure::Failure;
use crate::headers::LAST_EVENT;
use crate::settings::RETRY_MS;
use crate::wire::{Connection, Established};

const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const NOT_KEPT: HeaderValue = HeaderValue::from_static("no-cache, no-transform");
/// Some proxies hold answers back unless told otherwise.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Keeps a silent connection alive: a comment, which clients pass over.
const HEARTBEAT: Bytes = Bytes::from_static(b": heartbeat\n\n");

/// The longest id of an execution.
const ID_BYTES: usize = 256;

pub(crate) async fn events(call: Call) -> Outcome {
    let query = call.query(&["executionId", "lastEventId"])?;
    let after = position(&call, query.text("lastEventId"))?;
    let interest = Interest::of(query.bounded("executionId", ID_BYTES)?);
    let (face, heartbeat_ms) = (call.face.clone(), call.face.settings.heartbeat_ms);
    let feed = Feed::begin(
        face.clone(),
        call.principal.clone(),
        call.correlation.clone(),
        Transport::Http,
        interest,
        after,
    )
    .await?;
    let id = face.kernel.ports().ids.fresh(For::Connection).to_string();
    let first = established(&id, feed.last, heartbeat_ms, face.now_ms());
    let mut opening = BytesMut::new();
    opening.put_slice(format!("retry: {RETRY_MS}\n").as_bytes());
    write(&mut opening, Some(feed.last), "connection.established", &first);
    let reading = Reading {
        feed,
        first: Some(opening.freeze()),
        heartbeat_ms,
        shutdown: face.settings.shutdown.clone(),
    };
    let body = stream::unfold(reading, |mut reading| async move {
        let chunk = reading.next().await?;
        Some((Ok::<_, Infallible>(chunk), reading))
    });
    let mut response = answer::bytes(StatusCode::OK, Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, EVENTS);
    headers.insert(CACHE_CONTROL, NOT_KEPT);
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    Ok(response)
}

/// The first message of a live connection.
pub(crate) fn established(id: &str, last: u64, heartbeat_ms: u64, now_ms: i64) -> Vec<u8> {
    answer::text(&Established {
        kind: "connection.established",
        timestamp: clock::iso(now_ms),
        data: Connection { connection_id: id, last_event_id: last, heartbeat_ms },
    })
}

/// Where the client was: what a browser says by itself goes before what the address said once.
fn position(call: &Call, parameter: Option<&str>) -> Result<Option<u64>, Failure> {
    let header = one(call.headers(), &LAST_EVENT)?.filter(|id| !id.is_empty());
    let (path, given) = match (header, parameter) {
        (Some(id), _) => ("Last-Event-ID", id),
        (None, Some(id)) => ("?lastEventId", id),
        (None, None) => return Ok(None),
    };
    match digits(given) {
        Some(id) => Ok(Some(id)),
        None => Err(Failure::invalid(path, "must be the id of an event")),
    }
}

/// A stream that is read only as fast as its client takes it.
struct Reading {
    feed: Feed,
    first: Option<Bytes>,
    heartbeat_ms: u64,
    shutdown: CancellationToken,
}

impl Reading {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let page = tokio::select! {
            biased;
            () = self.shutdown.cancelled() => return None,
            page = self.feed.next(self.heartbeat_ms) => page,
        };
        // Whatever is wrong with the feed, the client comes back with its last id.
        let page = page.ok()?;
        self.feed.last = page.last;
        if page.events.is_empty() {
            return Some(HEARTBEAT);
        }
        let mut out = BytesMut::new();
        for event in page.events.iter().filter_map(Value::as_object) {
            write(&mut out, event.get("id").and_then(Value::as_u64), text(event, "type"), &json(event));
        }
        Some(out.freeze())
    }
}

fn json(event: &Map<String, Value>) -> Vec<u8> {
    answer::text(event)
}

/// Appends one event. Our JSON is written without line breaks, so the data is one line.
fn write(out: &mut BytesMut, id: Option<u64>, kind: &str, data: &[u8]) {
    if let Some(id) = id {
        out.put_slice(format!("id: {id}\n").as_bytes());
    }
    out.put_slice(b"event: ");
    out.put_slice(kind.as_bytes());
    out.put_slice(b"\ndata: ");
    out.put_slice(data);
    out.put_slice(b"\n\n");
}
