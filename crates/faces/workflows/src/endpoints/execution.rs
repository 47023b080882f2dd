//! `GET /executions/{id}`: one execution, with its tag, and with a wait if asked to (ADR-003).

use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, ETAG};
use http::{HeaderMap, HeaderValue, StatusCode};
use orchestr8_contract::{Code, Fault};
use serde_json::{Map, Value};

use super::{Arguments, is_final, text};
use crate::actions::{ARTIFACT, DEFINITION, EXECUTION};
use crate::answer;
use crate::call::{Call, Outcome};
use crate::etag::{self, Condition};
use crate::failure::Failure;
use crate::to_wire;

const WHILE_LIVE: HeaderValue = HeaderValue::from_static("private, max-age=0, must-revalidate");
const ONCE_FINAL: HeaderValue = HeaderValue::from_static("private, max-age=60");

pub(crate) async fn show(call: Call) -> Outcome {
    let query = call.query(&["wait", "at"])?;
    let id = call.param("id")?;
    let at = query.number("at", 0..=i64::MAX.unsigned_abs())?;
    let wait_ms = query.wait_ms("wait")?.filter(|ms| *ms > 0);
    if at.is_some() && wait_ms.is_some() {
        return Err(Failure::invalid("?at", "what was at a moment does not change: it cannot be waited for"));
    }
    let seen = match wait_ms {
        None => look(&call, Arguments::of("executionId", id).maybe("at", at), false).await,
        Some(wait_ms) if etag::is_conditional(call.headers()) => wait_for_change(&call, id, wait_ms).await,
        Some(wait_ms) => {
            let args = Arguments::of("executionId", id).with("waitMs", wait_ms).with("until", "final");
            look(&call, args, true).await
        }
    };
    match seen {
        Ok(seen) => present(call.headers(), &seen, id),
        Err(failure) => Err(failure.about(id)),
    }
}

/// `GET /executions/{id}/workflow`: what it runs, as it was written.
pub(crate) async fn definition(call: Call) -> Outcome {
    call.query(&[])?;
    let id = call.param("id")?;
    let args = Arguments::of("executionId", id).into_map();
    let given = call.ask(DEFINITION, args).await.map_err(|failure| failure.about(id))?;
    Ok(answer::json(StatusCode::OK, &given))
}

/// `GET /executions/{id}/artifacts/{artifact}`: a result that was kept as an artifact. It is a file to keep, never a page to show.
pub(crate) async fn artifact(call: Call) -> Outcome {
    call.query(&[])?;
    let id = call.param("id")?;
    let args = Arguments::of("executionId", id).with("artifactId", call.param("artifact")?).into_map();
    let mut given = call.ask(ARTIFACT, args).await.map_err(|failure| failure.about(id))?;
    let content_type = HeaderValue::from_str(text(&given, "contentType"));
    let tag = HeaderValue::from_str(&format!("\"{}\"", text(&given, "sha256")));
    let body = match given.remove("body") {
        Some(Value::String(body)) => body,
        Some(_) | None => String::new(),
    };
    let mut response = Response::new(body.into());
    let headers = response.headers_mut();
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    headers.insert(CACHE_CONTROL, ONCE_FINAL);
    for (name, value) in [(CONTENT_TYPE, content_type), (ETAG, tag)] {
        if let Ok(value) = value {
            headers.insert(name, value);
        }
    }
    Ok(response)
}

/// An execution as clients see it, and its tag.
struct Seen {
    resource: Map<String, Value>,
    tag: String,
}

async fn look(call: &Call, args: Arguments, waits: bool) -> Result<Seen, Failure> {
    let mut resource = match waits {
        true => call.wait(EXECUTION, args.into_map()).await?,
        false => call.ask(EXECUTION, args.into_map()).await?,
    };
    to_wire::execution(&mut resource);
    let tag = etag::of_execution(&resource);
    Ok(Seen { resource, tag })
}

/// Waits until the execution is another than the client has, or the time is over.
async fn wait_for_change(call: &Call, id: &str, wait_ms: u64) -> Result<Seen, Failure> {
    let clock = &call.face.kernel.ports().clock;
    let began_us = clock.elapsed_us();
    let mut seen = look(call, Arguments::of("executionId", id), false).await?;
    loop {
        let elapsed_ms = clock.elapsed_us().saturating_sub(began_us) / 1000;
        let left_ms = wait_ms.saturating_sub(elapsed_ms);
        let done = left_ms == 0 || is_final(text(&seen.resource, "status"));
        if done || etag::check(call.headers(), &seen.tag) != Condition::Fresh {
            return Ok(seen);
        }
        // A change between the two looks is not missed: it is one after what was seen.
        let args = Arguments::of("executionId", id).with("until", "change").with("waitMs", left_ms);
        seen = look(call, args.maybe("after", seen.resource.remove("lastSequence")), true).await?;
    }
}

fn present(headers: &HeaderMap, seen: &Seen, id: &str) -> Outcome {
    let mut response = match etag::check(headers, &seen.tag) {
        Condition::Met => answer::bytes(StatusCode::OK, answer::text(&seen.resource)),
        Condition::Fresh => answer::empty(StatusCode::NOT_MODIFIED),
        Condition::Failed => {
            let fault = Fault::new(Code::VersionMismatch, "the execution is another than If-Match names")
                .with("etag", seen.tag.as_str());
            let failure = Failure::from(fault).status(StatusCode::PRECONDITION_FAILED).about(id);
            return Err(match etag::header(&seen.tag) {
                Some(tag) => failure.header(ETAG, tag),
                None => failure,
            });
        }
    };
    let cache = if is_final(text(&seen.resource, "status")) { ONCE_FINAL } else { WHILE_LIVE };
    mark(&mut response, &seen.tag, cache);
    Ok(response)
}

/// What lets a client keep an answer and ask again cheaply.
pub(crate) fn mark(response: &mut Response, tag: &str, cache: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, cache);
    if let Some(tag) = etag::header(tag) {
        headers.insert(ETAG, tag);
    }
}
