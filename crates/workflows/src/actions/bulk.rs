//! Many executions at once: cancels or deletes those that filters pick or ids name. A dry run tells which they would be.

use std::collections::HashSet;

use orchestr8_contract::{Fault, Output};
use orchestr8_kernel::audit::StateChange;
use orchestr8_kernel::ports::store::Batch;
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};
use serde_json::{Value, json};

use super::list::{self, Filters};
use super::{changing, execution_id, hidden, object, page};
use crate::engine::event::{Event, Status};
use crate::limits::{BULK_COUNTED, BULK_SAMPLE, PAGE};
use crate::runtime::{Hub, Row, fault, load};
use crate::{bulk, tables, tags};

const REASON_BYTES: u64 = 1024;

/// What a call wants done to the executions it picks.
#[derive(Clone, Copy)]
enum BulkOperation {
    Cancel { force: bool },
    Delete,
}

pub fn actions(hub: &Hub) -> Result<Vec<Action>, schema::Error> {
    let mut input = list::filters(PAGE);
    input["ids"] = json!({"type": "array", "items": execution_id(), "minItems": 1, "maxItems": PAGE});
    input["dryRun"] = json!({"type": "boolean"});
    let delete_input = object(input.clone(), &[]);
    input["reason"] = json!({"type": "string", "maxLength": REASON_BYTES});
    input["force"] = json!({"type": "boolean"});
    let policy = Policy { destructive: true, idempotent: true, ..changing() };
    let cancel_about = "Cancels the executions that the filters pick.";
    let delete_about = "Deletes the executions that the filters pick and that have ended.";
    Ok(vec![
        hidden("executions.cancel_many", cancel_about, object(input, &[]), policy.clone(), hub, cancel)?,
        hidden("executions.delete_many", delete_about, delete_input, policy, hub, delete)?,
    ])
}

impl BulkOperation {
    /// The statuses of executions that it changes.
    fn statuses(self) -> &'static [Status] {
        match self {
            Self::Cancel { force: false } => {
                &[Status::Queued, Status::Running, Status::Waiting, Status::Paused]
            }
            Self::Cancel { force: true } => &[
                Status::Queued,
                Status::Running,
                Status::Waiting,
                Status::Paused,
                Status::Cancelling,
                Status::Compensating,
            ],
            Self::Delete => &[Status::Completed, Status::Failed, Status::Cancelled, Status::Compensated],
        }
    }

    /// Why an execution with this status stays as it is.
    fn refusal(self, status: Status) -> String {
        match self {
            Self::Cancel { .. } if status.is_final() => format!("it is {}", status.as_str()),
            Self::Cancel { .. } => format!("it is {}; only force stops that", status.as_str()),
            Self::Delete => format!("it is {}; only executions that have ended are deleted", status.as_str()),
        }
    }
}

/// What a call is about.
struct Selection {
    rows: Vec<Row>,
    /// Executions that stay as they are, and why.
    skipped: Vec<Value>,
    not_found: Vec<String>,
    next: Option<i64>,
}

impl Selection {
    fn skip(&mut self, row: &Row, reason: &str) {
        self.skipped.push(json!({"executionId": row.id, "reason": reason}));
    }

    /// The members that all answers have.
    fn answer(&self, done: &str) -> Value {
        let ids: Vec<&str> = self.rows.iter().map(|row| &*row.id).collect();
        let mut answer = json!({
            "dryRun": false, "count": ids.len(), "skipped": self.skipped,
            "nextCursor": self.next.map(|next| next.to_string()),
        });
        answer[done] = json!(ids);
        if !self.not_found.is_empty() {
            answer["notFound"] = json!(self.not_found);
        }
        answer
    }
}

async fn cancel(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let force = flag(&args, "force");
    let operation = BulkOperation::Cancel { force };
    if flag(&args, "dryRun") {
        return preview(&hub, &args, &context, operation).await;
    }
    let mut selection = select(&hub, &args, &context, operation).await?;
    skip_children_of_selected(&hub, &args, &context, operation, &mut selection).await?;
    let reason = args.text("reason").unwrap_or("user_request");
    let (mut effects, mut posted) = (Batch::new(), Vec::new());
    for row in &selection.rows {
        let event = Event::CancelAsked { reason: reason.to_owned(), graceful: !force, force };
        posted.push((row.tenant.clone(), hub.post_to(row.num, &event, &mut effects)?));
        record(&hub, &context, &mut effects, "executions.cancel", row, selection.rows.len());
    }
    let answer = selection.answer("cancelled");
    Ok(Reply::new(Output::json(answer), effects).then(move || {
        for (tenant, posted) in posted {
            hub.deliver_later(tenant, posted);
        }
    }))
}

