//! What a dashboard shows: how much runs, how it went lately, and what can be called.

use orchestr8_kernel::{Action, Args, Context, Halt, Reply, schema};
use serde_json::{Map, Value, json};

use super::{answer, hidden, object, reading};
use crate::runtime::{Hub, breakers, fault};
use crate::tables;

pub fn actions(hub: &Hub) -> Result<Vec<Action>, schema::Error> {
    let nothing = || object(json!({}), &[]);
    Ok(vec![
        hidden(
            "workflows.metrics",
            "Counts what runs and what has run.",
            nothing(),
            reading(),
            hub,
            metrics,
        )?,
        hidden("workflows.system", "Shows how the engine stands.", nothing(), reading(), hub, system)?,
        hidden("workflows.agents", "Lists what steps can call.", nothing(), reading(), hub, agents)?,
    ])
}

async fn metrics(hub: Hub, _: Args, context: Context) -> Result<Reply, Halt> {
    let statement = tables::executions_counted(context.principal.tenant.as_str());
    let rows = hub.ports().store.query(statement).await.map_err(fault)?;
    let mut executions = Map::new();
    for row in &rows {
        executions.insert(row.text(0).map_err(fault)?.to_owned(), row.int(1).map_err(fault)?.into());
    }
    answer(json!({"executions": executions, "queue": queue(&hub), "bus": context.kernel.bus().metrics()}))
}

fn queue(hub: &Hub) -> Value {
    let (depth, (remote, waiting_remote)) = (hub.depth(), hub.remote_depth());
    json!({"runningSteps": depth.running, "maxRunningSteps": depth.max, "waitingSteps": depth.waiting_steps,
           "waitingExecutions": depth.waiting_executions, "begunExecutions": depth.begun, "liveExecutions": hub.live(),
           "remoteSteps": remote, "waitingRemoteSteps": waiting_remote})
}

async fn system(hub: Hub, _: Args, context: Context) -> Result<Reply, Halt> {
    let mut breakers = context.kernel.breakers().snapshot();
    breakers.retain(|breaker| breakers::is_visible(&context.principal.tenant, &breaker.key));
    answer(json!({"queue": queue(&hub), "breakers": breakers, "inFlight": context.kernel.in_flight(),
                  "runningActions": context.kernel.running()}))
}

async fn agents(hub: Hub, _: Args, _: Context) -> Result<Reply, Halt> {
    let mut agents: Vec<Value> = hub
        .agents()
        .all()
        .map(|agent| json!({"id": agent.id(), "about": agent.about(), "pure": agent.is_pure()}))
        .collect();
    agents.sort_by_key(|agent| agent["id"].to_string());
    answer(json!({"agents": agents}))
}
