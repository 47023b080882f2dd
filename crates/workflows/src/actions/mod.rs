//! What clients may ask of workflows: one file per matter, one line per action here.

mod approve;
mod artifact;
mod bulk;
mod control;
mod dashboard;
mod definition_of;
mod definitions;
mod execute;
pub(crate) mod feed;
mod fork;
mod fork_kept;
mod get;
mod hooks;
mod journal;
mod keyed_events;
mod limits;
mod list;
mod mcp;
mod schedules;
mod triggers;
mod workers;

pub use approve::may_decide;
use orchestr8_contract::{Code, Fault, Kind, Output};
use orchestr8_kernel::action::{self, Cost, Slotting};
use orchestr8_kernel::schema;
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply};
use serde_json::{Map, Value, json};

pub use fork::generations as generations_of_fork;
pub use fork_kept::kept as kept_by_fork;

use crate::agents::workers::Workers;
use crate::runtime::{Hub, Row, load};

/// Every action of this crate.
pub fn all(hub: &Hub, workers: &Workers) -> Result<Vec<Action>, schema::Error> {
    let mut actions = vec![
        execute::action(hub)?,
        get::action(hub)?,
        artifact::action(hub)?,
        definition_of::action(hub)?,
        list::action(hub)?,
        journal::action(hub)?,
        feed::action(hub)?,
        fork::action(hub)?,
        fork::retry_many(hub)?,
        approve::decide(hub)?,
        approve::open(hub)?,
        hooks::action(hub)?,
    ];
    actions.extend(keyed_events::actions(hub)?);
    actions.extend(control::actions(hub)?);
    actions.extend(bulk::actions(hub)?);
    actions.extend(limits::actions(hub)?);
    actions.extend(definitions::actions(hub)?);
    actions.extend(schedules::actions(hub)?);
    actions.extend(triggers::actions(hub)?);
    actions.extend(workers::actions(workers)?);
    actions.extend(dashboard::actions(hub)?);
    actions.extend(mcp::actions(hub)?);
    Ok(actions)
}

/// Reads and may wait: it needs no slot, since waiting is not work.
fn reading() -> Policy {
    /// Longer than the longest wait a caller may ask for.
    const TIMEOUT_MS: u64 = 90_000;
    Policy { slotting: Slotting::Free, timeout_ms: Some(TIMEOUT_MS), ..Policy::read() }
}

/// What was wrong with a request, or stood in its way at that moment: nothing happened, so that a key may be used again for
/// the corrected one.
const REFUSALS: &[Kind] =
    &[Kind::Invalid, Kind::NotFound, Kind::Forbidden, Kind::Exhausted, Kind::Unavailable];

/// Changes the store only.
fn changing() -> Policy {
    Policy { slotting: Slotting::Free, cost: Cost::Quick, refusals: REFUSALS, ..Policy::stored() }
}

/// An action that works with something of ours: the hub, the workers.
fn working<S, F, R>(
    name: &str,
    about: &str,
    input: Value,
    policy: Policy,
    with: &S,
    work: F,
) -> Result<Action, schema::Error>
where
    S: Clone + Send + Sync + 'static,
    F: Fn(S, Args, Context) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Reply, Halt>> + Send + 'static,
{
    let with = with.clone();
    Action::tool(name, about, input, policy, move |args, context| work(with.clone(), args, context))
}

/// The same for faces and other domains, not listed.
fn hidden<S, F, R>(
    name: &str,
    about: &str,
    input: Value,
    policy: Policy,
    with: &S,
    work: F,
) -> Result<Action, schema::Error>
where
    S: Clone + Send + Sync + 'static,
    F: Fn(S, Args, Context) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Reply, Halt>> + Send + 'static,
{
    let with = with.clone();
    let work = action::work(move |args, context| work(with.clone(), args, context));
    Action::unlisted(name, about, input, policy, work)
}

/// A closed object schema.
fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn answer(value: Value) -> Result<Reply, Halt> {
    Ok(Output::json(value).into())
}

fn execution_id() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 128, "description": "An id that workflows.execute gave."})
}

/// The execution an argument names, if it is this caller's.
async fn execution(hub: &Hub, args: &Args, context: &Context) -> Result<Row, Fault> {
    let id = args.text("executionId").unwrap_or_default();
    let tenant = context.principal.tenant.as_str();
    load::find(hub, tenant, id).await?.ok_or_else(|| unknown_execution(id))
}

fn unknown_execution(id: &str) -> Fault {
    Fault::new(Code::NotFound, format!("there is no execution named '{id}'")).with("executionId", id)
}

fn map(args: &Args, name: &str) -> Map<String, Value> {
    args.get(name).and_then(Value::as_object).cloned().unwrap_or_default()
}

fn number(args: &Args, name: &str) -> Option<u64> {
    args.get(name).and_then(Value::as_u64)
}

/// A page size within its limit.
fn page(args: &Args, preset: i64, max: i64) -> i64 {
    args.get("limit").and_then(Value::as_i64).unwrap_or(preset).clamp(1, max)
}

/// A moment given as ISO 8601 or as milliseconds since 1970.
fn moment(args: &Args, name: &str) -> Result<Option<i64>, Fault> {
    let wrong = |value: &Value| {
        Fault::invalid(format!("/{name}: {value} is no moment such as 2027-01-31T08:00:00Z"))
            .with("path", format!("/{name}"))
    };
    match args.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value @ Value::Number(number)) => number.as_i64().map(Some).ok_or_else(|| wrong(value)),
        Some(value @ Value::String(text)) => {
            text.parse::<jiff::Timestamp>().map(|at| Some(at.as_millisecond())).map_err(|_| wrong(value))
        }
        Some(other) => Err(wrong(other)),
    }
}
