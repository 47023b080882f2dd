//! What can be said to an execution: stop, pause, go on, here is an event. What is said is durable before it is acknowledged.

use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::ports::store::Batch;
use orchestr8_kernel::{Action, Args, Context, Halt, Reply, schema};
use serde_json::{Value, json};

use super::{changing, execution, execution_id, hidden, map, object};
use crate::definition::model::StepSection;
use crate::engine::event::{Event, NewBudget, Resolution, Status, Task};
use crate::engine::state::Phase;
use crate::engine::{undo, view};
use crate::limits;
use crate::runtime::{Hub, Row, fault, load, tables};

/// The largest payload of an event, and the longest reason.
pub const PAYLOAD_BYTES: usize = 65_536;
const REASON_BYTES: u64 = 1024;

pub fn actions(hub: &Hub) -> Result<Vec<Action>, schema::Error> {
    let id = execution_id;
    let reason = json!({"type": "string", "maxLength": REASON_BYTES});
    let cancel_input = object(
        json!({"executionId": id(), "reason": reason, "graceful": {"type": "boolean"}, "force": {"type": "boolean"}}),
        &["executionId"],
    );
    let budget = json!({"type": "object", "additionalProperties": false, "properties": {
        "wallClockMs": {"type": "integer", "minimum": 1}, "steps": {"type": "integer", "minimum": 1},
        "tokens": {"type": "integer", "minimum": 1}, "cost": {"type": "number", "exclusiveMinimum": 0}}});
    let event = json!({"executionId": id(), "name": {"type": "string", "minLength": 1, "maxLength": 256}, "payload": {},
                       "id": {"type": "string", "maxLength": 256}});
    let resolution = json!({"executionId": id(), "stepId": {"type": "string"}, "index": {"type": "integer", "minimum": 0},
                            "action": {"enum": ["retry", "fail", "complete"]}, "output": {}});
    Ok(vec![
        hidden("executions.cancel", "Cancels an execution.", cancel_input, changing(), hub, cancel)?,
        hidden(
            "executions.pause",
            "Lets nothing new begin in an execution.",
            object(json!({"executionId": id(), "reason": reason}), &["executionId"]),
            changing(),
            hub,
            pause,
        )?,
        hidden(
            "executions.resume",
            "Lets a paused execution go on.",
            object(json!({"executionId": id(), "budget": budget}), &["executionId"]),
            changing(),
            hub,
            resume,
        )?,
        hidden(
            "executions.retry",
            "Takes up a failed or cancelled execution where it stopped.",
            object(json!({"executionId": id()}), &["executionId"]),
            changing(),
            hub,
            retry,
        )?,
        hidden(
            "executions.signal",
            "Sends an event to an execution.",
            object(event, &["executionId", "name"]),
            changing(),
            hub,
            signal,
        )?,
        hidden(
            "executions.resolve",
            "Says what became of a step whose end is not known.",
            object(resolution, &["executionId", "stepId", "action"]),
            changing(),
            hub,
            resolve,
        )?,
    ])
}

/// Says something to an execution, in the commit of the answer.
pub fn tell(hub: &Hub, row: &Row, event: Event, answer: Value) -> Result<Reply, Halt> {
    tell_with(hub, row, event, answer, Batch::new())
}

pub fn tell_with(
    hub: &Hub,
    row: &Row,
    event: Event,
    answer: Value,
    mut effects: Batch,
) -> Result<Reply, Halt> {
    let posted = hub.post_to(row.num, &event, &mut effects)?;
    let (hub, tenant) = (hub.clone(), row.tenant.clone());
    Ok(Reply::new(Output::json(answer), effects).then(move || hub.deliver_later(tenant, posted)))
}

pub(super) fn over(row: &Row, wanted: &str) -> Fault {
    let status = row.status.as_str();
    Fault::new(Code::StateConflict, format!("the execution is {status}, so it cannot be {wanted}"))
        .with("executionId", &*row.id)
        .with("status", status)
}

/// What a cancel without force says to an execution that is rolled back.
pub const ROLLBACK_GOES_ON: &str =
    "The rollback goes on: cancel does not stop it. With force it stops, and what is not undone is left";

