//! Webhooks: who is told of documents that are created, updated, deleted or moved.

use http::StatusCode;
use serde_json::Map;

use crate::actions;
use crate::answer;
use crate::call::{Call, Outcome};

pub(crate) async fn list(call: Call) -> Outcome {
    let principal = call.person(&call.query(&[])?).await?;
    let given = call.ask(&principal, actions::HOOKS_LIST, Map::new()).await?;
    Ok(answer::json(StatusCode::OK, &given.value))
}

/// `POST /webhooks {url, events, …}`: the arguments of the action.
pub(crate) async fn add(call: Call) -> Outcome {
    let principal = call.person(&call.query(&[])?).await?;
    let given = call.ask(&principal, actions::HOOKS_ADD, call.json()?).await?;
    let mut response = answer::json(StatusCode::CREATED, &given.value);
    answer::mark_replayed(&mut response, given.replayed);
    Ok(response)
}

pub(crate) async fn remove(call: Call) -> Outcome {
    let principal = call.person(&call.query(&[])?).await?;
    let args = Map::from_iter([("webhook_id".to_owned(), call.param("id")?.into())]);
    let given = call.ask(&principal, actions::HOOKS_REMOVE, args).await?;
    Ok(answer::json(StatusCode::OK, &given.value))
}
