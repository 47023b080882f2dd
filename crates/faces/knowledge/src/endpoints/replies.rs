//! `GET /a2a/replies/{inbox}`: the answers to published envelopes, as a page that may be waited for, or as they come.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use http::header::{ACCEPT, CACHE_CONTROL};
use http::{HeaderName, HeaderValue, StatusCode};
use orchestr8_broker::{Broker, Page, Reply, Subject};
use orchestr8_contract::id::Tenant;
use orchestr8_contract::{AccessRole, Fault};
use orchestr8_kernel::ports::{Clock, clock};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::publish::bus;
use crate::answer;
use crate::call::{Call, Outcome};
use crate::failure::Failure;
use crate::headers;
use crate::limits::{REPLIES, REPLY_WAIT_MS};

const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// Some proxies hold answers back unless told otherwise.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// Keeps a silent connection alive: a comment, which clients pass over.
const HEARTBEAT: Bytes = Bytes::from_static(b": heartbeat\n\n");
const HEARTBEAT_MS: u64 = 15_000;

/// Whoever published reads their own answers; the owner of the tenant reads everybody's.
pub(crate) async fn read(call: Call) -> Outcome {
    let query = call.query(&["after", "limit", "wait_ms"])?;
    let principal = call.person(&query).await?;
    call.authorize("knowledge.replies", &principal).await?;
    let inbox = Subject::of_inbox(&principal.tenant, call.param("inbox")?);
    let inbox = inbox.map_err(|wrong| Failure::invalid("/inbox", wrong.to_string()))?;
    let limit = query.within("limit", 1..=REPLIES)?.unwrap_or(REPLIES);
    let inbox = Inbox {
        broker: bus(&call)?.broker.clone(),
        clock: call.face.kernel.ports().clock.clone(),
        shutdown: call.face.settings.shutdown.clone(),
        tenant: principal.tenant.clone(),
        inbox,
        principal: (!principal.has(AccessRole::Owner)).then(|| principal.name.to_string()),
        limit: usize::try_from(limit).unwrap_or(1),
    };
    let after = position(&call, query.number("after")?)?;
    if headers::one(&call.parts.headers, &ACCEPT)?.is_some_and(|media| media.contains("text/event-stream")) {
        return Ok(events(inbox, after));
    }
    let wait_ms = query.within("wait_ms", 0..=REPLY_WAIT_MS)?.unwrap_or(0);
    let page = inbox.next(after, wait_ms).await?;
    let next = page.items.last().map_or(after, |reply| reply.seq);
    let replies: Vec<Value> = page.items.iter().map(shown).collect();
    Ok(answer::success(StatusCode::OK, &json!({"replies": replies, "next": next, "more": page.more})))
}

struct Inbox {
    broker: Arc<dyn Broker>,
    clock: Arc<dyn Clock>,
    shutdown: CancellationToken,
    tenant: Tenant,
    inbox: Subject,
    principal: Option<String>,
    limit: usize,
}

impl Inbox {
    /// The replies after one of them; an empty page if none came in time.
    async fn next(&self, after: i64, wait_ms: u64) -> Result<Page<Reply>, Fault> {
        let mut news = self.broker.news();
        let wait = self.clock.sleep(Duration::from_millis(wait_ms));
        tokio::pin!(wait);
        loop {
            news.mark_unchanged();
            let (tenant, inbox) = (self.tenant.clone(), self.inbox.clone());
            let page = self.broker.replies(tenant, inbox, self.principal.clone(), after, self.limit).await?;
            if !page.items.is_empty() || wait_ms == 0 {
                return Ok(page);
            }
            tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return Ok(page),
                changed = news.changed() => if changed.is_err() { return Ok(page) },
                () = &mut wait => return Ok(page),
            }
        }
    }
}

/// What a reader says it has seen: what a browser says by itself goes before what the address said once.
fn position(call: &Call, after: Option<u64>) -> Result<i64, Failure> {
    let wrong = || Failure::invalid("Last-Event-ID", "it must be the number of a reply");
    let header = headers::one(&call.parts.headers, &LAST_EVENT)?.filter(|text| !text.is_empty());
    match header {
        Some(text) => text.parse::<u32>().map(i64::from).map_err(|_| wrong()),
        None => i64::try_from(after.unwrap_or(0)).map_err(|_| Failure::invalid("?after", "it is too large")),
    }
}

fn shown(reply: &Reply) -> Value {
    let envelope: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    json!({"seq": reply.seq, "at": clock::iso(reply.at_ms), "envelope": envelope})
}

/// A stream that is read only as fast as its client takes it.
fn events(inbox: Inbox, after: i64) -> axum::response::Response {
    let body = stream::unfold((inbox, after), |(inbox, after)| async move {
        // Whatever is wrong, the client comes back with the last number it has seen.
        let page = inbox.next(after, HEARTBEAT_MS).await.ok()?;
        let Some(last) = page.items.last().map(|reply| reply.seq) else {
            if inbox.shutdown.is_cancelled() {
                return None;
            }
            return Some((Ok::<_, Infallible>(HEARTBEAT), (inbox, after)));
        };
        let mut text = String::new();
        for reply in &page.items {
            let envelope = String::from_utf8_lossy(&reply.body).replace(['\r', '\n'], " ");
            text.push_str(&format!("id: {}\nevent: reply\ndata: {envelope}\n\n", reply.seq));
        }
        Some((Ok(Bytes::from(text)), (inbox, last)))
    });
    let mut response = answer::bytes(StatusCode::OK, EVENTS, Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    response
}
