//! Stored workflows: list, apply, show, delete, and validation of any.

use axum::response::Response;
use http::StatusCode;
use orchestr8_kernel::Args;
use serde_json::Value;

use super::lists::page;
use super::{Arguments, text};
use crate::actions::{AGENTS, APPLY, DELETE_WORKFLOW, VALIDATE, WORKFLOW, WORKFLOWS};
use crate::answer;
use crate::call::{Call, Given, Outcome};

/// The longest search text.
const SEARCH: usize = 256;

pub(crate) async fn list(call: Call) -> Outcome {
    let query = call.query(&["search", "cursor", "limit"])?;
    let args = page(&query)?.maybe("search", query.bounded("search", SEARCH)?);
    Ok(answer::json(StatusCode::OK, &call.ask(WORKFLOWS, args.into_map()).await?))
}

/// 201 for a new revision, 200 when it is stored already as it is.
pub(crate) async fn apply(call: Call) -> Outcome {
    call.query(&[])?;
    let body = call.read_large(&["workflow"]).await?;
    let given = call.once(APPLY, Args::read(body.members, body.text_bytes)).await?;
    let unchanged = given.value.get("unchanged").and_then(Value::as_bool).unwrap_or(false);
    let url = format!("{}/workflows/{}", call.prefix(), text(&given.value, "id"));
    Ok(stored(&given, unchanged, &url))
}

pub(crate) async fn validate(call: Call) -> Outcome {
    call.query(&[])?;
    let body = call.read_large(&["workflow"]).await?;
    let given = call.once(VALIDATE, Args::read(body.members, body.text_bytes)).await?;
    Ok(answer::json(StatusCode::OK, &given.value))
}

pub(crate) async fn show(call: Call) -> Outcome {
    call.query(&[])?;
    let args = Arguments::of("id", call.param("id")?);
    Ok(answer::json(StatusCode::OK, &call.ask(WORKFLOW, args.into_map()).await?))
}

pub(crate) async fn revision(call: Call) -> Outcome {
    call.query(&[])?;
    let missing = || crate::failure::Failure::not_found("there is no such revision");
    let revision = orchestr8_edge::ask::digits(call.param("revision")?)
        .filter(|number| *number > 0)
        .ok_or_else(missing)?;
    let args = Arguments::of("id", call.param("id")?).with("revision", revision);
    Ok(answer::json(StatusCode::OK, &call.ask(WORKFLOW, args.into_map()).await?))
}

pub(crate) async fn delete(call: Call) -> Outcome {
    call.query(&[])?;
    let args = Arguments::of("id", call.param("id")?);
    let given = call.once(DELETE_WORKFLOW, Args::new(args.into_map())).await?;
    Ok(answer::json(StatusCode::OK, &given.value))
}

pub(crate) async fn agents(call: Call) -> Outcome {
    call.query(&[])?;
    Ok(answer::json(StatusCode::OK, &call.ask(AGENTS, Arguments::default().into_map()).await?))
}

/// Something was stored under `url`, or was there already.
pub(crate) fn stored(given: &Given, unchanged: bool, url: &str) -> Response {
    let status = if unchanged { StatusCode::OK } else { StatusCode::CREATED };
    let mut response = answer::json(status, &given.value);
    answer::locate(&mut response, url);
    answer::mark_replayed(&mut response, given.replayed);
    response
}
