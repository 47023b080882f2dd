//! Named secrets: created, listed without values, rotated, deleted. No Idempotency-Key: a stored fingerprint of a weak value
//! could be guessed, and each of these may be repeated anyway.

use http::StatusCode;

use super::Arguments;
use crate::actions::{DELETE_SECRET, ROTATE_SECRET, SECRETS, SET_SECRET};
use crate::answer;
use crate::call::{Call, Outcome};

pub(crate) async fn list(call: Call) -> Outcome {
    call.query(&[])?;
    Ok(answer::json(StatusCode::OK, &call.ask(SECRETS, Arguments::default().into_map()).await?))
}

/// `POST /secrets`: creates a secret, or replaces its value and its bindings.
pub(crate) async fn set(call: Call) -> Outcome {
    call.query(&[])?;
    let body = call.read(&["name", "value", "workflows", "agents", "to"])?;
    Ok(answer::json(StatusCode::OK, &call.ask(SET_SECRET, body.members).await?))
}

/// `PUT /secrets/{name}`: replaces the value; the bindings stay.
pub(crate) async fn rotate(call: Call) -> Outcome {
    call.query(&[])?;
    let mut body = call.read(&["value"])?;
    body.members.insert("name".into(), call.param("name")?.into());
    Ok(answer::json(StatusCode::OK, &call.ask(ROTATE_SECRET, body.members).await?))
}

pub(crate) async fn delete(call: Call) -> Outcome {
    call.query(&[])?;
    let args = Arguments::of("name", call.param("name")?);
    Ok(answer::json(StatusCode::OK, &call.ask(DELETE_SECRET, args.into_map()).await?))
}
