//! `executions.journal`: what happened in an execution, entry by entry (WF-19.7).

use orchestr8_contract::Fault;
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::store;
use orchestr8_kernel::{Action, Args, Context, Halt, Reply, schema};
use serde_json::{Value, json};

use super::{answer, execution, execution_id, hidden, moment, object, page, reading};
use crate::runtime::{Hub, Row, fault};
use crate::tables;

const PRESET: i64 = 100;
const MOST: i64 = 1000;

pub fn action(hub: &Hub) -> Result<Action, schema::Error> {
    let input = object(
        json!({
            "executionId": execution_id(),
            "since": {"type": ["integer", "string"], "description": "A sequence number, or a moment in ISO 8601; what came after it."},
            "cursor": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST},
            "level": {"enum": ["debug", "info", "warn", "error"]},
            "types": {"type": "array", "items": {"type": "string"}, "maxItems": 50}
        }),
        &["executionId"],
    );
    hidden("executions.journal", "Shows the journal of an execution.", input, reading(), hub, show)
}

async fn show(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let mut row = execution(&hub, &args, &context).await?;
    let limit = page(&args, PRESET, MOST);
    let (after, since_ms) = beginning(&args)?;
    let levels: Vec<&str> = args.text("level").into_iter().collect();
    let kinds: Vec<String> = args
        .get("types")
        .and_then(Value::as_array)
        .map(|types| types.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default();
    let store = &hub.ports().store;
    // What is written meanwhile belongs to the next page, and one that is final has all of it.
    let (rows, end) = loop {
        let end = store.query(tables::journal_end(row.num)).await.map_err(fault)?;
        let last = end.first().map_or(Ok(0), |end| end.int(0)).map_err(fault)?;
        let page = tables::journal_page(row.num, (after, last), since_ms, &levels, &kinds, limit + 1);
        let rows = store.query(page).await.map_err(fault)?;
        let was_final = row.status.is_final();
        row = execution(&hub, &args, &context).await?;
        if row.status.is_final() == was_final {
            break (rows, end);
        }
    };
    let shown = usize::try_from(limit).unwrap_or(usize::MAX).min(rows.len());
    let entries: Vec<Value> =
        rows[..shown].iter().map(|one| entry(one, &row)).collect::<Result<_, Fault>>()?;
    let has_more = rows.len() > shown;
    let next = entries.last().filter(|_| has_more).map(|entry| entry["sequence"].to_string());
    let count = |column: usize| end.first().and_then(|row| row.int(column).ok()).unwrap_or(0);
    answer(json!({
        "executionId": row.id, "entries": entries,
        "pagination": {"hasMore": has_more, "nextCursor": next, "limit": limit},
        "summary": {"totalEntries": count(0), "errors": count(3), "warnings": count(4), "retries": count(5)},
        "lastModified": iso(count(1).max(row.created_ms)), "final": row.status.is_final(),
    }))
}

/// After which entry, or after which moment. A cursor goes on where a page ended, so it wins.
fn beginning(args: &Args) -> Result<(i64, Option<i64>), Fault> {
    let wrong = || Fault::invalid("/cursor: this is no cursor of this journal").with("path", "/cursor");
    let cursor = args.text("cursor").map(|cursor| cursor.parse().map_err(|_| wrong())).transpose()?;
    match (cursor, args.get("since")) {
        (Some(cursor), Some(Value::String(_))) => Ok((cursor, moment(args, "since")?)),
        (Some(cursor), _) => Ok((cursor, None)),
        (None, Some(Value::Number(seq))) => Ok((seq.as_i64().unwrap_or(i64::MAX), None)),
        (None, Some(_)) => Ok((0, moment(args, "since")?)),
        (None, None) => Ok((0, None)),
    }
}

fn entry(row: &store::Row, execution: &Row) -> Result<Value, Fault> {
    let at_ms = row.int(1).map_err(fault)?;
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or(Value::Null);
    let mut entry = json!({
        "sequence": row.int(0).map_err(fault)?, "timestamp": at_ms - execution.created_ms, "at": iso(at_ms),
        "correlationId": execution.correlation, "type": row.text(2).map_err(fault)?,
        "level": row.text(4).map_err(fault)?, "data": read(row.text(5).map_err(fault)?),
    });
    if let Some(step) = row.optional_text(3).map_err(fault)? {
        entry["stepId"] = step.into();
    }
    if let Some(truncated) = row.optional_text(6).map_err(fault)? {
        entry["truncated"] = read(truncated);
    }
    Ok(entry)
}