async fn cancel(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let row = execution(&hub, &args, &context).await?;
    let flag = |name: &str| args.get(name).and_then(Value::as_bool);
    let force = flag("force").unwrap_or(false);
    let graceful = flag("graceful").unwrap_or(true) && !force;
    let answer = |status: Status, message: &str| json!({"executionId": row.id, "status": status, "graceful": graceful, "alreadyFinal": status.is_final(), "message": message});
    if row.status.is_final() {
        let message = format!("The execution has already {}", past(row.status));
        return Ok(Output::json(answer(row.status, &message)).into());
    }
    if !force && let Some(section) = closing_steps_of(&hub, &row).await? {
        let name = section.member();
        let message = format!("The steps of {name} go on: cancel does not stop them, and force does");
        let mut answer = answer(row.status, &message);
        answer["handlers"] = name.into();
        return Ok(Output::json(answer).into());
    }
    let reason = args.text("reason").unwrap_or("user_request").to_owned();
    let event = Event::CancelAsked { reason, graceful, force };
    if row.status != Status::Compensating {
        return tell(&hub, &row, event, answer(Status::Cancelling, "Cancellation requested"));
    }
    if !force {
        return Ok(Output::json(answer(row.status, ROLLBACK_GOES_ON)).into());
    }
    let mut answer = answer(Status::Cancelling, "The rollback is stopped; what is not undone is left");
    match load::whole(&hub, row.clone(), u64::MAX).await {
        Ok(loaded) => {
            let left = undo::left(&loaded.state);
            answer["notUndone"] = left.iter().map(|one| view::unit(&loaded.state, one)).collect();
        }
        // There is no time now to read how far it has come, and it must stop all the same: the execution lists it later.
        Err(fault) if fault.code == Code::ResourceExhausted => {}
        Err(fault) => return Err(fault.into()),
    }
    tell(&hub, &row, event, answer)
}

/// The handlers that an execution runs now.
async fn closing_steps_of(hub: &Hub, row: &Row) -> Result<Option<StepSection>, Fault> {
    let definition = load::definition(hub, row.tenant.as_str(), &row.hash).await?;
    if !definition.has_closing_steps() {
        return Ok(None);
    }
    Ok(load::whole(hub, row.clone(), u64::MAX).await?.state.closing_section())
}

fn past(status: Status) -> &'static str {
    match status {
        Status::Completed => "completed",
        Status::Failed => "failed",
        Status::Cancelled => "been cancelled",
        Status::Compensated => "been rolled back",
        Status::Queued
        | Status::Running
        | Status::Waiting
        | Status::Paused
        | Status::Cancelling
        | Status::Compensating => "begun",
    }
}

async fn pause(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let row = execution(&hub, &args, &context).await?;
    if row.status.is_final() || matches!(row.status, Status::Cancelling | Status::Compensating) {
        return Err(over(&row, "paused").into());
    }
    if let Some(section) = closing_steps_of(&hub, &row).await? {
        let message = format!("the execution runs its steps of {}, so it cannot be paused", section.member());
        return Err(Fault::new(Code::StateConflict, message).with("executionId", &*row.id).into());
    }
    let reason = args.text("reason").unwrap_or("user_request").to_owned();
    let answer = json!({"executionId": row.id, "status": "paused"});
    tell(&hub, &row, Event::Paused { reason }, answer)
}

async fn resume(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let row = execution(&hub, &args, &context).await?;
    if row.status != Status::Paused && !is_about_to_pause(&hub, &row).await? {
        return Err(over(&row, "resumed").into());
    }
    let budget: NewBudget = serde_json::from_value(Value::Object(map(&args, "budget")))
        .map_err(|error| Fault::invalid(format!("/budget: {error}")).with("path", "/budget"))?;
    let loaded = load::whole(&hub, row, u64::MAX).await?;
    let by_budget = loaded.state.pause.as_ref().is_some_and(|pause| pause.by_budget);
    if by_budget && budget == NewBudget::default() {
        let reason = loaded.state.pause.as_ref().map_or(String::new(), |pause| pause.reason.clone());
        return Err(Fault::new(Code::BudgetExceeded, format!("{reason}; resume it with a larger budget"))
            .with("executionId", &*loaded.row.id)
            .into());
    }
    let answer = json!({"executionId": loaded.row.id, "status": "running"});
    tell(&hub, &loaded.row, Event::Resumed { budget }, answer)
}

/// Whether a pause was acknowledged that the execution has not heard of yet.
async fn is_about_to_pause(hub: &Hub, row: &Row) -> Result<bool, Fault> {
    let waiting = hub.ports().store.query(tables::inbox_of(row.num)).await.map_err(fault)?;
    let is_pause = |text: &str| matches!(serde_json::from_str(text), Ok(Event::Paused { .. }));
    if waiting.iter().any(|message| message.text(1).is_ok_and(is_pause)) {
        return Ok(true);
    }
    // It may have heard of it between the two looks.
    let now = load::find(hub, row.tenant.as_str(), &row.id).await?;
    Ok(now.is_some_and(|now| now.status == Status::Paused))
}

async fn retry(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let row = execution(&hub, &args, &context).await?;
    let (event, mut answer) = again(&row)?;
    load::check_start(&hub, row.num).await?;
    hub.forget(&row.id);
    let seed = load::seed(&hub, &row).await?;
    if !hub.has_place(&seed) {
        answer["status"] = "queued".into();
    }
    tell(&hub, &row, event, answer)
}

