//! `begin_session`: opens a workspace for the connection, once.

use orchestr8_contract::Code;
use orchestr8_contract::envelope::Role;
use serde_json::json;

use crate::blocking;
use crate::desk::{BOTH, Call, Done, Tool};
use crate::recovery::recover_writes;
use crate::refusal::Refusal;

pub static TOOL: Tool = Tool {
    name: "begin_session",
    about: "Opens a workspace by the absolute path of its folder. Everything else needs this first, once for each connection.",
    roles: BOTH,
    input: || json!({"type": "object", "properties": {"workspace_root": {"type": "string"}}, "required": ["workspace_root"]}),
    changes: false,
    work: |call| Box::pin(work(call)),
};

async fn work(call: Call) -> Result<Done, Refusal> {
    let root = call.fields.required("workspace_root")?.to_owned();
    let (hub, conversation) = (call.hub.clone(), call.conversation.clone());
    let session =
        blocking::run(move || call.hub.begin(&call.conversation, call.role, &call.context, &root)).await?;
    if let Err(refusal) = recover_writes(&hub, &session).await {
        hub.forget(&conversation);
        return Err(refusal);
    }
    let path = session.root.path().to_str().map(str::to_owned).ok_or_else(|| {
        Refusal::startup(Code::SessionInitializationFailed, "the path of the workspace is no text")
    })?;
    let next = match session.role {
        Role::Planner => "Write a plan with save_plan; another person approves it.",
        Role::Executor => "Files are written within an approved plan; list_plans shows them.",
    };
    let output = json!({
        "status": "SESSION_INITIALIZED", "workspace_root": path,
        "message": format!("The session has begun as {}. {next}", session.role.as_str()),
    });
    Ok(Done { began: Some(session), ..Done::with(output) })
}
