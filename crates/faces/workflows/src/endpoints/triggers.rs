//! Triggers: what starts workflows from outside.

use http::StatusCode;
use orchestr8_edge::ask::Body;
use orchestr8_kernel::Args;
use serde_json::Value;

use super::Arguments;
use super::lists::page;
use super::tokens::{random, refuse_key};
use crate::actions::{
    APPLY_TRIGGER, DELETE_TRIGGER, PAUSE_TRIGGER, REDRIVE_TRIGGER, RESUME_TRIGGER, TRIGGER, TRIGGERS,
};
use crate::answer;
use crate::call::{Call, Outcome};
use crate::failure::Failure;

const MEMBERS: [&str; 10] =
    ["id", "workflowId", "version", "revision", "secret", "webhook", "event", "notify", "inputs", "paused"];

pub(crate) async fn list(call: Call) -> Outcome {
    let query = call.query(&["cursor", "limit"])?;
    Ok(answer::json(StatusCode::OK, &call.ask(TRIGGERS, page(&query)?.into_map()).await?))
}

/// `PUT` or `POST /triggers`: the id is in the body.
pub(crate) async fn apply(call: Call) -> Outcome {
    call.query(&[])?;
    let body = call.read(&MEMBERS)?;
    store(&call, body).await
}

/// `PUT /triggers/{id}`: the id is in the path, and in the body only if it is the same.
pub(crate) async fn put(call: Call) -> Outcome {
    call.query(&[])?;
    let mut body = call.read(&MEMBERS)?;
    let id = call.param("id")?;
    match body.members.get("id") {
        Some(other) if other != id => {
            return Err(Failure::invalid("/id", "the path names another trigger"));
        }
        Some(_) | None => {}
    }
    body.members.insert("id".into(), id.into());
    store(&call, body).await
}

/// A secret is made here for a trigger that needs one. This answer is the only one that holds it, and is not kept: an
/// `Idempotency-Key` is refused.
async fn store(call: &Call, mut body: Body) -> Outcome {
    refuse_key(call)?;
    let secret = fresh_secret()?;
    body.members.insert("candidateSecret".into(), secret.as_str().into());
    let mut shown = call.ask(APPLY_TRIGGER, body.members).await?;
    if shown.remove("secretGenerated") == Some(Value::Bool(true)) {
        shown.insert("secret".into(), secret.into());
    }
    Ok(answer::json(StatusCode::OK, &shown))
}

fn fresh_secret() -> Result<String, Failure> {
    let bytes: [u8; 32] = random()?;
    Ok(bytes.iter().fold(String::from("o8hook_"), |text, byte| text + &format!("{byte:02x}")))
}

pub(crate) async fn show(call: Call) -> Outcome {
    call.query(&[])?;
    let args = Arguments::of("id", call.param("id")?);
    Ok(answer::json(StatusCode::OK, &call.ask(TRIGGER, args.into_map()).await?))
}

pub(crate) async fn delete(call: Call) -> Outcome {
    act(call, DELETE_TRIGGER).await
}

pub(crate) async fn pause(call: Call) -> Outcome {
    act(call, PAUSE_TRIGGER).await
}

pub(crate) async fn resume(call: Call) -> Outcome {
    act(call, RESUME_TRIGGER).await
}

pub(crate) async fn redrive(call: Call) -> Outcome {
    act(call, REDRIVE_TRIGGER).await
}

/// Runs an action on the trigger the path names. A body has nothing to say here.
async fn act(call: Call, action: &'static str) -> Outcome {
    call.query(&[])?;
    call.read_if_any(&[])?;
    let args = Arguments::of("id", call.param("id")?);
    let given = call.once(action, Args::new(args.into_map())).await?;
    let mut response = answer::json(StatusCode::OK, &given.value);
    answer::mark_replayed(&mut response, given.replayed);
    Ok(response)
}
