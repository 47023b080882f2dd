//! `hooks.deliver`: takes signed deliveries to webhook triggers in.

use orchestr8_contract::{Code, Fault, Kind};
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};
use serde_json::{Map, Value, json};

use super::{answer, changing, hidden, map, object};
use crate::limits;
use crate::runtime::Hub;
use crate::triggers::deliver::{self, HookDelivery};

pub fn action(hub: &Hub) -> Result<Action, schema::Error> {
    hidden("hooks.deliver", "Takes a signed delivery in.", deliver_input(), delivering(), hub, take_in)
}

fn deliver_input() -> Value {
    let text = json!({"type": ["string", "null"]});
    object(
        json!({"name": {"type": "string"}, "body": {"type": "string"}, "headers": {"type": "object"},
               "query": {"type": "object"}, "timedSignature": text, "hubSignature": text}),
        &["name", "body"],
    )
}

/// A wrong signature is refused and not recorded here: the edge counts and records it.
fn delivering() -> Policy {
    const DELIVERY_REFUSALS: &[Kind] = &[
        Kind::Invalid,
        Kind::NotFound,
        Kind::Unauthenticated,
        Kind::Forbidden,
        Kind::Exhausted,
        Kind::Unavailable,
    ];
    Policy { refusals: DELIVERY_REFUSALS, journalled: false, ..changing() }
}

async fn take_in(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let text = |name: &str| args.text(name).map(str::to_owned);
    let delivery = HookDelivery {
        name: text("name").unwrap_or_default(),
        body: text("body").unwrap_or_default(),
        headers: bounded(map(&args, "headers")),
        query: bounded(map(&args, "query")),
        timed_signature: text("timedSignature"),
        hub_signature: text("hubSignature"),
    };
    if delivery.body.len() > limits::HOOK_BODY_BYTES {
        let most = limits::HOOK_BODY_BYTES;
        let what = format!("a delivery has at most {most} bytes");
        return Err(Fault::new(Code::PayloadTooLarge, what).with("limitBytes", most).into());
    }
    answer(deliver::deliver(&hub, context.principal.tenant.as_str(), &delivery).await?)
}

/// What expressions can see of headers and parameters: the first ones, and those that are not too long.
fn bounded(fields: Map<String, Value>) -> Map<String, Value> {
    let short = |value: &Value| value.as_str().is_some_and(|text| text.len() <= limits::HOOK_FIELD_BYTES);
    fields.into_iter().filter(|(_, value)| short(value)).take(limits::HOOK_FIELDS).collect()
}
