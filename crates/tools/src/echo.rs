//! `echo`: gives back the message it was sent.

use orchestr8_contract::Output;
use orchestr8_kernel::{Action, Args, Policy, schema};
use serde_json::{Value, json};

/// The seed's canonical schema of the tool type `echo`.
pub fn input() -> Value {
    json!({"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]})
}

pub fn action(name: &str) -> Result<Action, schema::Error> {
    let about = "Gives back the message it was sent.";
    Ok(Action::tool(name, about, input(), Policy::quick_read(), |args: Args, _| {
        let message = match args.into_value() {
            Value::Object(mut args) => args.remove("message").unwrap_or_default(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Value::Null
            }
        };
        std::future::ready(Ok(Output::json(json!({"message": message})).into()))
    })?
    .titled("Echo"))
}
