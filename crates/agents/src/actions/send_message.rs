//! `agent.sendMessage`: sends a message to an agent and gives back its answer.

use orchestr8_contract::Output;
use orchestr8_contract::id::AgentId;
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};
use serde_json::{Value, json};

use crate::actions::agent_id;
use crate::agent::Message;
use crate::coordinator::Coordinator;

pub fn action(coordinator: Coordinator) -> Result<Action, schema::Error> {
    let input = json!({
        "type": "object",
        "properties": {
            "targetAgentId": {"type": "string", "description": "An id that agent.list gives."},
            "message": {
                "type": "object",
                "properties": {
                    "type": {"type": "string", "description": "What sort of message, in words the agent knows."},
                    "payload": {"description": "Anything."}
                },
                "required": ["type"]
            }
        },
        "required": ["targetAgentId", "message"],
        "additionalProperties": false
    });
    let work = move |args: Args, context: Context| {
        let coordinator = coordinator.clone();
        async move { send(&coordinator, args, &context).await }
    };
    let about =
        "Sends a message to an agent and waits for its answer. An agent takes one message after the other.";
    // What an agent remembers is in memory: after a crash nothing of a message is left, so it may be worked on again.
    Ok(Action::tool("agent.sendMessage", about, input, Policy::stored(), work)?
        .titled("Send a message to an agent")
        .also_called("agent/sendMessage"))
}

async fn send(coordinator: &Coordinator, args: Args, context: &Context) -> Result<Reply, Halt> {
    let target: AgentId = agent_id(&args, "targetAgentId")?;
    let mut message = match args.into_value() {
        Value::Object(mut args) => args.remove("message").unwrap_or_default(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Value::Null,
    };
    let kind = message.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let payload = message.get_mut("payload").map(Value::take).unwrap_or_default();
    let message = Message { kind, payload, source: None };
    let answer = coordinator.send_until(&target, message, context.cancel.clone(), &context.log()).await?;
    Ok(Output::json(answer).into())
}
