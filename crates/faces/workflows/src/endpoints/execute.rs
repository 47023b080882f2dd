//! `POST /workflows/execute`: begins an execution, and waits for it if asked to (ADR-015).

use axum::response::Response;
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};
use orchestr8_contract::id::CorrelationId;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::Args;
use serde_json::{Map, Value};

use super::{Arguments, is_final, text};
use crate::actions::{EXECUTE, EXECUTION};
use crate::answer;
use crate::call::{Call, Given, Outcome};
use crate::failure::Failure;
use crate::settings::SYNC_BYTES;
use crate::to_wire;
use crate::wire::{Accepted, Completed};

const MEMBERS: [&str; 8] =
    ["workflow", "workflowId", "version", "revision", "inputs", "context", "priority", "tags"];

/// Polling sooner helps nobody (ADR-003); with a full queue it is worth waiting longer.
const RETRY_AFTER_S: u64 = 5;
const RETRY_AFTER_LIMIT_S: u64 = 60;
/// Each so many queued executions put the next look off by a second.
const QUEUED_PER_S: u64 = 20;

pub(crate) async fn execute(mut call: Call) -> Outcome {
    let began_us = call.face.kernel.ports().clock.elapsed_us();
    let is_sync = call.query(&["mode"])?.one_of("mode", &["sync", "async"])? == Some("sync");
    let body = call.read_large(&MEMBERS).await?;
    adopt_correlation(&mut call, &body.members)?;
    if body.members.contains_key("workflow") == body.members.contains_key("workflowId") {
        return Err(Failure::invalid("/", "give either workflow or workflowId").correlated(call.correlation));
    }
    let outcome = match call.once(EXECUTE, Args::read(body.members, body.text_bytes)).await {
        Ok(given) if is_sync => {
            let replayed = given.replayed;
            // Also where it joined an execution that has not ended, or failed.
            finish(&call, given, began_us).await.map_err(|failure| match replayed {
                true => failure.header(answer::REPLAYED, HeaderValue::from_static("true")),
                false => failure,
            })
        }
        Ok(given) => Ok(accept(&call, &given)),
        Err(failure) => Err(failure),
    };
    match outcome {
        Ok(mut response) => {
            answer::correlate(response.headers_mut(), &call.correlation);
            Ok(response)
        }
        Err(failure) => Err(failure.correlated(call.correlation)),
    }
}

/// The id inside the body is meant for the execution, so it goes before the one of the header.
fn adopt_correlation(call: &mut Call, members: &Map<String, Value>) -> Result<(), Failure> {
    let Some(given) = members.get("context").and_then(|context| context.get("correlationId")) else {
        return Ok(());
    };
    let parsed = given.as_str().map(CorrelationId::parse);
    match parsed {
        Some(Ok(id)) => call.correlation = id,
        Some(Err(wrong)) => return Err(Failure::invalid("/context/correlationId", wrong.to_string())),
        None => return Err(Failure::invalid("/context/correlationId", "must be a text")),
    }
    Ok(())
}

fn accept(call: &Call, given: &Given) -> Response {
    let (id, status) = (text(&given.value, "executionId"), text(&given.value, "status"));
    let message = match status {
        "queued" => "The execution waits for its turn; look at checkUrl.",
        _ => "The execution has begun; look at checkUrl.",
    };
    let url = call.execution_url(id);
    let body = Accepted { execution_id: id, status, message, check_url: &url };
    let mut response = answer::json(StatusCode::ACCEPTED, &body);
    answer::locate(&mut response, &url);
    answer::mark_replayed(&mut response, given.replayed);
    let depth = given.value.get("queueDepth").and_then(Value::as_u64).unwrap_or(0);
    let seconds = (RETRY_AFTER_S + depth / QUEUED_PER_S).min(RETRY_AFTER_LIMIT_S);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    response
}

