//! What clients may ask of agents: one file per matter, one line per action here.

mod get_state;
mod inbox;
mod list;
mod messages;
mod pairs;
mod purge;
mod registry;
mod requests;
mod send_message;

use orchestr8_contract::id::AgentId;
use orchestr8_contract::{Fault, Output, limits};
use orchestr8_kernel::action::{Cost, Slotting};
use orchestr8_kernel::schema;
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply};
use serde_json::{Value, json};

use crate::aacp::Hub;
use crate::coordinator::Coordinator;

/// What an installation sets for agents.
#[derive(Debug, Clone)]
pub struct Settings {
    /// A state beyond this many bytes is shown by its names only (`tools.maxStateBytes`).
    pub state_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { state_bytes: limits::STATE_BYTES }
    }
}

/// Every action on agents inside the process.
pub fn all(coordinator: &Coordinator, settings: &Settings) -> Result<Vec<Action>, schema::Error> {
    Ok(vec![
        list::action(coordinator.clone())?,
        get_state::action(coordinator.clone(), settings.state_bytes)?,
        send_message::action(coordinator.clone())?,
    ])
}

/// Every action on messages between agents, and on who takes part in them.
pub fn of_messages(hub: &Hub) -> Result<Vec<Action>, schema::Error> {
    Ok(vec![
        messages::send(hub)?,
        messages::show(hub)?,
        requests::show(hub)?,
        requests::list(hub)?,
        pairs::list(hub)?,
        purge::purge(hub)?,
        inbox::read(hub)?,
        inbox::acknowledge(hub)?,
        registry::register(hub)?,
        registry::unregister(hub)?,
        registry::heartbeat(hub)?,
        registry::list(hub)?,
    ])
}

/// The agent an argument names.
fn agent_id(args: &Args, name: &str) -> Result<AgentId, Fault> {
    AgentId::parse(args.text(name).unwrap_or_default())
        .map_err(|wrong| Fault::invalid(format!("/{name}: {wrong}")).with("path", format!("/{name}")))
}

/// Longer than the longest wait a caller may ask for.
const TIMEOUT_MS: u64 = 90_000;

/// Reads and may wait: it needs no slot, since waiting is not work.
fn reading() -> Policy {
    Policy { slotting: Slotting::Free, timeout_ms: Some(TIMEOUT_MS), ..Policy::read() }
}

/// Changes only the store. A message is its own record, and is known again by its id: the kernel's journal and audit would say
/// the same again, for another flush.
fn recording() -> Policy {
    Policy {
        journalled: false,
        audited: false,
        idempotent: true,
        timeout_ms: Some(TIMEOUT_MS),
        slotting: Slotting::Free,
        cost: Cost::Quick,
        ..Policy::stored()
    }
}

/// An action over the hub.
fn working<F, R>(
    (name, about): (&str, &str),
    input: Value,
    policy: Policy,
    hub: &Hub,
    work: F,
) -> Result<Action, schema::Error>
where
    F: Fn(Hub, Args, Context) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Reply, Halt>> + Send + 'static,
{
    let hub = hub.clone();
    Action::tool(name, about, input, policy, move |args, context| work(hub.clone(), args, context))
}

/// A closed object schema.
fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn answer(value: Value) -> Result<Reply, Halt> {
    Ok(Output::json(value).into())
}

fn number(args: &Args, name: &str) -> Option<u64> {
    args.get(name).and_then(Value::as_u64)
}

fn agent_schema() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 256, "description": "The id of an agent."})
}

fn wait_schema() -> Value {
    json!({"type": "integer", "minimum": 0, "maximum": crate::limits::WAIT_MS, "description": "How long to wait, in milliseconds."})
}
