//! Schedules: workflows that start by themselves.

use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::ports::store::Batch;
use orchestr8_kernel::{Action, Args, Context, Halt, Reply, schema};
use serde_json::{Value, json};

use super::{answer, changing, hidden, object, page, reading};
use crate::limits::PAGE;
use crate::runtime::{Hub, Request, inputs};
use crate::schedules::{self, Schedule, Spec};
use crate::stored;
use crate::tags::ExecutionTags;

pub fn actions(hub: &Hub) -> Result<Vec<Action>, schema::Error> {
    let one = || object(json!({"id": {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,128}$"}}), &["id"]);
    let apply_input = object(
        json!({
            "id": {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,128}$"}, "workflowId": {"type": "string"},
            "cron": {"type": "string", "maxLength": 256}, "timeZone": {"type": "string", "maxLength": 128},
            "inputs": {"type": "object"}, "tags": {}, "overlap": {"enum": ["skip", "queue", "cancel", "allow"]},
            "backfill": {"enum": ["none", "one", "all"]}, "paused": {"type": "boolean"}
        }),
        &["id", "workflowId", "cron"],
    );
    let list_input = object(
        json!({"cursor": {"type": "string"}, "limit": {"type": "integer", "minimum": 1, "maximum": PAGE}}),
        &[],
    );
    Ok(vec![
        hidden("schedules.apply", "Stores a schedule.", apply_input, changing(), hub, apply)?,
        hidden("schedules.list", "Lists schedules.", list_input, reading(), hub, list)?,
        hidden("schedules.show", "Shows a schedule.", one(), reading(), hub, show)?,
        hidden("schedules.delete", "Deletes a schedule.", one(), changing(), hub, delete)?,
        hidden("schedules.pause", "Lets a schedule start nothing.", one(), changing(), hub, pause)?,
        hidden("schedules.resume", "Lets a paused schedule start again.", one(), changing(), hub, resume)?,
        hidden("schedules.trigger", "Starts what a schedule starts, now.", one(), changing(), hub, trigger)?,
    ])
}

fn tenant(context: &Context) -> &str {
    context.principal.tenant.as_str()
}

async fn named(hub: &Hub, args: &Args, context: &Context) -> Result<Schedule, Fault> {
    schedules::find_intact(hub, tenant(context), args.text("id").unwrap_or_default()).await
}

async fn apply(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let mut given = args.as_value().as_object().cloned().unwrap_or_default();
    let id = given.remove("id").and_then(|id| id.as_str().map(str::to_owned)).unwrap_or_default();
    let paused = given.remove("paused").and_then(|paused| paused.as_bool()).unwrap_or(false);
    ExecutionTags::read(given.get("tags"), "/tags")?;
    let mut spec: Spec = serde_json::from_value(Value::Object(given))
        .map_err(|error| Fault::invalid(format!("the schedule cannot be read: {error}")))?;
    spec.set_author(&context.principal);
    spec.check(hub.ports().clock.now_ms())?;
    // A schedule for what does not exist would fail every time, with nobody looking.
    let found = stored::find(&hub, tenant(&context), &spec.workflow_id, None).await?;
    inputs::check(&found.workflow, &spec.inputs)?;
    spec.revision = Some(found.revision);
    let schedule = Schedule::new(tenant(&context), id, spec, paused, hub.ports().clock.now_ms())?;
    let mut change = Batch::new();
    change.then(schedules::put(&hub, &schedule)?);
    Ok(keep(hub, &schedule, change))
}

/// The schedule as it is from now on, once the change is durable.
fn keep(hub: Hub, schedule: &Schedule, change: Batch) -> Reply {
    Reply::new(Output::json(schedule.shown()), change).then(move || hub.look_at_timers())
}

async fn list(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let limit = page(&args, 100, PAGE);
    let after = args.text("cursor").unwrap_or_default();
    let mut found = schedules::list(&hub, tenant(&context), after, limit + 1).await?;
    let size = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = found.len() > size;
    found.truncate(size);
    let next = found.last().filter(|_| more).map(|last| last.id.clone());
    let shown: Vec<Value> = found.iter().map(Schedule::shown).collect();
    answer(json!({"schedules": shown, "nextCursor": next}))
}

async fn show(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    answer(named(&hub, &args, &context).await?.shown())
}

async fn delete(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    // One that was changed in the data file can be deleted as well.
    let id = args.text("id").unwrap_or_default();
    let schedule = schedules::find(&hub, tenant(&context), id).await?;
    let mut effects = Batch::new();
    effects.then_one(schedules::delete(&schedule.tenant, &schedule.id));
    Ok(Reply::new(Output::json(json!({"id": schedule.id, "deleted": true})), effects))
}

async fn pause(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    switch(hub, &args, &context, true).await
}

/// Times that passed while it was paused were not missed: it goes on from now.
async fn resume(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    switch(hub, &args, &context, false).await
}

async fn switch(hub: Hub, args: &Args, context: &Context, paused: bool) -> Result<Reply, Halt> {
    let schedule = named(&hub, args, context).await?.switched(paused, hub.ports().clock.now_ms())?;
    let mut change = Batch::new();
    change.then_one(schedules::switch(&hub, &schedule)?);
    Ok(keep(hub, &schedule, change))
}

async fn trigger(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let schedule = named(&hub, &args, &context).await?;
    if schedule.is_orphaned(&hub) {
        let text = format!(
            "the credentials of '{}', the author of this schedule, were revoked",
            schedule.spec.principal
        );
        return Err(Fault::new(Code::Unauthorized, text).with("reason", "principal_revoked").into());
    }
    // It has the rights that its author and the caller have, and is recorded under the caller's name.
    let request = schedules::request(&hub, &schedule, hub.ports().clock.now_ms()).await?;
    let mut accepted = hub.accept(Request { principal: context.principal.clone(), ..request })?;
    let answer = json!({"id": schedule.id, "executionId": accepted.id, "status": accepted.status});
    let effects = std::mem::take(&mut accepted.batch);
    Ok(Reply::new(Output::json(answer), effects).then(move || hub.launch(accepted)))
}
