//! Lists of executions, for people and for the dashboard.

use http::StatusCode;
use serde_json::{Map, Value};

use super::Arguments;
use crate::actions::{EXECUTIONS, RETRY_MANY};
use crate::answer;
use crate::call::{Call, Outcome};
use crate::failure::Failure;
use crate::settings::PAGE_LIMIT;
use crate::to_wire;
use orchestr8_edge::ask::Query;
use orchestr8_kernel::Args;

pub(crate) const STATUSES: [&str; 10] = [
    "queued",
    "running",
    "waiting",
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
    let known = ["id", "status", "workflowId", "correlationId", "where", "since", "until", "cursor", "limit"];
    let query = call.query_with_lists(&known, &["where"])?;
    let args = page(&query)?
        .maybe("id", query.bounded("id", TEXT)?)
        .maybe("status", query.one_of("status", &STATUSES)?)
        .maybe("workflowId", query.bounded("workflowId", TEXT)?)
        .maybe("correlationId", query.bounded("correlationId", TEXT)?)
        .maybe("where", tags(&query)?)
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
    let body =
        call.read_if_any(&["status", "workflowId", "correlationId", "where", "since", "until", "limit"])?;
    let given = call.once(RETRY_MANY, Args::read(body.members, body.text_bytes)).await?;
    let mut response = answer::json(StatusCode::ACCEPTED, &given.value);
    answer::mark_replayed(&mut response, given.replayed);
    Ok(response)
}

/// The tags that executions must have: `where=customer=42`, once for each.
fn tags(query: &Query) -> Result<Option<Value>, Failure> {
    let mut tags = Map::new();
    for pair in query.texts("where") {
        let Some((key, value)) = pair.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(Failure::invalid("?where", "must be key=value, such as customer=42"));
        };
        if tags.insert(key.to_owned(), value.into()).is_some() {
            return Err(Failure::invalid("?where", format!("names the tag \"{key}\" twice")));
        }
    }
    Ok((!tags.is_empty()).then_some(Value::Object(tags)))
}

/// The parameters every list has.
pub(crate) fn page(query: &Query) -> Result<Arguments, Failure> {
    Ok(Arguments::default()
        .maybe("cursor", query.bounded("cursor", CURSOR)?)
        .maybe("limit", query.number("limit", 1..=PAGE_LIMIT)?))
}
