//! A journal as lines of JSON, read and sent page by page, so that a long one costs no memory.

use std::collections::VecDeque;

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LAST_MODIFIED};
use http::{HeaderValue, StatusCode};
use serde_json::{Map, Value, json};

use super::Arguments;
use super::execution::mark;
use super::journal::{cursor_after, last_modified, tag, translate};
use crate::actions::JOURNAL;
use crate::answer;
use crate::call::{Call, Outcome};
use crate::etag::{self, Condition};
use crate::failure::Failure;
use crate::settings::JOURNAL_BYTES;

const LINES: HeaderValue = HeaderValue::from_static("application/x-ndjson");

/// Entries read at once.
const PAGE: u64 = 500;

/// Where the reading of a journal has come.
struct Reading {
    call: Call,
    filter: Map<String, Value>,
    /// Entries the client still wants; none: all.
    wanted: Option<u64>,
    room: usize,
    pages: VecDeque<Map<String, Value>>,
    ended: bool,
}

/// The first page is read before the answer begins, so that what is wrong gets its proper status.
pub(crate) async fn stream(
    call: Call,
    id: String,
    filter: Map<String, Value>,
    limit: Option<u64>,
) -> Outcome {
    let mut reading =
        Reading { call, filter, wanted: limit, room: JOURNAL_BYTES, pages: VecDeque::new(), ended: false };
    let first = reading.fetch().await.map_err(|failure| failure.about(id))?;
    let (tag, modified) = (tag(&first), last_modified(&first));
    if etag::check(reading.call.headers(), &tag) == Condition::Fresh {
        let mut response = answer::empty(StatusCode::NOT_MODIFIED);
        mark(&mut response, &tag, HeaderValue::from_static("private, max-age=0, must-revalidate"));
        return Ok(response);
    }
    reading.pages.push_back(first);
    let lines = stream::unfold(reading, |mut reading| async move {
        let chunk = reading.next().await?;
        Some((chunk, reading))
    });
    let mut response = answer::bytes(StatusCode::OK, Body::from_stream(lines));
    mark(&mut response, &tag, HeaderValue::from_static("private, max-age=0, must-revalidate"));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, LINES);
    headers.insert(CACHE_CONTROL, answer::NO_STORE);
    if let Some(modified) = modified {
        headers.insert(LAST_MODIFIED, modified);
    }
    Ok(response)
}

impl Reading {
    async fn fetch(&self) -> Result<Map<String, Value>, Failure> {
        let limit = self.wanted.unwrap_or(PAGE).min(PAGE);
        let args = Arguments(self.filter.clone()).with("limit", limit);
        self.call.ask(JOURNAL, args.into_map()).await
    }

    /// The next lines. A failure in the middle breaks the answer off, which a client notices.
    async fn next(&mut self) -> Option<Result<Bytes, Box<dyn std::error::Error + Send + Sync>>> {
        if self.ended {
            return None;
        }
        let page = match self.pages.pop_front() {
            Some(page) => page,
            None => match self.fetch().await {
                Ok(page) => page,
                Err(failure) => {
                    self.ended = true;
                    return Some(Err(failure.message().into()));
                }
            },
        };
        Some(Ok(self.write(page)))
    }

    fn write(&mut self, mut page: Map<String, Value>) -> Bytes {
        translate(&mut page);
        let mut out = Vec::new();
        let mut last = Value::Null;
        let entries = page.get("entries").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for entry in entries {
            let line = answer::text(entry);
            if line.len() >= self.room {
                // The limit of one answer (ADR-015): the last line says where to go on.
                let more = json!({"pagination": {"hasMore": true, "nextCursor": last}});
                out.extend_from_slice(&answer::text(&more));
                out.push(b'\n');
                self.ended = true;
                return out.into();
            }
            self.room -= line.len() + 1;
            out.extend_from_slice(&line);
            out.push(b'\n');
            last = cursor_after(Some(entry));
        }
        let count = u64::try_from(entries.len()).unwrap_or(u64::MAX);
        self.wanted = self.wanted.map(|wanted| wanted.saturating_sub(count));
        let pagination = page.get("pagination");
        let has_more = pagination.and_then(|pages| pages.get("hasMore")).and_then(Value::as_bool);
        let cursor = pagination.and_then(|pages| pages.get("nextCursor")).filter(|cursor| !cursor.is_null());
        match cursor {
            Some(cursor) if has_more == Some(true) && self.wanted != Some(0) && count > 0 => {
                self.filter.insert("cursor".into(), cursor.clone());
            }
            Some(_) | None => self.ended = true,
        }
        out.into()
    }
}
