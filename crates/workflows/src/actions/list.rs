//! `executions.list`: executions, the newest first.

use orchestr8_contract::Fault;
use orchestr8_contract::id::Tenant;
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::store::Statement;
use orchestr8_kernel::{Action, Args, Context, Halt, Reply, schema};
use serde_json::{Value, json};

use super::{answer, hidden, moment, object, page, reading};
use crate::engine::event::Status;
use crate::runtime::{Hub, Row, fault, load};
use crate::tags::{self, ExecutionTags};
use crate::{bulk, limits, tables};

pub fn action(hub: &Hub) -> Result<Action, schema::Error> {
    let mut filters = filters(limits::PAGE);
    filters["id"] = json!({"type": "string", "maxLength": 256});
    hidden("executions.list", "Lists executions.", object(filters, &[]), reading(), hub, list)
}

/// The filters of a list, for every action that takes them.
pub fn filters(limit: i64) -> Value {
    let statuses: Vec<&str> = Status::ALL.iter().map(|status| status.as_str()).collect();
    json!({
        "status": {"enum": statuses}, "workflowId": {"type": "string"}, "correlationId": {"type": "string"},
        "where": {"type": "object", "description": "Tags that executions must have, all of them."},
        "since": {"type": ["string", "integer"]}, "until": {"type": ["string", "integer"]},
        "cursor": {"type": "string"}, "limit": {"type": "integer", "minimum": 1, "maximum": limit}
    })
}

/// The newest execution of the tenant.
const LAST: &str = "last";

/// What every id begins with; it may be left out.
const PREFIX: &str = "exec-";

/// Which executions an id, the beginning of one, or `last` means.
#[derive(Default)]
struct IdFilter {
    prefix: Option<String>,
    is_last: bool,
}

impl IdFilter {
    fn read(args: &Args) -> Result<Self, Fault> {
        let Some(given) = args.text("id") else { return Ok(Self::default()) };
        if given == LAST {
            return Ok(Self { prefix: None, is_last: true });
        }
        let rest = given.strip_prefix(PREFIX).unwrap_or(given);
        let is_id = rest.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        if !is_id || rest.len() < limits::ID_PREFIX_CHARACTERS {
            let least = limits::ID_PREFIX_CHARACTERS;
            let text = format!(
                "/id: '{given}' is no id of an execution, nor {least} characters of its beginning or more"
            );
            return Err(Fault::invalid(text).with("path", "/id").with(
                "hint",
                "give more of the id, with or without exec-, or last for the newest execution",
            ));
        }
        Ok(Self { prefix: Some(format!("{PREFIX}{}", rest.to_ascii_lowercase())), is_last: false })
    }
}

async fn list(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let limit = page(&args, 50, limits::PAGE);
    let is_last = IdFilter::read(&args)?.is_last;
    let rows = find(&hub, &args, &context, if is_last { 1 } else { limit + 1 }).await?;
    let more = rows.len() > usize::try_from(limit).unwrap_or(usize::MAX);
    let shown = &rows[..rows.len().min(usize::try_from(limit).unwrap_or(usize::MAX))];
    let next = shown.last().filter(|_| more).map(|row| row.num.to_string());
    let now_ms = hub.ports().clock.now_ms();
    let executions: Vec<Value> = shown.iter().map(|row| summary(row, now_ms)).collect();
    answer(json!({"executions": executions, "nextCursor": next}))
}

/// The executions the filters pick.
pub async fn find(hub: &Hub, args: &Args, context: &Context, limit: i64) -> Result<Vec<Row>, Fault> {
    let filters = Filters::read(args, context)?;
    search(hub, &filters.wanted(args.text("status"), limit)).await
}

/// What restricts a search for executions, but for their status.
pub struct Filters {
    tenant: Tenant,
    id_prefix: Option<String>,
    workflow: Option<String>,
    correlation: Option<String>,
    tags: ExecutionTags,
    since_ms: Option<i64>,
    until_ms: Option<i64>,
    before: i64,
}