/// Waits for the end within what is left of the limit. The execution goes on whatever becomes of this request.
async fn finish(call: &Call, given: Given, began_us: u64) -> Outcome {
    let (clock, limit_ms) = (&call.face.kernel.ports().clock, call.face.settings.sync_limit_ms);
    let id = text(&given.value, "executionId");
    loop {
        let elapsed_ms = clock.elapsed_us().saturating_sub(began_us) / 1000;
        let left_ms = limit_ms.saturating_sub(elapsed_ms);
        if left_ms == 0 {
            return Err(timed_out(call, id, elapsed_ms));
        }
        let args = Arguments::of("executionId", id)
            .with("waitMs", left_ms)
            .with("until", "final")
            .with("show", "result");
        let mut resource = match call.wait(EXECUTION, args.into_map()).await {
            Ok(resource) => resource,
            Err(failure) if failure.code() == Code::Timeout => return Err(timed_out(call, id, elapsed_ms)),
            Err(failure) => return Err(failure.about(id).pointing_to(&call.execution_url(id))),
        };
        if is_final(text(&resource, "status")) {
            let mut response = conclude(call, id, &mut resource)?;
            answer::mark_replayed(&mut response, given.replayed);
            return Ok(response);
        }
    }
}

/// 200 only for what completed. A failed execution is 422 and a cancelled one 409: the request was understood and done, and
/// it is not the server that failed, so no client or proxy should take it for a fault of ours and send it again.
fn conclude(call: &Call, id: &str, resource: &mut Map<String, Value>) -> Outcome {
    let url = call.execution_url(id);
    let failure = match ending(resource) {
        "completed" => return complete(id, &url, resource),
        "cancelled" => Fault::new(Code::Cancelled, "the execution was cancelled").into(),
        _ => failed(resource),
    };
    Err(failure.with("executionId", id).with("checkUrl", url.as_str()).about(id).pointing_to(&url))
}

/// How it ended: a rollback does not change whether it failed or was cancelled.
fn ending(resource: &Map<String, Value>) -> &str {
    match text(resource, "status") {
        "compensated" => {
            let compensation = resource.get("compensation");
            compensation.and_then(|compensation| compensation["cause"].as_str()).unwrap_or("failed")
        }
        status => status,
    }
}

fn complete(id: &str, url: &str, resource: &Map<String, Value>) -> Outcome {
    let member = |name: &str| resource.get(name).unwrap_or(&Value::Null);
    let body = answer::text(&Completed {
        execution_id: id,
        status: "completed",
        outputs: member("outputs"),
        duration: member("duration"),
        timestamp: member("completedAt"),
    });
    if body.len() > SYNC_BYTES {
        let message = format!("the outputs are larger than {SYNC_BYTES} bytes; read them from the execution");
        let fault = Fault::new(Code::PayloadTooLarge, message).with("limitBytes", SYNC_BYTES);
        let failure = Failure::from(fault.with("bytes", body.len()));
        return Err(failure.with("executionId", id).with("checkUrl", url).about(id).pointing_to(url));
    }
    let mut response = answer::bytes(StatusCode::OK, body);
    response.headers_mut().insert(http::header::CACHE_CONTROL, answer::NO_STORE);
    Ok(response)
}

fn failed(resource: &mut Map<String, Value>) -> Failure {
    let first = resource.get("errors").and_then(|errors| errors.get(0)).and_then(Value::as_object).cloned();
    to_wire::execution(resource);
    let errors = resource.remove("errors").unwrap_or_default();
    let failure = match first {
        Some(error) => Failure::of_step(&error),
        None => Fault::new(Code::AgentFailed, "the execution failed").into(),
    };
    let compensation = resource.remove("compensation");
    let failure = failure.with("errors", errors).status(StatusCode::UNPROCESSABLE_ENTITY);
    compensation.into_iter().fold(failure, |failure, compensation| failure.with("compensation", compensation))
}

fn timed_out(call: &Call, id: &str, elapsed_ms: u64) -> Failure {
    let url = call.execution_url(id);
    let fault = Fault::new(Code::Timeout, "the execution goes on; look at checkUrl for its result")
        .with("executionId", id)
        .with("checkUrl", url.as_str())
        .with("elapsedTime", elapsed_ms);
    Failure::from(fault).about(id).pointing_to(&url)
}
