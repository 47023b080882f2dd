//! Answers for a name that is no tool, so that this too is told and recorded as every failure is.

use orchestr8_contract::Code;
use serde_json::json;

use crate::desk::{BOTH, Call, Done, Tool};
use crate::refusal::Refusal;

pub static TOOL: Tool = Tool {
    name: "unknown_tool",
    about: "Answers for names that are no tools.",
    roles: BOTH,
    input: || json!({"type": "object"}),
    changes: false,
    work: |call| Box::pin(work(call)),
};

async fn work(call: Call) -> Result<Done, Refusal> {
    let name: String = call.fields.text("name")?.unwrap_or_default().chars().take(128).collect();
    Err(Refusal::new(Code::NotFound, format!("there is no tool named '{name}'")).with("name", name))
}
