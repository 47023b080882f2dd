//! What can be done to an execution: cancel, pause, resume, retry, fork, tell it an event, decide about a step.

use http::StatusCode;
use orchestr8_kernel::Args;
use serde_json::Value;

use super::text;
use crate::actions::{CANCEL, FORK, PAUSE, RESOLVE, RESUME, RETRY, SEND_EVENT, SIGNAL};
use crate::answer;
use crate::call::{Call, Given, Outcome};
use crate::failure::Failure;
use crate::to_wire;
use orchestr8_edge::ask::Body;

/// The longest id of a step a parameter takes.
const STEP: usize = 256;

/// 202 while it is being stopped; 200 with its status when nothing changes: it had ended before (decisions: cancel of a finished
/// one), or it is rolled back or runs its handlers, which cancel does not stop.
pub(crate) async fn cancel(call: Call) -> Outcome {
    call.query(&[])?;
    let body = call.read_if_any(&["reason", "graceful", "force"])?;
    let mut given = act(&call, CANCEL, body).await?;
    let ended = given.value.remove("alreadyFinal").and_then(|ended| ended.as_bool()).unwrap_or(false);
    if let Some(Value::Array(left)) = given.value.get_mut("notUndone") {
        left.iter_mut().for_each(to_wire::inner_error);
    }
    let goes_on = text(&given.value, "status") == "compensating" || given.value.contains_key("handlers");
    reply(if ended || goes_on { StatusCode::OK } else { StatusCode::ACCEPTED }, &given)
}

pub(crate) async fn pause(call: Call) -> Outcome {
    call.query(&[])?;
    let body = call.read_if_any(&["reason"])?;
    reply(StatusCode::OK, &act(&call, PAUSE, body).await?)
}

pub(crate) async fn resume(call: Call) -> Outcome {
    call.query(&[])?;
    let body = call.read_if_any(&["budget"])?;
    reply(StatusCode::OK, &act(&call, RESUME, body).await?)
}

pub(crate) async fn retry(call: Call) -> Outcome {
    call.query(&[])?;
    let body = call.read_if_any(&[])?;
    let given = act(&call, RETRY, body).await?;
    begun(&call, &given)
}

pub(crate) async fn fork(call: Call) -> Outcome {
    let query = call.query(&["fromStep"])?;
    let mut body = call.read_if_any(&["inputs", "variables", "workflow", "tags"])?;
    let Some(step) = query.bounded("fromStep", STEP)? else {
        return Err(Failure::invalid("?fromStep", "say from which step to go on anew"));
    };
    body.members.insert("fromStep".into(), step.into());
    let given = act(&call, FORK, body).await?;
    begun(&call, &given)
}

pub(crate) async fn signal(call: Call) -> Outcome {
    call.query(&[])?;
    let body = call.read(&["name", "payload", "id"])?;
    reply(StatusCode::ACCEPTED, &act(&call, SIGNAL, body).await?)
}

/// `POST /events`: to the executions that wait for a key.
pub(crate) async fn send_by_key(call: Call) -> Outcome {
    call.query(&[])?;
    let body = call.read(&["name", "key", "payload", "id", "to", "keepMs"])?;
    reply(StatusCode::ACCEPTED, &call.once(SEND_EVENT, Args::new(body.members)).await?)
}

pub(crate) async fn resolve(call: Call) -> Outcome {
    call.query(&[])?;
    let mut body = call.read(&["action", "output", "index"])?;
    body.members.insert("stepId".into(), call.param("step")?.into());
    reply(StatusCode::OK, &act(&call, RESOLVE, body).await?)
}

/// Runs an action on the execution the path names.
async fn act(call: &Call, action: &'static str, mut body: Body) -> Result<Given, Failure> {
    let id = call.param("id")?;
    body.members.insert("executionId".into(), Value::from(id));
    call.once(action, Args::new(body.members)).await.map_err(|failure| failure.about(id))
}

fn reply(status: StatusCode, given: &Given) -> Outcome {
    let mut response = answer::json(status, &given.value);
    answer::mark_replayed(&mut response, given.replayed);
    Ok(response)
}

/// Work has begun that can be looked at.
fn begun(call: &Call, given: &Given) -> Outcome {
    let mut response = reply(StatusCode::ACCEPTED, given)?;
    answer::locate(&mut response, &call.execution_url(text(&given.value, "executionId")));
    Ok(response)
}