/// They are hidden with the commit of the answer. Retention removes them from the store, so that the log over journals keeps their hashes.
async fn delete(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    if flag(&args, "dryRun") {
        return preview(&hub, &args, &context, BulkOperation::Delete).await;
    }
    let mut selection = select(&hub, &args, &context, BulkOperation::Delete).await?;
    skip_children_of_live(&hub, &mut selection).await?;
    let (mut effects, now_ms) = (Batch::new(), hub.ports().clock.now_ms());
    for row in &selection.rows {
        let tenant = row.tenant.as_str();
        effects.then_one(bulk::tables::execution_hide(tenant, row.num, now_ms));
        if !row.given.tags.is_empty() {
            effects.then(tags::tables::delete(tenant, row.num));
        }
        record(&hub, &context, &mut effects, "executions.delete", row, selection.rows.len());
    }
    let answer = selection.answer("deleted");
    Ok(Reply::new(Output::json(answer), effects).then(move || {
        for row in &selection.rows {
            hub.forget(&row.id);
        }
    }))
}

fn flag(args: &Args, name: &str) -> bool {
    args.get(name).and_then(Value::as_bool).unwrap_or(false)
}

/// Every execution that is changed has an entry in the audit trail, beside that of the call.
fn record(hub: &Hub, context: &Context, effects: &mut Batch, action: &'static str, row: &Row, count: usize) {
    let change = StateChange {
        principal: &context.principal.name,
        transport: context.transport,
        source: context.source,
        detail: json!({"bulk": true, "count": count, "correlationId": context.correlation}),
        ..StateChange::by_server(action, row.tenant.as_str(), Some(&row.id))
    };
    effects.link(change.link(hub.ports().clock.now_ms()));
}

/// The members that restrict which executions a call is about.
const RESTRICTIONS: [&str; 6] = ["where", "status", "workflowId", "correlationId", "since", "until"];

fn is_given(args: &Args, name: &str) -> bool {
    args.get(name)
        .is_some_and(|value| !value.is_null() && value.as_object().is_none_or(|map| !map.is_empty()))
}

/// Refuses a call that names nothing: it would be about everything.
fn check_restricted(args: &Args) -> Result<(), Fault> {
    let filter = RESTRICTIONS.into_iter().find(|name| is_given(args, name));
    match (args.get("ids").is_some(), filter) {
        (true, Some(name)) => Err(Fault::invalid(format!("/{name}: give ids or filters, not both"))
            .with("path", format!("/{name}"))),
        (false, None) => Err(Fault::invalid(format!(
            "/: say which executions: ids, or one of {}",
            RESTRICTIONS.join(", ")
        ))
        .with("path", "/")),
        (true, None) | (false, Some(_)) => Ok(()),
    }
}

/// The statuses to look for.
fn wanted_statuses(args: &Args, operation: BulkOperation) -> Result<Vec<Status>, Fault> {
    let Some(status) = args.text("status").and_then(Status::parse) else {
        return Ok(operation.statuses().to_vec());
    };
    match operation.statuses().contains(&status) {
        true => Ok(vec![status]),
        false => {
            let known: Vec<&str> = operation.statuses().iter().map(|status| status.as_str()).collect();
            Err(Fault::invalid(format!("/status: must be one of {}", known.join(", ")))
                .with("path", "/status"))
        }
    }
}

async fn select(
    hub: &Hub,
    args: &Args,
    context: &Context,
    operation: BulkOperation,
) -> Result<Selection, Fault> {
    check_restricted(args)?;
    if args.get("ids").is_some() {
        return select_named(hub, args, context, operation).await;
    }
    let limit = page(args, PAGE, PAGE);
    let mut rows = Vec::new();
    let filters = Filters::read(args, context)?;
    for status in wanted_statuses(args, operation)? {
        rows.extend(list::search(hub, &filters.wanted(Some(status.as_str()), limit + 1)).await?);
    }
    rows.sort_unstable_by_key(|row| std::cmp::Reverse(row.num));
    let size = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = rows.len() > size;
    rows.truncate(size);
    let next = rows.last().filter(|_| has_more).map(|row| row.num);
    Ok(Selection { rows, skipped: Vec::new(), not_found: Vec::new(), next })
}

