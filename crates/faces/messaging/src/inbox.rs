//! `GET /agents/{id}/inbox`: messages as server-sent events. A client that reconnects goes on where it was, and one that never
//! said where it was gets what it has not acknowledged. A client that does not want a stream gets a page.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::{BufMut, Bytes, BytesMut};
use futures::stream;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use orchestr8_contract::Event;
use orchestr8_edge::ask::{Wrong, digits, one};
use orchestr8_kernel::bus::{Filter, Subscription};
use serde_json::{Map, Value};

use crate::actions::{INBOX, PLACED};
use crate::answer;
use crate::call::{Call, Outcome};
use crate::failure::Failure;
use crate::openapi;
use crate::settings::{CHUNK_BYTES, PAGE, RETRY_MS};

const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const NOT_KEPT: HeaderValue = HeaderValue::from_static("no-cache, no-transform");
/// Some proxies hold answers back unless told otherwise.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Keeps a silent connection alive: a comment, which clients pass over.
const HEARTBEAT: Bytes = Bytes::from_static(b": heartbeat\n\n");

pub(crate) async fn read(call: Call) -> Outcome {
    let query = call.query(&["afterSeq", "limit", "wait"])?;
    let agent = call.id()?.to_owned();
    let after = position(&call, query.text("afterSeq"))?;
    let limit = query.number("limit", 1..=PAGE)?.unwrap_or(PAGE);
    let wait_ms = query.wait_ms("wait")?;
    let mut reading = Reading { agent, after, limit, call, first: None, news: None, behind: true };
    if !wants_stream(&reading.call.parts.headers) {
        let page = reading.page(wait_ms.unwrap_or(0)).await?;
        return Ok(answer::json(StatusCode::OK, &page));
    }
    // Whoever listens first and looks then misses nothing.
    let inbox = format!("aacp:{}:{}", reading.call.tenant(), reading.agent);
    let filter = Filter::names([PLACED]).about(inbox);
    reading.news = Some(reading.call.face.kernel.bus().subscribe(&filter)?);
    // What is wrong with the request is told before the stream begins.
    let page = reading.page(0).await?;
    reading.behind = !is_empty(&page);
    let opening = BytesMut::from(format!("retry: {RETRY_MS}\n\n").as_bytes());
    let opening = reading.write(opening, &page);
    reading.first = Some(opening);
    let body = stream::unfold(reading, |mut reading| async move {
        let chunk = reading.next().await?;
        Some((Ok::<_, Infallible>(chunk), reading))
    });
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, EVENTS);
    headers.insert(CACHE_CONTROL, NOT_KEPT);
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    Ok(response)
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|range| {
        range.split(';').next().unwrap_or_default().trim_ascii().eq_ignore_ascii_case("text/event-stream")
    })
}

/// Where the client was: what it says by itself when it reconnects goes before what the address said once.
fn position(call: &Call, parameter: Option<&str>) -> Result<Option<u64>, Failure> {
    let header = one(&call.parts.headers, &LAST_EVENT)?.filter(|id| !id.is_empty());
    let (path, given) = match (header, parameter) {
        (Some(id), _) => ("Last-Event-ID", id),
        (None, Some(id)) => ("?afterSeq", id),
        (None, None) => return Ok(None),
    };
    match digits(given).filter(|number| *number <= openapi::COUNT_MAX) {
        Some(id) => Ok(Some(id)),
        None => Err(Wrong::new(path, "must be an inboxSeq").into()),
    }
}

/// A stream that is read only as fast as its client takes it; it holds one page in memory, and a bounded line of news.
struct Reading {
    agent: String,
    /// None: what was not acknowledged.
    after: Option<u64>,
    limit: u64,
    call: Call,
    first: Option<Bytes>,
    /// What is placed in the inbox while the stream goes on.
    news: Option<Subscription>,
    /// Whether there may be something that the news does not say.
    behind: bool,
}

/// What a piece of news means to a stream.
enum News {
    /// The next message.
    Next(u64),
    /// It was written before.
    Old,
    /// Something lies between, or the message itself is not told.
    Look,
}

impl Reading {
    async fn page(&self, wait_ms: u64) -> Result<Map<String, Value>, Failure> {
        let mut args = Map::new();
        args.insert(String::from("agentId"), self.agent.as_str().into());
        args.insert(String::from("limit"), self.limit.into());
        args.insert(String::from("waitMs"), wait_ms.into());
        if let Some(after) = self.after {
            args.insert(String::from("afterSeq"), after.into());
        }
        self.call.ask(INBOX, args).await
    }

    /// Whatever is wrong, the stream ends and the client comes back with its last id.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            if self.behind {
                let page = self.page(0).await.ok()?;
                if is_empty(&page) {
                    self.behind = false;
                } else {
                    return Some(self.write(BytesMut::new(), &page));
                }
            }
            let face = self.call.face.clone();
            let silence = face.kernel.ports().clock.sleep(Duration::from_millis(face.settings.heartbeat_ms));
            let news = self.news.as_mut()?;
            let event = tokio::select! {
                biased;
                event = news.next() => event?,
                () = face.settings.shutdown.cancelled() => return None,
                () = silence => {
                    // A look is a sign of life of the agent, and shows whether the inbox is still its reader's.
                    let page = self.page(0).await.ok()?;
                    return Some(if is_empty(&page) { HEARTBEAT } else { self.write(BytesMut::new(), &page) });
                }
            };
            let mut out = BytesMut::new();
            self.hear(&mut out, &event);
            while out.len() < CHUNK_BYTES
                && !self.behind
                && let Some(event) = self.news.as_mut().and_then(Subscription::try_next)
            {
                self.hear(&mut out, &event);
            }
            if !out.is_empty() {
                return Some(out.freeze());
            }
        }
    }

    /// Appends the message that a piece of news brings, if it is the next.
    fn hear(&mut self, out: &mut BytesMut, event: &Event) {
        let envelope = event.data.get("envelope").and_then(Value::as_str);
        match (self.judge(event.data.get("inboxSeq").and_then(Value::as_u64)), envelope) {
            (News::Next(place), Some(envelope)) => self.put(out, place, envelope.as_bytes()),
            (News::Old, _) => {}
            (News::Next(_), None) | (News::Look, _) => self.behind = true,
        }
    }

    fn judge(&self, place: Option<u64>) -> News {
        match (place, self.after) {
            (Some(place), Some(after)) if place <= after => News::Old,
            (Some(place), Some(after)) if place == after + 1 => News::Next(place),
            // Nothing was written, so nothing waited before it.
            (Some(place), None) => News::Next(place),
            (Some(_) | None, Some(_)) | (None, None) => News::Look,
        }
    }

    /// Appends the messages of a page.
    fn write(&mut self, mut out: BytesMut, page: &Map<String, Value>) -> Bytes {
        let messages = page.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for message in messages {
            let place = message.get("inboxSeq").and_then(Value::as_u64).unwrap_or(0);
            let envelope = message.get("envelope").map(Value::to_string).unwrap_or_default();
            self.put(&mut out, place, envelope.as_bytes());
        }
        out.freeze()
    }

    /// Appends one event. Our JSON is written without line breaks, so the data is one line.
    fn put(&mut self, out: &mut BytesMut, place: u64, envelope: &[u8]) {
        out.put_slice(format!("id: {place}\nevent: message\ndata: ").as_bytes());
        out.put_slice(envelope);
        out.put_slice(b"\n\n");
        self.after = Some(place);
    }
}

fn is_empty(page: &Map<String, Value>) -> bool {
    page.get("messages").and_then(Value::as_array).is_none_or(Vec::is_empty)
}
