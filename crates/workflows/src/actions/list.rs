//! `executions.list`: executions, the newest first.

use orchestr8_contract::Fault;
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::{Action, Args, Context, Halt, Reply, schema};
use serde_json::{Value, json};

use super::{answer, hidden, moment, object, page, reading};
use crate::engine::event::Status;
use crate::runtime::{Hub, Row, fault, load};
use crate::{limits, tables};

pub fn action(hub: &Hub) -> Result<Action, schema::Error> {
    hidden("executions.list", "Lists executions.", object(filters(limits::PAGE), &[]), reading(), hub, list)
}

/// The filters of a list, for every action that takes them.
pub fn filters(limit: i64) -> Value {
    let statuses: Vec<&str> = Status::ALL.iter().map(|status| status.as_str()).collect();
    json!({
        "status": {"enum": statuses}, "workflowId": {"type": "string"}, "correlationId": {"type": "string"},
        "since": {"type": ["string", "integer"]}, "until": {"type": ["string", "integer"]},
        "cursor": {"type": "string"}, "limit": {"type": "integer", "minimum": 1, "maximum": limit}
    })
}

async fn list(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let limit = page(&args, 50, limits::PAGE);
    let rows = find(&hub, &args, &context, limit + 1).await?;
    let more = rows.len() > usize::try_from(limit).unwrap_or(usize::MAX);
    let shown = &rows[..rows.len().min(usize::try_from(limit).unwrap_or(usize::MAX))];
    let next = shown.last().filter(|_| more).map(|row| row.num.to_string());
    let now_ms = hub.ports().clock.now_ms();
    let executions: Vec<Value> = shown.iter().map(|row| summary(row, now_ms)).collect();
    answer(json!({"executions": executions, "nextCursor": next}))
}

/// The executions the filters pick.
pub async fn find(hub: &Hub, args: &Args, context: &Context, limit: i64) -> Result<Vec<Row>, Fault> {
    let before = match args.text("cursor") {
        None => i64::MAX,
        Some(cursor) => cursor
            .parse()
            .map_err(|_| Fault::invalid("/cursor: this is no cursor of this list").with("path", "/cursor"))?,
    };
    let wanted = tables::Wanted {
        tenant: context.principal.tenant.as_str(),
        status: args.text("status"),
        workflow: args.text("workflowId"),
        correlation: args.text("correlationId"),
        since_ms: moment(args, "since")?,
        until_ms: moment(args, "until")?,
        before,
        limit,
    };
    let rows = hub.ports().store.query(tables::executions_page(&wanted)).await.map_err(fault)?;
    rows.iter().map(load::read).collect()
}

pub fn summary(row: &Row, now_ms: i64) -> Value {
    let error: Option<Value> = row.error.as_ref().and_then(|error| serde_json::from_str(error).ok());
    json!({
        "executionId": row.id, "status": row.status,
        "workflow": {"id": row.workflow, "name": row.name, "version": row.version},
        "startedBy": row.given.principal, "correlationId": row.correlation, "createdAt": iso(row.created_ms), "startedAt": row.started_ms.map(iso),
        "completedAt": row.ended_ms.map(iso),
        "duration": row.started_ms.map(|started| row.ended_ms.unwrap_or(now_ms) - started), "error": error,
    })
}