/// What takes a failed execution up again.
pub fn again(row: &Row) -> Result<(Event, Value), Fault> {
    match row.status {
        Status::Failed | Status::Cancelled | Status::Compensated => {
            Ok((Event::Again, json!({"executionId": row.id, "status": "running"})))
        }
        Status::Queued
        | Status::Running
        | Status::Waiting
        | Status::Paused
        | Status::Cancelling
        | Status::Compensating
        | Status::Completed => Err(over(row, "retried")),
    }
}

async fn signal(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let row = execution(&hub, &args, &context).await?;
    let name = args.text("name").unwrap_or_default().to_owned();
    let id = args.text("id").map(str::to_owned);
    let answer = json!({"executionId": row.id, "name": name, "accepted": true});
    if row.status.is_final() {
        let refusal = over(&row, "sent an event");
        // It may be the very event that brought the execution to its end, sent again.
        return match id {
            Some(id) if load::whole(&hub, row, u64::MAX).await?.state.has_heard(&id) => super::answer(answer),
            Some(_) | None => Err(refusal.into()),
        };
    }
    let payload = args.get("payload").cloned().unwrap_or(Value::Null);
    if orchestr8_contract::json::bytes(&payload) > PAYLOAD_BYTES {
        return Err(Fault::new(Code::PayloadTooLarge, format!("/payload: more than {PAYLOAD_BYTES} bytes"))
            .with("path", "/payload")
            .into());
    }
    load::check_start(&hub, row.num).await?;
    let kept = hub.ports().store.query(tables::messages_kept(row.num)).await.map_err(fault)?;
    if kept.first().is_some_and(|row| row.int(0).is_ok_and(|count| count >= limits::SIGNALS_KEPT)) {
        // What was acknowledged before is acknowledged again. The inbox is read first: what it does not hold any more is in the state.
        let waits_in_inbox = match &id {
            Some(id) => is_in_inbox(&hub, &row, id).await?,
            None => false,
        };
        let state = load::whole(&hub, row.clone(), u64::MAX).await?.state;
        if waits_in_inbox || id.as_ref().is_some_and(|id| state.has_heard(id)) {
            return super::answer(answer);
        }
        if !state.work.values().any(|work| work.waits_for(&name)) {
            return Err(buffer_full(&row).into());
        }
    }
    tell(&hub, &row, Event::Signal { name, payload, id }, answer)
}

/// Whether an event with this id was acknowledged that the execution has not heard of yet.
async fn is_in_inbox(hub: &Hub, row: &Row, id: &str) -> Result<bool, Fault> {
    let waiting = hub.ports().store.query(tables::inbox_of(row.num)).await.map_err(fault)?;
    let is_same = |text: &str| {
        let event = serde_json::from_str(text);
        matches!(event, Ok(Event::Signal { id: Some(other), .. }) if other == id)
    };
    Ok(waiting.iter().any(|message| message.text(1).is_ok_and(is_same)))
}

/// Nothing that was acknowledged is evicted: the buffer that is full refuses.
fn buffer_full(row: &Row) -> Fault {
    let most = limits::SIGNALS_KEPT;
    let message =
        format!("{most} events wait for a step of this execution that takes them; send it again later");
    Fault::new(Code::ResourceExhausted, message)
        .with("reason", "events_buffered")
        .with("executionId", &*row.id)
        .with("limit", most)
}

async fn resolve(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let row = execution(&hub, &args, &context).await?;
    let loaded = load::whole(&hub, row, u64::MAX).await?;
    let id = args.text("stepId").unwrap_or_default();
    let Some(step) = loaded.state.workflow().place(id) else {
        return Err(Fault::new(Code::NotFound, format!("the execution has no step named '{id}'"))
            .with("stepId", id)
            .into());
    };
    let part = args.get("index").and_then(Value::as_u64).and_then(|index| u32::try_from(index).ok());
    let task = Task { step, part, undo: false };
    let asks = |work: &crate::engine::state::Work| work.phase == Phase::Unknown;
    if !loaded.state.work.get(&task).is_some_and(asks) {
        return Err(Fault::new(Code::StateConflict, format!("the step '{id}' does not wait for this"))
            .with("stepId", id)
            .into());
    }
    let how = match args.text("action") {
        Some("retry") => Resolution::Retry,
        Some("complete") => {
            Resolution::Complete { output: args.get("output").cloned().unwrap_or(Value::Null) }
        }
        _ => Resolution::Fail,
    };
    let answer = json!({"executionId": loaded.row.id, "stepId": id, "accepted": true});
    tell(&hub, &loaded.row, Event::Resolved { task, how }, answer)
}
