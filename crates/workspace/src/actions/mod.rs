//! The governed tools: one file each, one line each in the list below.

mod approve_plan;
mod begin_session;
mod bootstrap_create_foundation_plan;
mod export_attestation_bundle;
mod generate_attestation_bundle;
mod lint_plan;
mod list_plans;
mod read_audit_log;
mod read_file;
mod read_plan;
mod read_prompt;
mod refused_call;
mod replay_execution;
mod save_plan;
mod test_throw;
mod unknown_tool;
mod verify_attestation_bundle;
mod verify_workspace_integrity;
mod write_file;

pub use export_attestation_bundle::FOLDER as ATTESTATIONS;
use orchestr8_contract::envelope::GOVERNED;
use orchestr8_kernel::action::{Effect, OnUnknown, Slotting};
use orchestr8_kernel::schema::{self, Schema};
use orchestr8_kernel::{Action, Args, Context, Policy};
pub(crate) use save_plan::put as put_plan;
use serde_json::Value;

use crate::desk::{self, Tool};
use crate::hub::Hub;
use crate::limits;
use crate::requests;

/// The member of `_meta` that says which roles may use a tool; the face that shows the tools reads it.
const ROLES_META: &str = "orchestr8/roles";

const TOOLS: [&Tool; 16] = [
    &begin_session::TOOL,
    &read_file::TOOL,
    &write_file::TOOL,
    &list_plans::TOOL,
    &lint_plan::TOOL,
    &read_plan::TOOL,
    &save_plan::TOOL,
    &approve_plan::TOOL,
    &bootstrap_create_foundation_plan::TOOL,
    &read_audit_log::TOOL,
    &replay_execution::TOOL,
    &verify_workspace_integrity::TOOL,
    &generate_attestation_bundle::TOOL,
    &verify_attestation_bundle::TOOL,
    &export_attestation_bundle::TOOL,
    &read_prompt::TOOL,
];

/// Every action of this crate, under names that no other tool has.
pub fn all(hub: &Hub) -> Result<Vec<Action>, schema::Error> {
    let mut actions = Vec::with_capacity(TOOLS.len() + 8);
    for tool in TOOLS {
        actions.push(action(hub, tool)?);
    }
    for tool in [&unknown_tool::TOOL, &refused_call::TOOL] {
        let mut answering = action(hub, tool)?;
        answering.about.meta.clear();
        actions.push(answering);
    }
    actions.extend(requests::all(hub)?);
    if hub.settings().conformance {
        actions.push(action(hub, &test_throw::TOOL)?);
    }
    Ok(actions)
}

fn action(hub: &Hub, tool: &'static Tool) -> Result<Action, schema::Error> {
    let own = hub.clone();
    let work = move |args: Args, context: Context| desk::serve(own.clone(), tool, args, context);
    let policy = Policy {
        effect: if tool.changes { Effect::Outside(OnUnknown::Fail) } else { Effect::Read },
        timeout_ms: Some(hub.settings().call_ms + limits::GRACE_MS),
        payload_bytes: Some(limits::PAYLOAD_BYTES),
        slotting: Slotting::Wait { limit_ms: limits::CALL_MS },
        audited: true,
        idempotent: !tool.changes,
        destructive: tool.changes,
        ..Policy::read()
    };
    let name = format!("{GOVERNED}{}", tool.name);
    let work = orchestr8_kernel::action::work(work);
    let mut action = Action::unlisted(&name, tool.about, schema::any_object(), policy, work)?;
    action.input = Schema::told((tool.input)())?;
    let roles: Vec<Value> = tool.roles.iter().map(|role| role.as_str().into()).collect();
    action.about.meta.insert(ROLES_META.into(), roles.into());
    Ok(action)
}
