//! Answers for a call that was refused before its tool ran (too large, no room, not an object), so that this too is told and
//! recorded as every failure is (ERR-6).

use orchestr8_contract::Code;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::desk::{BOTH, Call, Done, Tool};
use crate::refusal::Refusal;

pub static TOOL: Tool = Tool {
    name: "refused_call",
    about: "Answers for calls that no tool got to see.",
    roles: BOTH,
    input: || json!({"type": "object"}),
    changes: false,
    work: |call| Box::pin(work(call)),
};

async fn work(call: Call) -> Result<Done, Refusal> {
    let code = call.fields.get("code").and_then(|code| Code::deserialize(code).ok());
    let message = call.fields.text("message")?.unwrap_or("the call was refused").to_owned();
    let mut refusal = Refusal::new(code.unwrap_or(Code::UnknownToolFailure), message);
    if let Some(Value::Object(details)) = call.fields.get("details") {
        refusal.details.clone_from(details);
    }
    Err(refusal)
}
