//! Questions to people: which are open, and what was decided.

use orchestr8_contract::{AccessRole, Code, Fault};
use orchestr8_kernel::ports::store::{self, Batch};
use orchestr8_kernel::{Action, Args, Context, Halt, Principal, Reply, schema};
use serde_json::{Value, json};

use super::{answer, changing, control, hidden, object, page, reading};
use crate::engine::event::{Event, Task};
use crate::limits::PAGE;
use crate::runtime::tables::{self, Approval};
use crate::runtime::{Hub, fault, load};

pub fn open(hub: &Hub) -> Result<Action, schema::Error> {
    let input = object(
        json!({"executionId": {"type": "string"}, "token": {"type": "string"},
               "limit": {"type": "integer", "minimum": 1, "maximum": PAGE}}),
        &[],
    );
    hidden("executions.approvals", "Lists open approvals.", input, reading(), hub, list)
}

pub fn decide(hub: &Hub) -> Result<Action, schema::Error> {
    let input = object(
        json!({
            "token": {"type": "string", "minLength": 1, "maxLength": 128},
            "decision": {"enum": ["approve", "reject"]},
            "onBehalfOf": {"type": "string", "minLength": 1, "maxLength": 256},
            "comment": {"type": "string", "maxLength": 4096},
            "data": {}
        }),
        &["token", "decision"],
    );
    hidden(APPROVE, "Approves or rejects.", input, changing(), hub, decided)
}

/// The action that decides.
const APPROVE: &str = "executions.approve";

/// Whether a principal may decide, and so may be given the link that decides without credentials.
pub fn may_decide(principal: &Principal) -> bool {
    let has_role = principal.has(AccessRole::Approver) || principal.has(AccessRole::Owner);
    has_role && principal.is_in_scope(APPROVE)
}

async fn list(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let tenant = context.principal.tenant.as_str();
    let limit = page(&args, 100, PAGE);
    if let Some(token) = args.text("token") {
        let found = find(&hub, tenant, token).await?;
        let row = load::by_number(&hub, found.execution).await?.row;
        return answer(json!({"approvals": [shown(Some(token), &row.id, &found.ask)]}));
    }
    // The token decides, so only those who may decide see it.
    let may_decide = may_decide(&context.principal);
    let rows = hub.ports().store.query(tables::approvals_open(tenant, args.text("executionId"), limit)).await;
    let approvals: Vec<Value> = rows
        .map_err(fault)?
        .iter()
        .map(|row| {
            let token = row.text(0)?;
            Ok(shown(may_decide.then_some(token), row.text(4)?, &read(row.text(3)?)))
        })
        .collect::<Result<_, store::Error>>()
        .map_err(fault)?;
    answer(json!({"approvals": approvals}))
}

fn read(ask: &str) -> Value {
    serde_json::from_str(ask).unwrap_or(Value::Null)
}

fn shown(token: Option<&str>, execution: &str, ask: &Value) -> Value {
    let mut shown = ask.clone();
    shown["executionId"] = execution.into();
    if let Some(token) = token {
        shown["token"] = token.into();
        shown["url"] = format!("/v1/approvals/{token}").into();
    }
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
    let (execution, task) = (row.int(1).map_err(fault)?, row.text(2).map_err(fault)?);
    let ask = row.text(3).map_err(fault)?;
    let approval = Approval { token, tenant, execution, task, ask };
    approval.check(hub.row_seal(), row.optional_text(4).map_err(fault)?)?;
    Ok(Found { execution, task: task.to_owned(), ask: read(ask) })
}

async fn decided(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let token = args.text("token").unwrap_or_default();
    let found = find(&hub, context.principal.tenant.as_str(), token).await?;
    check_who(&found.ask, &context.principal)?;
    let approved = args.text("decision") == Some("approve");
    let data = args.get("data").cloned();
    // Nothing filled in is an empty form; a rejection needs no form.
    match &data {
        Some(data) => check_form(&found.ask, data)?,
        None if approved => check_form(&found.ask, &json!({}))?,
        None => {}
    }
    let step: usize = found.task.parse().map_err(|_| Fault::internal("a question names no step"))?;
    let row = load::by_number(&hub, found.execution).await?.row;
    let event = Event::Decided {
        task: Task::of(step),
        approved,
        by: context.principal.name.to_string(),
        on_behalf_of: args.text("onBehalfOf").map(str::to_owned),
        comment: args.text("comment").map(str::to_owned),
        data: data.unwrap_or(Value::Null),
    };
    // Of two concurrent decisions only one changes the row.
    let mut effects = Batch::new();
    effects.then_one(tables::approval_take(token));
    let answer = json!({"executionId": row.id, "stepId": found.ask["stepId"],
                        "decision": if approved { "approved" } else { "rejected" }});
    control::tell_with(&hub, &row, event, answer, effects)
}

/// Whether this principal may decide. The holder of a link is known by nothing but the link, so an approval that says who may
/// or may not decide asks for credentials.
fn check_who(ask: &Value, principal: &Principal) -> Result<(), Fault> {
    let who: Vec<&str> = ask["who"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let excludes_starter = ask["excludeStarter"] == true;
    if principal.is_approval_link() && (excludes_starter || !who.is_empty()) {
        return Err(Fault::new(
            Code::Unauthorized,
            "this approval needs credentials; the link alone does not decide it",
        ));
    }
    if excludes_starter && ask["startedBy"].as_str() == Some(&principal.name) {
        return Err(Fault::new(
            Code::Unauthorized,
            "this approval must be decided by a principal other than the one that started the execution",
        )
        .with("reason", "starter_excluded"));
    }
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
