//! Many executions at once: `POST /executions/cancel` and `POST /executions/delete`.

use http::StatusCode;
use orchestr8_kernel::Args;
use serde_json::Value;

use crate::actions::{CANCEL_MANY, DELETE_MANY};
use crate::answer;
use crate::call::{Call, Outcome};
use crate::to_wire;

const CANCEL: [&str; 12] = [
    "ids",
    "where",
    "status",
    "workflowId",
    "correlationId",
    "since",
    "until",
    "cursor",
    "limit",
    "dryRun",
    "reason",
    "force",
];

/// The same without what only a cancellation takes.
const DELETE: &[&str] = CANCEL.split_at(10).0;

/// 202: each is being stopped. 200 for a dry run.
pub(crate) async fn cancel(call: Call) -> Outcome {
    act(&call, CANCEL_MANY, &CANCEL, StatusCode::ACCEPTED).await
}

pub(crate) async fn delete(call: Call) -> Outcome {
    act(&call, DELETE_MANY, DELETE, StatusCode::OK).await
}

async fn act(call: &Call, action: &'static str, members: &[&str], done: StatusCode) -> Outcome {
    call.query(&[])?;
    let body = call.read(members)?;
    let mut given = call.once(action, Args::read(body.members, body.text_bytes)).await?;
    if let Some(Value::Array(rows)) = given.value.get_mut("sample") {
        rows.iter_mut().for_each(to_wire::inner_error);
    }
    let is_dry = given.value.get("dryRun") == Some(&Value::Bool(true));
    let mut response = answer::json(if is_dry { StatusCode::OK } else { done }, &given.value);
    answer::mark_replayed(&mut response, given.replayed);
    Ok(response)
}
