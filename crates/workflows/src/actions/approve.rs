//! Questions to people: which are open, and what was decided.

use orchestr8_contract::{AccessRole, Code, Fault};
use orchestr8_kernel::ports::store::{self, Batch};
use orchestr8_kernel::{Action, Args, Context, Halt, Reply, schema};
use serde_json::{Value, json};

use super::{answer, changing, control, hidden, object, page, reading};
use crate::engine::event::{Event, Task};
use crate::limits::PAGE;
use crate::runtime::{Hub, fault, load, tables};

pub fn open(hub: &Hub) -> Result<Action, schema::Error> {
    let input = object(
        json!({"executionId": {"type": "string"}, "token": {"type": "string"},
               "limit": {"type": "integer", "minimum": 1, "maximum": PAGE}}),
        &[],
    );
    hidden("executions.approvals", "Lists the questions that wait for somebody.", input, reading(), hub, list)
}

pub fn decide(hub: &Hub) -> Result<Action, schema::Error> {
    let input = object(
        json!({
            "token": {"type": "string", "minLength": 1, "maxLength": 128},
            "decision": {"enum": ["approve", "reject"]},
            "by": {"type": "string", "maxLength": 256},
            "comment": {"type": "string", "maxLength": 4096},
            "data": {}
        }),
        &["token", "decision"],
    );
    hidden("executions.approve", "Decides what an execution asks.", input, changing(), hub, decided)
}

async fn list(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let tenant = context.principal.tenant.as_str();
    let limit = page(&args, 100, PAGE);
    if let Some(token) = args.text("token") {
        let found = find(&hub, tenant, token).await?;
        let row = load::by_number(&hub, found.execution).await?.row;
        return answer(json!({"approvals": [shown(token, &row.id, &found.ask)]}));
    }
    let rows = hub.ports().store.query(tables::approvals_open(tenant, args.text("executionId"), limit)).await;
    let approvals: Vec<Value> = rows
        .map_err(fault)?
        .iter()
        .map(|row| Ok(shown(row.text(0)?, row.text(4)?, &read(row.text(3)?))))
        .collect::<Result<_, store::Error>>()
        .map_err(fault)?;
    answer(json!({"approvals": approvals}))
}

fn read(ask: &str) -> Value {
    serde_json::from_str(ask).unwrap_or(Value::Null)
}

fn shown(token: &str, execution: &str, ask: &Value) -> Value {
    let mut shown = ask.clone();
    shown["executionId"] = execution.into();
    shown["token"] = token.into();
    shown["url"] = format!("/v1/approvals/{token}").into();
    shown
}

struct Found {
    execution: i64,
    task: String,
    ask: Value,
}

async fn find(hub: &Hub, tenant: &str, token: &str) -> Result<Found, Fault> {
    let rows = hub.ports().store.query(tables::approval_find(tenant, token)).await.map_err(fault)?;
    let Some(row) = rows.first() else {
        return Err(Fault::new(
            Code::NotFound,
            "nothing waits for this decision; it may have been made already",
        ));
    };
    Ok(Found {
        execution: row.int(1).map_err(fault)?,
        task: row.text(2).map_err(fault)?.to_owned(),
        ask: read(row.text(3).map_err(fault)?),
    })
}

async fn decided(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let token = args.text("token").unwrap_or_default();
    let found = find(&hub, context.principal.tenant.as_str(), token).await?;
    check_who(&found.ask, &context)?;
    let approved = args.text("decision") == Some("approve");
    let data = args.get("data").cloned();
    // Nothing filled in is an empty form; whoever says no need not fill in anything.
    match &data {
        Some(data) => check_form(&found.ask, data)?,
        None if approved => check_form(&found.ask, &json!({}))?,
        None => {}
    }
    let step: usize = found.task.parse().map_err(|_| Fault::internal("a question names no step"))?;
    let row = load::by_number(&hub, found.execution).await?.row;
    let by = args.text("by").unwrap_or(&context.principal.name).to_owned();
    let event = Event::Decided {
        task: Task::of(step),
        approved,
        by,
        comment: args.text("comment").map(str::to_owned),
        data: data.unwrap_or(Value::Null),
    };
    // Of two who decide at once, one row changes for one of them only.
    let mut effects = Batch::new();
    effects.then_one(tables::approval_take(token));
    let answer = json!({"executionId": row.id, "stepId": found.ask["stepId"],
                        "decision": if approved { "approved" } else { "rejected" }});
    control::tell_with(&hub, &row, event, answer, effects)
}

fn check_who(ask: &Value, context: &Context) -> Result<(), Fault> {
    let who: Vec<&str> = ask["who"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let principal = &context.principal;
    let is_meant = |one: &&str| match one.strip_prefix("role:") {
        Some(role) => AccessRole::parse(role).is_some_and(|role| principal.has(role)),
        None => **one == *principal.name,
    };
    if who.is_empty() || who.iter().any(is_meant) {
        return Ok(());
    }
    Err(Fault::new(Code::Unauthorized, format!("this is for {} to decide", who.join(", "))).with("who", who))
}

fn check_form(ask: &Value, data: &Value) -> Result<(), Fault> {
    if ask["form"].is_null() {
        return Ok(());
    }
    let form = schema::Schema::compile(ask["form"].clone())
        .map_err(|error| Fault::internal("the form of a checked workflow is wrong").because(error))?;
    form.check(data)
}
