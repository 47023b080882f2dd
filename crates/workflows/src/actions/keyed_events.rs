//! `events.send`, and `send_event` for models: an event for the executions that wait for its key.

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::{Action, Args, Context, Halt, Reply, schema};
use serde_json::{Value, json};

use super::control::PAYLOAD_BYTES;
use super::{answer, changing, hidden, mcp, object, working};
use crate::keyed_events::{self, KeyedEvent};
use crate::limits;
use crate::runtime::Hub;

pub fn actions(hub: &Hub) -> Result<Vec<Action>, schema::Error> {
    let about = "Sends an event to the executions that wait for its key.";
    let send = hidden("events.send", about, input(), changing(), hub, |hub, args, context| async move {
        answer(take_in(&hub, &args, &context).await?)
    })?;
    let about = "Sends an event to the execution that waits for its name and key. If none waits, the event is kept for the first step that will.";
    let tool = working("send_event", about, input(), changing(), hub, send_event)?.giving(mcp::envelope())?;
    Ok(vec![send, tool.titled("Send an event by key")])
}

fn input() -> Value {
    let text = |most: usize, about: &str| json!({"type": "string", "minLength": 1, "maxLength": most, "pattern": "^[^\\u001f]*$", "description": about});
    object(
        json!({
            "name": text(256, "The name of the event that a step waits for."),
            "key": text(limits::EVENT_KEY_BYTES, "The business key that the step waits for, such as order-42."),
            "payload": {"description": "What the step gets as payload of its output."},
            "id": text(256, "Names this event: sent again with the same id, it is delivered once."),
            "to": {"enum": ["one", "all"], "description": "all: every execution that waits, and not only the one that has waited longest."},
            "keepMs": {"type": "integer", "minimum": 1, "maximum": limits::KEYED_EVENT_MAX_MS,
                       "description": "How long an event is kept that no execution waits for, in milliseconds."}
        }),
        &["name", "key"],
    )
}

async fn send_event(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let data = take_in(&hub, &args, &context).await?;
    answer(json!({"status": "ok", "data": data, "correlationId": context.correlation}))
}

async fn take_in(hub: &Hub, args: &Args, context: &Context) -> Result<Value, Fault> {
    let text = |name: &str| args.text(name).map(str::to_owned);
    let event = KeyedEvent {
        name: text("name").unwrap_or_default(),
        key: text("key").unwrap_or_default(),
        payload: args.get("payload").cloned().unwrap_or(Value::Null),
        id: text("id"),
        to_all: args.text("to") == Some("all"),
        keep_ms: args.get("keepMs").and_then(Value::as_i64).unwrap_or(limits::KEYED_EVENT_MS),
    };
    if orchestr8_contract::json::bytes(&event.payload) > PAYLOAD_BYTES {
        let what = format!("/payload: more than {PAYLOAD_BYTES} bytes");
        return Err(Fault::new(Code::PayloadTooLarge, what).with("path", "/payload"));
    }
    keyed_events::send(hub, &context.principal.tenant, &event).await
}
