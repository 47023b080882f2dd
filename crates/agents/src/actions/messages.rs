//! `aacp.send` and `aacp.message`: sends a message, and tells what became of one.

use orchestr8_contract::id::RequestId;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::store::Row;
use orchestr8_kernel::{Action, Args, Context, Halt, Reply, schema};
use serde_json::{Map, Value, json};

use super::requests::shown;
use super::{agent_schema, answer, number, object, reading, recording, wait_schema, working};
use crate::aacp::audit::Actor;
use crate::aacp::desk::Sent;
use crate::aacp::{Envelope, Hub, Kind, Status, check_ids, check_reserved};
use crate::limits::WAIT_MS;
use crate::tables;

pub fn send(hub: &Hub) -> Result<Action, schema::Error> {
    let about = "Sends a message to another agent, or to all that listen to a topic, and keeps it until they have it. A REQUEST with \
                 waitMs waits for the answer; a repeat with the same requestId is not worked on twice.";
    let action = working(("aacp.send", about), input(), recording(), hub, |hub, args, context| async move {
        send_one(&hub, args, &context).await
    })?;
    Ok(action.titled("Send a message to an agent, reliably"))
}

/// Either shape of an envelope; what a schema cannot say, the reader of envelopes says with the path.
fn input() -> Value {
    let id = json!({"type": "string", "minLength": 1, "maxLength": 128});
    let number = json!({"type": "integer", "minimum": 0});
    object(
        json!({
            "messageId": id, "requestId": id, "sourceAgentId": agent_schema(), "targetAgentId": agent_schema(),
            "topic": {"type": "string", "description": "Instead of a target: everyone who listens to it gets a copy."},
            "messageType": {"type": "string", "enum": ["REQUEST", "RESPONSE", "EVENT"]},
            "payload": {"description": "Anything."},
            "seq": number, "ack": number, "timestamp": {"type": "string"},
            "outcome": {"type": "string", "enum": ["COMPLETED", "FAILED"]}, "error": {},
            "timeoutMs": number, "ttlMs": number, "expiresAt": {"type": "string"}, "waitMs": wait_schema(),
            "id": {}, "type": {}, "source": {}, "destination": {}, "correlationId": {}, "causationId": {}, "ttl": {}, "priority": {}
        }),
        &[],
    )
}

async fn send_one(hub: &Hub, args: Args, context: &Context) -> Result<Reply, Halt> {
    let wait_ms = number(&args, "waitMs").unwrap_or(0).min(WAIT_MS);
    let mut map = match args.into_value() {
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    };
    map.remove("waitMs");
    if context.workflow.is_none() {
        // A workflow step has ids that follow from what it is, so that a repeat has the same.
        check_ids(&map)?;
    }
    let mut envelope = Envelope::read(map)?;
    check_reserved(&envelope.source, context.workflow.as_deref())?;
    let tenant = &context.principal.tenant;
    if wait_ms == 0 || envelope.kind != Kind::Request {
        return answer(told(hub.send(&context.principal, Actor::of(context), envelope).await?));
    }
    // Whoever listens before sending hears the end without looking for it.
    let request = match envelope.request.take() {
        Some(request) => request,
        None => {
            RequestId::from_uuid(context.kernel.ports().ids.fresh(orchestr8_kernel::ports::ids::For::Record))
        }
    };
    envelope.request = Some(request.clone());
    let ended = hub.listen(tenant, &request);
    let mut sent = match hub.send(&context.principal, Actor::of(context), envelope).await {
        Ok(sent) => sent,
        Err(fault) => {
            drop(ended);
            hub.hush(tenant, &request);
            return Err(fault.into());
        }
    };
    if sent.entry.as_ref().is_none_or(|entry| !entry.status.is_final()) {
        sent.entry = hub.until(tenant, &request, ended, wait_ms, &context.cancel).await?;
    }
    answer(told(sent))
}

/// What became of a message, as its sender is told.
fn told(sent: Sent) -> Value {
    let mut told =
        json!({"messageId": sent.message, "seq": sent.seq, "ack": sent.ack, "duplicate": sent.duplicate});
    if sent.held {
        told["held"] = true.into();
    }
    if !sent.gaps.is_empty() {
        told["gaps"] = sent.gaps.iter().map(|(from, to)| json!({"from": from, "to": to})).collect();
    }
    if let Some(request) = sent.request {
        told["requestId"] = request.as_str().into();
    }
    if let Some(entry) = &sent.entry {
        told["request"] = shown(entry);
    }
    if sent.seq == 0 && !sent.duplicate {
        told["copies"] =
            sent.copies.iter().map(|(agent, id)| json!({"agentId": agent, "messageId": id})).collect();
        told["skipped"] =
            sent.skipped.iter().map(|agent| json!({"agentId": agent, "reason": "mailbox_full"})).collect();
    }
    told
}

pub fn show(hub: &Hub) -> Result<Action, schema::Error> {
    let input =
        object(json!({"messageId": {"type": "string", "minLength": 1, "maxLength": 128}}), &["messageId"]);
    let about = "Shows a message and what became of it: PENDING until the target has it, then COMPLETED, FAILED or UNKNOWN.";
    let action = working(("aacp.message", about), input, reading(), hub, |hub, args, context| async move {
        let id = args.text("messageId").unwrap_or_default();
        let tenant = &context.principal.tenant;
        let rows = hub.query(tables::message_find(tenant.as_str(), id, hub.now_ms())).await?;
        let Some(row) = rows.first() else { return Err(no_message(id).into()) };
        let mut told = message(row).map_err(store_fault)?;
        if told["envelope"]["messageType"] == Kind::Request.as_str()
            && let Some(request) = told["requestId"].as_str().and_then(|id| RequestId::parse(id).ok())
            && let Some(entry) = hub.request(tenant, &request).await?
        {
            told["outcome"] = entry.status.as_str().into();
            told["request"] = shown(&entry);
        }
        answer(told)
    })?;
    Ok(action.titled("Show a message").hidden())
}

fn no_message(id: &str) -> Fault {
    Fault::new(Code::NotFound, format!("there is no message '{id}'")).with("messageId", id)
}

fn message(row: &Row) -> Result<Value, orchestr8_kernel::ports::store::Error> {
    use crate::aacp::rows;
    let envelope: Value = serde_json::from_str(row.text(6)?).unwrap_or_default();
    let acked = row.int(3)? > 0 && row.int(3)? <= row.int(12)?;
    let outcome = match row.text(7)? {
        "PENDING" if acked && row.int(13)? == 0 => Status::Completed.as_str(),
        status => status,
    };
    let mut told = json!({
        "messageId": row.text(0)?, "outcome": outcome, "timestamp": iso(row.int(9)?), "expiresAt": iso(row.int(10)?),
        "held": row.int(11)? != 0, "retryCount": row.int(13)?, "envelope": envelope,
    });
    if let Some(request) = row.optional_text(5)? {
        told["requestId"] = request.into();
    }
    if let Some(error) = rows::fault(row.optional_text(8)?)? {
        told["error"] = json!(error);
    }
    Ok(told)
}