async fn select_named(
    hub: &Hub,
    args: &Args,
    context: &Context,
    operation: BulkOperation,
) -> Result<Selection, Fault> {
    let list = args.get("ids").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut wanted: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let named = bulk::tables::executions_named(context.principal.tenant.as_str(), json!(wanted).to_string());
    let rows = hub.ports().store.query(named).await.map_err(fault)?;
    let found: Vec<Row> = rows.iter().map(load::read).collect::<Result<_, _>>()?;
    let known: HashSet<&str> = found.iter().map(|row| &*row.id).collect();
    let not_found = wanted.into_iter().filter(|id| !known.contains(id)).map(str::to_owned).collect();
    let mut selection = Selection { rows: Vec::new(), skipped: Vec::new(), not_found, next: None };
    for row in found {
        match operation.statuses().contains(&row.status) {
            true => selection.rows.push(row),
            false => selection.skip(&row, &operation.refusal(row.status)),
        }
    }
    Ok(selection)
}

/// A child ends with its parent. If the filters pick both, only the parent is cancelled, so that it does not take the end of its child
/// for a failure.
async fn skip_children_of_selected(
    hub: &Hub,
    args: &Args,
    context: &Context,
    operation: BulkOperation,
    selection: &mut Selection,
) -> Result<(), Fault> {
    let selected: HashSet<i64> = selection.rows.iter().map(|row| row.num).collect();
    let filters = Filters::read(args, context)?;
    let statuses = wanted_statuses(args, operation)?;
    let mut kept = Vec::new();
    for row in std::mem::take(&mut selection.rows) {
        let Some(parent) = row.given.parent.as_ref().map(|parent| parent.num) else {
            kept.push(row);
            continue;
        };
        let ends_with_parent = selected.contains(&parent)
            || match (args.get("ids"), parent_of(hub, parent).await?) {
                (None, Some(parent)) => statuses.contains(&parent.status) && filters.pick(&parent),
                (Some(_), _) | (None, None) => false,
            };
        match ends_with_parent {
            true => selection.skip(&row, "it is cancelled with its parent"),
            false => kept.push(row),
        }
    }
    selection.rows = kept;
    Ok(())
}

/// A parent that has not ended may still have to roll its children back.
async fn skip_children_of_live(hub: &Hub, selection: &mut Selection) -> Result<(), Fault> {
    let mut kept = Vec::new();
    for row in std::mem::take(&mut selection.rows) {
        let parent = match row.given.parent.as_ref() {
            Some(parent) => parent_of(hub, parent.num).await?,
            None => None,
        };
        match parent.is_some_and(|parent| !parent.status.is_final()) {
            true => selection.skip(&row, "its parent has not ended"),
            false => kept.push(row),
        }
    }
    selection.rows = kept;
    Ok(())
}

async fn parent_of(hub: &Hub, num: i64) -> Result<Option<Row>, Fault> {
    let rows = hub.ports().store.query(tables::execution_by_number(num)).await.map_err(fault)?;
    rows.first().map(load::read).transpose()
}

/// How many executions it would be, and the newest of them. Nothing is changed.
async fn preview(hub: &Hub, args: &Args, context: &Context, operation: BulkOperation) -> Result<Reply, Halt> {
    let now_ms = hub.ports().clock.now_ms();
    let selection = select(hub, args, context, operation).await?;
    let sample: Vec<Value> =
        selection.rows.iter().take(BULK_SAMPLE).map(|row| list::summary(row, now_ms)).collect();
    let mut count = i64::try_from(selection.rows.len()).unwrap_or(i64::MAX);
    if selection.next.is_some() {
        count = 0;
        let filters = Filters::read(args, context)?;
        for status in wanted_statuses(args, operation)? {
            count += list::count(hub, &filters.wanted(Some(status.as_str()), BULK_COUNTED)).await?;
        }
    }
    let mut answer = json!({
        "dryRun": true, "count": count.min(BULK_COUNTED), "countIsLimited": count >= BULK_COUNTED, "sample": sample,
        "skipped": selection.skipped,
    });
    if !selection.not_found.is_empty() {
        answer["notFound"] = json!(selection.not_found);
    }
    super::answer(answer)
}
