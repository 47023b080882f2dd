//! `aacp.request_status` and `aacp.requests`: what the ledger says of requests.

use orchestr8_contract::id::RequestId;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::{Action, schema};
use serde_json::{Value, json};

use super::{agent_schema, answer, number, object, reading, wait_schema, working};
use crate::aacp::{Answer, Entry, Hub, Status, rows};
use crate::limits;
use crate::tables;

pub fn show(hub: &Hub) -> Result<Action, schema::Error> {
    let id = json!({"type": "string", "minLength": 1, "maxLength": 128});
    let input = object(json!({"requestId": id, "waitMs": wait_schema()}), &["requestId"]);
    let about = "Tells what became of a request: PENDING, COMPLETED with its response, FAILED with its error, or UNKNOWN. With waitMs \
                 it waits for the end.";
    let action =
        working(("aacp.request_status", about), input, reading(), hub, |hub, args, context| async move {
            let text = args.text("requestId").unwrap_or_default();
            let missing = || {
                Fault::new(Code::NotFound, format!("there is no request '{text}'")).with("requestId", text)
            };
            let id = RequestId::parse(text).map_err(|_| missing())?;
            let wait_ms = number(&args, "waitMs").unwrap_or(0).min(limits::WAIT_MS);
            let tenant = &context.principal.tenant;
            match hub.wait(tenant, &id, wait_ms, &context.cancel).await? {
                Some(entry) => answer(shown(&entry)),
                None => Err(missing().into()),
            }
        })?;
    Ok(action.titled("Show a request"))
}

pub fn list(hub: &Hub) -> Result<Action, schema::Error> {
    let words: Vec<&str> = Status::ALL.iter().map(|status| status.as_str()).collect();
    let input = object(
        json!({
            "status": {"type": "string", "enum": words}, "agentId": agent_schema(),
            "limit": {"type": "integer", "minimum": 1, "maximum": limits::PAGE}
        }),
        &[],
    );
    let about = "Lists requests between agents, the newest first.";
    let action = working(("aacp.requests", about), input, reading(), hub, |hub, args, context| async move {
        let limit = args.get("limit").and_then(Value::as_i64).unwrap_or(100).clamp(1, limits::PAGE);
        let tenant = context.principal.tenant.as_str();
        let found = hub
            .query(tables::request_list(
                tenant,
                args.text("status"),
                args.text("agentId"),
                hub.now_ms(),
                limit,
            ))
            .await?;
        let entries: Vec<Entry> =
            found.iter().map(rows::entry).collect::<Result<_, _>>().map_err(store_fault)?;
        answer(json!({"requests": entries.iter().map(shown).collect::<Vec<_>>()}))
    })?;
    Ok(action.titled("List requests").hidden())
}

/// A request as it is told.
pub fn shown(entry: &Entry) -> Value {
    let mut told = json!({
        "requestId": entry.request, "status": entry.status, "sourceAgentId": entry.source, "targetAgentId": entry.target,
        "messageId": entry.message, "attempts": entry.attempts, "timestamp": iso(entry.asked_ms),
        "expiresAt": iso(entry.expires_ms),
    });
    if let Some(ended_ms) = entry.ended_ms {
        told["completedAt"] = iso(ended_ms).into();
        told["late"] = entry.late.into();
    }
    if let (Some(due_ms), Status::Unknown) = (entry.due_ms, entry.status) {
        told["nextRetryAt"] = iso(due_ms).into();
    }
    match &entry.answer {
        Some(Answer::Payload(payload)) => told["response"] = (**payload).clone(),
        Some(Answer::Error(error)) => told["error"] = json!(error),
        None => {}
    }
    told
}
