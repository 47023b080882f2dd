//! `read_prompt`: what a model in one of the roles should know; each role reads its own.

use orchestr8_contract::Code;
use orchestr8_contract::envelope::Role;
use serde_json::json;

use crate::desk::{BOTH, Call, Done, Tool};
use crate::refusal::Refusal;

pub static TOOL: Tool = Tool {
    name: "read_prompt",
    about: "Reads the instructions of a role: planner or executor. Each role reads its own.",
    roles: BOTH,
    input: || json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}),
    changes: false,
    work: |call| Box::pin(work(call)),
};

async fn work(call: Call) -> Result<Done, Refusal> {
    call.session()?;
    let name = call.fields.required("name")?;
    let role = Role::ALL.into_iter().find(|role| name == role.as_str() || name == role.wire());
    let role = role.ok_or_else(|| {
        Refusal::new(Code::InvalidInputValue, "there are two prompts: planner and executor")
    })?;
    if role != call.role {
        let message = format!("the prompt of the {} is not for the {}", role.as_str(), call.role.as_str());
        return Err(Refusal::new(Code::RoleMismatch, message));
    }
    let text = match role {
        Role::Planner => include_str!("prompts/planner.md"),
        Role::Executor => include_str!("prompts/executor.md"),
    };
    Ok(Done::with(json!({"name": role.as_str(), "content": text})))
}
