//! `events.send`: an event for the executions that wait for its key.

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::{Action, Args, Context, Halt, Reply, schema};
use serde_json::{Value, json};

use super::control::PAYLOAD_BYTES;
use super::{answer, changing, hidden, object};
use crate::keyed_events::{self, KeyedEvent};
use crate::limits;
use crate::runtime::Hub;

pub fn send(hub: &Hub) -> Result<Action, schema::Error> {
    let text = json!({"type": "string", "minLength": 1, "maxLength": 256, "pattern": "^[^\\u001f]*$"});
    let input = object(
        json!({
            "name": text, "key": {"type": "string", "minLength": 1, "maxLength": limits::EVENT_KEY_BYTES, "pattern": "^[^\\u001f]*$"},
            "payload": {}, "id": text, "to": {"enum": ["one", "all"]},
            "keepMs": {"type": "integer", "minimum": 1, "maximum": limits::KEYED_EVENT_MAX_MS}
        }),
        &["name", "key"],
    );
    let about = "Sends an event to the executions that wait for its key.";
    hidden("events.send", about, input, changing(), hub, take_in)
}

async fn take_in(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
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
        return Err(Fault::new(Code::PayloadTooLarge, what).with("path", "/payload").into());
    }
    answer(keyed_events::send(&hub, &context.principal.tenant, &event).await?)
}
