//! Lists of executions, for people and for the dashboard.

use http::StatusCode;
use serde_json::Value;

use super::Arguments;
use crate::actions::{EXECUTIONS, RETRY_MANY};
use crate::answer;
use crate::call::{Call, Outcome};
use crate::failure::Failure;
use crate::settings::PAGE_LIMIT;
use crate::to_wire;
use orchestr8_edge::ask::Query;
use orchestr8_kernel::Args;

pub(crate) const STATUSES: [&str; 9] = [
    "queued",
    "running",
    "paused",
    "cancelling",
    "compensating",
    "completed",
    "failed",
    "cancelled",
    "compensated",
];

/// The longest id or search text a filter takes.
const TEXT: usize = 256;
/// The longest cursor we give.
const CURSOR: usize = 512;

/// `GET /executions` and `GET /dashboard/executions`, newest first.
pub(crate) async fn executions(call: Call) -> Outcome {
    let query =
        call.query(&["status", "workflowId", "correlationId", "since", "until", "cursor", "limit"])?;
    let args = page(&query)?
        .maybe("status", query.one_of("status", &STATUSES)?)
        .maybe("workflowId", query.bounded("workflowId", TEXT)?)
        .maybe("correlationId", query.bounded("correlationId", TEXT)?)
        .maybe("since", query.moment("since")?)
        .maybe("until", query.moment("until")?);
    let mut found = call.ask(EXECUTIONS, args.into_map()).await?;
    if let Some(Value::Array(rows)) = found.get_mut("executions") {
        rows.iter_mut().for_each(to_wire::inner_error);
    }
    Ok(answer::json(StatusCode::OK, &found))
}

/// `POST /executions/retry`: goes on with many that failed.
pub(crate) async fn retry(call: Call) -> Outcome {
    call.query(&[])?;
    let body = call.read_if_any(&["status", "workflowId", "correlationId", "since", "until", "limit"])?;
    let given = call.once(RETRY_MANY, Args::read(body.members, body.text_bytes)).await?;
    let mut response = answer::json(StatusCode::ACCEPTED, &given.value);
    answer::mark_replayed(&mut response, given.replayed);
    Ok(response)
}

/// The parameters every list has.
pub(crate) fn page(query: &Query) -> Result<Arguments, Failure> {
    Ok(Arguments::default()
        .maybe("cursor", query.bounded("cursor", CURSOR)?)
        .maybe("limit", query.number("limit", 1..=PAGE_LIMIT)?))
}
