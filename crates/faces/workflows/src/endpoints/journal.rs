//! `GET /executions/{id}/journal`: what happened, page by page (ADR-003, WF-19.7).

use http::header::LAST_MODIFIED;
use http::{HeaderMap, HeaderValue, StatusCode};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use serde_json::{Map, Value};

use super::execution::mark;
use super::{Arguments, journal_lines};
use crate::actions::JOURNAL;
use crate::answer;
use crate::call::{Call, Outcome};
use crate::etag::{self, Condition};
use crate::failure::Failure;
use crate::settings::{ENTRIES_LIMIT, JOURNAL_BYTES};
use crate::to_wire;
use orchestr8_edge::ask::{Query, digits};

/// Entries on a page, unless the client wants another number (WF-19.7).
const PAGE: u64 = 100;
const LEVELS: [&str; 4] = ["debug", "info", "warn", "error"];
const FORMATS: [&str; 2] = ["json", "ndjson"];
/// Kinds of entries one request names; there are not many more.
const TYPES: usize = 32;
const REVALIDATE: HeaderValue = HeaderValue::from_static("private, max-age=0, must-revalidate");

pub(crate) async fn read(call: Call) -> Outcome {
    let query = call.query(&["since", "cursor", "limit", "level", "types", "format"])?;
    let id = call.param("id")?.to_owned();
    let limit = query.number("limit", 1..=ENTRIES_LIMIT)?;
    let filter = filter(&query, &id)?;
    if query.one_of("format", &FORMATS)? == Some("ndjson") {
        return journal_lines::stream(call, id, filter, limit).await;
    }
    let args = Arguments(filter).with("limit", limit.unwrap_or(PAGE));
    let page = call.ask(JOURNAL, args.into_map()).await.map_err(|failure| failure.about(&id))?;
    present(call.headers(), page)
}

/// What selects entries, whatever form they are sent in.
fn filter(query: &Query, id: &str) -> Result<Map<String, Value>, Failure> {
    let mut args = Arguments::of("executionId", id).maybe("level", query.one_of("level", &LEVELS)?);
    if let Some(since) = query.text("since") {
        args = match digits(since) {
            Some(sequence) => args.with("since", sequence),
            None => args.maybe("since", query.moment("since")?),
        };
    }
    if query.number("cursor", 0..=i64::MAX.unsigned_abs())?.is_some() {
        args = args.maybe("cursor", query.text("cursor"));
    }
    if let Some(types) = query.bounded("types", TYPES * 64)? {
        let types: Vec<Value> = types.split(',').map(Value::from).collect();
        if types.len() > TYPES || types.iter().any(|word| word == "") {
            return Err(Failure::invalid(
                "?types",
                "must be 1 to 32 kinds of entries with commas between them",
            ));
        }
        args = args.with("types", types);
    }
    Ok(args.into_map())
}

fn present(headers: &HeaderMap, mut page: Map<String, Value>) -> Outcome {
    let tag = tag(&page);
    let modified = last_modified(&page);
    let mut response = match etag::check(headers, &tag) {
        Condition::Fresh => answer::empty(StatusCode::NOT_MODIFIED),
        // If-Match wants a strong tag, which a journal never has.
        Condition::Failed => {
            let message = "a journal has weak tags only, which If-Match never accepts";
            return Err(Failure::invalid("If-Match", message).status(StatusCode::PRECONDITION_FAILED));
        }
        Condition::Met => {
            translate(&mut page);
            page.insert("etag".into(), tag.as_str().into());
            fit(&mut page);
            answer::bytes(StatusCode::OK, answer::text(&page))
        }
    };
    mark(&mut response, &tag, REVALIDATE);
    if let Some(modified) = modified {
        response.headers_mut().insert(LAST_MODIFIED, modified);
    }
    Ok(response)
}

/// The weak tag of a page: how many entries there are, and the last one shown.
pub(crate) fn tag(page: &Map<String, Value>) -> String {
    let total = page.get("summary").and_then(|summary| summary.get("totalEntries")).and_then(Value::as_u64);
    let last = page.get("entries").and_then(Value::as_array).and_then(|entries| entries.last());
    etag::of_journal(total.unwrap_or(0), last)
}

/// When the newest entry was written, as HTTP dates it.
pub(crate) fn last_modified(page: &Map<String, Value>) -> Option<HeaderValue> {
    let at: Timestamp = page.get("lastModified")?.as_str()?.parse().ok()?;
    let text = DateTimePrinter::new().timestamp_to_rfc9110_string(&at).ok()?;
    HeaderValue::try_from(text).ok()
}

/// Errors inside entries get the words of this face.
pub(crate) fn translate(page: &mut Map<String, Value>) {
    if let Some(Value::Array(entries)) = page.get_mut("entries") {
        entries.iter_mut().filter_map(|entry| entry.get_mut("data")).for_each(to_wire::inner_error);
    }
}

/// The cursor that leads on after an entry.
pub(crate) fn cursor_after(entry: Option<&Value>) -> Value {
    entry.and_then(|entry| entry.get("sequence")).map_or(Value::Null, |sequence| sequence.to_string().into())
}

/// Leaves off entries at the end until the answer keeps its limit; the cursor then leads to them (ADR-015).
fn fit(page: &mut Map<String, Value>) {
    let Some(Value::Array(entries)) = page.get_mut("entries") else { return };
    /// Room for what surrounds the entries.
    const AROUND_BYTES: usize = 4096;
    let mut room = JOURNAL_BYTES - AROUND_BYTES;
    let fitting = entries.iter().take_while(|entry| {
        let bytes = answer::text(entry).len() + 1;
        let fits = bytes <= room;
        room = room.saturating_sub(bytes);
        fits
    });
    let kept = fitting.count();
    if kept == entries.len() {
        return;
    }
    entries.truncate(kept);
    let cursor = cursor_after(entries.last());
    if let Some(Value::Object(pagination)) = page.get_mut("pagination") {
        pagination.insert("hasMore".into(), true.into());
        pagination.insert("nextCursor".into(), cursor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_page_that_is_too_large_leads_to_the_rest() {
        let entry = |sequence: u64| json!({"sequence": sequence, "data": "x".repeat(1_000_000)});
        let mut page = Arguments::of("entries", (1..=12).map(entry).collect::<Vec<_>>())
            .with("pagination", json!({"hasMore": false, "nextCursor": null, "limit": 100}))
            .into_map();
        fit(&mut page);
        assert_eq!(page["entries"].as_array().unwrap().len(), 10);
        assert_eq!(page["pagination"], json!({"hasMore": true, "nextCursor": "10", "limit": 100}));
        assert!(answer::text(&page).len() <= JOURNAL_BYTES);
    }

    #[test]
    fn a_time_is_written_as_http_wants_it() {
        let page = Arguments::of("lastModified", "2026-01-01T00:00:00.500Z").into_map();
        assert_eq!(last_modified(&page).unwrap(), "Thu, 01 Jan 2026 00:00:00 GMT");
        assert!(last_modified(&Map::new()).is_none());
    }
}