impl Filters {
    pub fn read(args: &Args, context: &Context) -> Result<Self, Fault> {
        let before = match args.text("cursor") {
            None => i64::MAX,
            Some(cursor) => cursor.parse().map_err(|_| {
                Fault::invalid("/cursor: this is no cursor of this list").with("path", "/cursor")
            })?,
        };
        Ok(Self {
            tenant: context.principal.tenant.clone(),
            id_prefix: IdFilter::read(args)?.prefix,
            workflow: args.text("workflowId").map(str::to_owned),
            correlation: args.text("correlationId").map(str::to_owned),
            tags: ExecutionTags::read(args.get("where"), "/where")?,
            since_ms: moment(args, "since")?,
            until_ms: moment(args, "until")?,
            before,
        })
    }

    pub fn wanted<'a>(&'a self, status: Option<&'a str>, limit: i64) -> tables::Wanted<'a> {
        tables::Wanted {
            tenant: self.tenant.as_str(),
            id_prefix: self.id_prefix.as_deref(),
            status,
            workflow: self.workflow.as_deref(),
            correlation: self.correlation.as_deref(),
            tags: &self.tags,
            since_ms: self.since_ms,
            until_ms: self.until_ms,
            before: self.before,
            limit,
        }
    }

    /// Whether an execution is one of those, wherever the cursor stands.
    pub fn pick(&self, row: &Row) -> bool {
        row.tenant == self.tenant
            && self.id_prefix.as_ref().is_none_or(|prefix| row.id.starts_with(prefix.as_str()))
            && self.workflow.as_ref().is_none_or(|workflow| *workflow == row.workflow)
            && self.correlation.as_ref().is_none_or(|correlation| correlation == row.correlation.as_str())
            && self.tags.iter().all(|(key, value)| row.given.tags.get(key) == Some(value))
            && self.since_ms.is_none_or(|since_ms| row.created_ms >= since_ms)
            && self.until_ms.is_none_or(|until_ms| row.created_ms <= until_ms)
    }
}

async fn statement(hub: &Hub, wanted: &tables::Wanted<'_>) -> Result<Statement, Fault> {
    Ok(match wanted.tags.is_empty() {
        true => tables::executions_page(wanted),
        false => {
            tags::tables::executions_page(wanted, tags::rarest_filter(&*hub.ports().store, wanted).await?)
        }
    })
}

pub async fn search(hub: &Hub, wanted: &tables::Wanted<'_>) -> Result<Vec<Row>, Fault> {
    let rows = hub.ports().store.query(statement(hub, wanted).await?).await.map_err(fault)?;
    rows.iter().map(load::read).collect()
}

/// How many executions a search finds, up to its limit.
pub async fn count(hub: &Hub, wanted: &tables::Wanted<'_>) -> Result<i64, Fault> {
    let count = bulk::tables::count(statement(hub, wanted).await?);
    let rows = hub.ports().store.query(count).await.map_err(fault)?;
    rows.first().map_or(Ok(0), |row| row.int(0)).map_err(fault)
}

pub fn summary(row: &Row, now_ms: i64) -> Value {
    let error: Option<Value> = row.error.as_ref().and_then(|error| serde_json::from_str(error).ok());
    let mut summary = json!({
        "executionId": row.id, "status": row.status,
        "workflow": {"id": row.workflow, "name": row.name, "version": row.version},
        "startedBy": row.given.principal, "correlationId": row.correlation, "createdAt": iso(row.created_ms), "startedAt": row.started_ms.map(iso),
        "completedAt": row.ended_ms.map(iso),
        "duration": row.started_ms.map(|started| row.ended_ms.unwrap_or(now_ms) - started), "error": error,
    });
    if !row.given.tags.is_empty() {
        summary["tags"] = json!(row.given.tags);
    }
    if let Some(moment) = &row.given.schedule {
        summary["schedule"] = moment.shown();
    }
    summary
}
