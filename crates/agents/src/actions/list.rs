//! `agent.list`: the ids of all agents.

use orchestr8_contract::Output;
use orchestr8_kernel::{Action, Policy, schema};
use serde_json::json;

use crate::coordinator::Coordinator;
use crate::limits::LISTED_AGENTS;

pub fn action(coordinator: Coordinator) -> Result<Action, schema::Error> {
    let input = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let work = move |_, _| {
        let (ids, truncated) = coordinator.list(LISTED_AGENTS);
        std::future::ready(Ok(Output::json(json!({"agentIds": ids, "truncated": truncated})).into()))
    };
    Ok(Action::tool(
        "agent.list",
        "Lists the agents messages can be sent to.",
        input,
        Policy::quick_read(),
        work,
    )?
    .titled("List agents")
    .also_called("agent/list"))
}
