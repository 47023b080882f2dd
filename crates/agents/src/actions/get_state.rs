//! `agent.getState`: what an agent remembers, without secrets, and cut to its names when it is large.

use orchestr8_contract::{Fault, Output};
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};
use serde_json::{Map, Value, json};

use crate::actions::agent_id;
use crate::coordinator::{Coordinator, unknown};

pub fn action(coordinator: Coordinator, state_bytes: usize) -> Result<Action, schema::Error> {
    let input = json!({
        "type": "object",
        "properties": {"agentId": {"type": "string", "description": "An id that agent.list gives."}},
        "required": ["agentId"],
        "additionalProperties": false
    });
    let work = move |args: Args, context: Context| {
        std::future::ready(show(&coordinator, state_bytes, &args, &context))
    };
    let about =
        "Shows the state of an agent. Secrets are left out; of a large state only the names are shown.";
    Ok(Action::tool("agent.getState", about, input, Policy::quick_read(), work)?
        .titled("Show the state of an agent")
        .also_called("agent/getState"))
}

fn show(coordinator: &Coordinator, limit: usize, args: &Args, context: &Context) -> Result<Reply, Halt> {
    let id = agent_id(args, "agentId")?;
    let state = coordinator.state(&id).ok_or_else(|| unknown(&id))?;
    // Redaction copies; a state that is too large to show is not worth the copy.
    let bytes = length(&*state)?;
    if bytes > limit {
        let (names, all) = first_names(&state, limit);
        let shown =
            json!({"agentId": id, "truncated": true, "stateBytes": bytes, "keys": names, "allKeys": all});
        return Ok(Output::json(shown).into());
    }
    let whole = Value::Object(state.as_ref().clone());
    let shown = context.kernel.ports().redactor.value(&whole).into_owned();
    Ok(Output::json(json!({"agentId": id, "truncated": false, "state": shown})).into())
}

fn length(value: &impl serde::Serialize) -> Result<usize, Fault> {
    let text = serde_json::to_string(value);
    text.map(|text| text.len())
        .map_err(|error| Fault::internal("the state cannot be written as JSON").because(error))
}

/// As many names as fit, and whether that is all of them.
fn first_names(state: &Map<String, Value>, limit: usize) -> (Vec<&str>, bool) {
    // Two quotes and a comma around each name.
    const AROUND: usize = 3;
    let mut left = limit;
    let mut names = Vec::new();
    for name in state.keys() {
        let Some(rest) = left.checked_sub(name.len() + AROUND) else { return (names, false) };
        left = rest;
        names.push(name.as_str());
    }
    (names, true)
}
