//! `admin.listQuarantined`, and `tools.quarantined` for owners: the tools of other servers whose definition has changed, with both definitions.

use orchestr8_contract::Output;
use orchestr8_contract::id::Tenant;
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};
use serde_json::{Value, json};

use super::pins::{pins, pins_of};

/// Under the name it is asked for by: one for MCP clients, one for the faces.
pub fn action(name: &str) -> Result<Action, schema::Error> {
    let input = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let about = "Lists tools of other MCP servers whose definition has changed since it was accepted, with both definitions.";
    Ok(Action::tool(name, about, input, Policy::read(), list)?.titled("List quarantined tools"))
}

async fn list(_: Args, context: Context) -> Result<Reply, Halt> {
    let (ports, tenant) = (context.kernel.ports(), &context.principal.tenant);
    let mut all = pins(ports).await?;
    if *tenant != Tenant::local() {
        all.extend(pins_of(ports, tenant).await?);
    }
    let quarantined = all.into_iter().filter_map(|pin| {
        let changed = pin.changed?;
        Some(json!({
            "server": pin.server, "tool": pin.tool, "accepted": pin.accepted, "acceptedDefinition": pin.definition,
            "changed": changed.hash, "changedDefinition": changed.definition,
        }))
    });
    let quarantined: Vec<Value> = quarantined.collect();
    Ok(Output::json(json!({"tools": quarantined})).into())
}
