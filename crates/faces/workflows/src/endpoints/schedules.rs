//! Schedules: what runs at which times.

use http::StatusCode;
use orchestr8_kernel::Args;
use serde_json::Value;

use super::Arguments;
use super::lists::page;
use crate::actions::{
    APPLY_SCHEDULE, DELETE_SCHEDULE, PAUSE_SCHEDULE, RESUME_SCHEDULE, SCHEDULE, SCHEDULES, TRIGGER_SCHEDULE,
};
use crate::answer;
use crate::call::{Call, Outcome};
use crate::failure::Failure;
use orchestr8_edge::ask::Body;

const MEMBERS: [&str; 9] =
    ["id", "workflowId", "cron", "timeZone", "inputs", "tags", "overlap", "backfill", "paused"];

pub(crate) async fn list(call: Call) -> Outcome {
    let query = call.query(&["cursor", "limit"])?;
    Ok(answer::json(StatusCode::OK, &call.ask(SCHEDULES, page(&query)?.into_map()).await?))
}

/// `PUT` or `POST /schedules`: the id is in the body.
pub(crate) async fn apply(call: Call) -> Outcome {
    call.query(&[])?;
    let body = call.read(&MEMBERS)?;
    store(&call, body).await
}

/// `PUT /schedules/{id}`: the id is in the path, and in the body only if it is the same.
pub(crate) async fn put(call: Call) -> Outcome {
    call.query(&[])?;
    let mut body = call.read(&MEMBERS)?;
    let id = call.param("id")?;
    match body.members.get("id") {
        Some(other) if other != id => {
            return Err(Failure::invalid("/id", "the path names another schedule"));
        }
        Some(_) | None => {}
    }
    body.members.insert("id".into(), id.into());
    store(&call, body).await
}

async fn store(call: &Call, body: Body) -> Outcome {
    let given = call.once(APPLY_SCHEDULE, Args::new(body.members)).await?;
    let mut response = answer::json(StatusCode::OK, &given.value);
    answer::mark_replayed(&mut response, given.replayed);
    Ok(response)
}

pub(crate) async fn show(call: Call) -> Outcome {
    call.query(&[])?;
    let args = Arguments::of("id", call.param("id")?);
    Ok(answer::json(StatusCode::OK, &call.ask(SCHEDULE, args.into_map()).await?))
}

pub(crate) async fn delete(call: Call) -> Outcome {
    act(call, DELETE_SCHEDULE, StatusCode::OK).await
}

pub(crate) async fn pause(call: Call) -> Outcome {
    act(call, PAUSE_SCHEDULE, StatusCode::OK).await
}

pub(crate) async fn resume(call: Call) -> Outcome {
    act(call, RESUME_SCHEDULE, StatusCode::OK).await
}

pub(crate) async fn trigger(call: Call) -> Outcome {
    act(call, TRIGGER_SCHEDULE, StatusCode::ACCEPTED).await
}

/// Runs an action on the schedule the path names. A body has nothing to say here.
async fn act(call: Call, action: &'static str, status: StatusCode) -> Outcome {
    call.query(&[])?;
    call.read_if_any(&[])?;
    let args = Arguments::of("id", call.param("id")?);
    let given = call.once(action, Args::new(args.into_map())).await?;
    let mut response = answer::json(status, &given.value);
    answer::mark_replayed(&mut response, given.replayed);
    if let Some(execution) = given.value.get("executionId").and_then(Value::as_str) {
        answer::locate(&mut response, &call.execution_url(execution));
    }
    Ok(response)
}
