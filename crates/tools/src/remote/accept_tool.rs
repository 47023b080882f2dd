//! `admin.acceptTool`, and `tools.accept` for owners: takes the changed definition of a tool of another server, and the tool out of quarantine.

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::action::{Effect, OnUnknown};
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};
use serde_json::json;

use super::pins::accept_for;
use super::stored_servers::is_added;

/// Under the name it is asked for by: one for MCP clients, one for the faces.
pub fn action(name: &str) -> Result<Action, schema::Error> {
    let input = json!({
        "type": "object",
        "properties": {
            "server": {"type": "string", "maxLength": 256},
            "tool": {"type": "string", "maxLength": 256, "description": "Its own name at that server."},
            "changed": {
                "type": "string",
                "description": "The hash of the definition that was looked at, as admin.listQuarantined gives it."
            }
        },
        "required": ["server", "tool", "changed"],
        "additionalProperties": false
    });
    let about =
        "Accepts the changed definition of a tool of another MCP server, so that it can be used again.";
    // Accepting the same definition again changes nothing.
    let policy = Policy { effect: Effect::Outside(OnUnknown::Retry), idempotent: true, ..Policy::stored() };
    Ok(Action::tool(name, about, input, policy, take)?.titled("Accept a changed tool"))
}

async fn take(args: Args, context: Context) -> Result<Reply, Halt> {
    let (server, tool) = (args.text("server").unwrap_or_default(), args.text("tool").unwrap_or_default());
    let tenant = &context.principal.tenant;
    let is_own = is_added(&context.kernel, tenant, server).await?;
    // The tools of servers of the settings are the same for every tenant.
    if !is_own && !context.principal.administers_machine() {
        let what = format!(
            "tools of servers of the settings are shared by all tenants; an admin or owner of the tenant '{}' accepts them",
            Tenant::local()
        );
        return Err(Fault::new(Code::Unauthorized, what).with("reason", "other_tenants").into());
    }
    let home = if is_own { tenant.clone() } else { Tenant::local() };
    let ports = context.kernel.ports();
    let pin = accept_for(ports, &home, (server, tool), args.text("changed"), None).await?;
    Ok(Output::json(json!({"server": server, "tool": tool, "accepted": pin.accepted})).into())
}
