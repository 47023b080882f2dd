//! Every endpoint but the stream; each translates to one action.

use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use orchestr8_edge::ask::Query;
use serde_json::{Map, Value};

use crate::actions::{
    ACK, AGENTS, HEARTBEAT, MESSAGE, PAIRS, PURGE, REGISTER, REQUEST, REQUESTS, SEND, UNREGISTER,
};
use crate::answer;
use crate::call::{Call, Outcome};
use crate::failure::Failure;
use crate::openapi;

/// `POST /messages`: 201 for what is new, 200 for a repeat. With `wait`, a REQUEST waits for its answer.
pub(crate) async fn send(call: Call) -> Outcome {
    let wait_ms = call.query(&["wait"])?.wait_ms("wait")?;
    let mut args = call.read(&openapi::MEMBERS)?;
    if let Some(wait_ms) = wait_ms {
        args.insert(String::from("waitMs"), wait_ms.into());
    }
    let sent = call.ask(SEND, args).await?;
    if wait_ms.is_none() {
        // Whoever waits for the message goes first: its sender only learns that it was heard.
        orchestr8_edge::after_others().await;
    }
    let repeated = sent.get("duplicate").and_then(Value::as_bool).unwrap_or(false);
    let mut response = answer::json(if repeated { StatusCode::OK } else { StatusCode::CREATED }, &sent);
    let id = sent.get("messageId").and_then(Value::as_str).unwrap_or_default();
    if let Ok(url) = HeaderValue::from_str(&format!("/aacp/messages/{id}")) {
        response.headers_mut().insert(LOCATION, url);
    }
    Ok(response)
}

pub(crate) async fn message(call: Call) -> Outcome {
    call.query(&[])?;
    let args = named(&call, "messageId")?;
    Ok(answer::json(StatusCode::OK, &call.ask(MESSAGE, args).await?))
}

pub(crate) async fn request(call: Call) -> Outcome {
    let wait_ms = call.query(&["wait"])?.wait_ms("wait")?;
    let mut args = named(&call, "requestId")?;
    if let Some(wait_ms) = wait_ms {
        args.insert(String::from("waitMs"), wait_ms.into());
    }
    Ok(answer::json(StatusCode::OK, &call.ask(REQUEST, args).await?))
}

pub(crate) async fn requests(call: Call) -> Outcome {
    let query = call.query(&["status", "agentId", "limit"])?;
    let mut args = Map::new();
    if let Some(status) = query.one_of("status", &openapi::STATUSES)? {
        args.insert(String::from("status"), status.into());
    }
    narrow(&query, &mut args)?;
    Ok(answer::json(StatusCode::OK, &call.ask(REQUESTS, args).await?))
}

/// `GET /pairs`: between whom messages go, and what the receiver has not acknowledged.
pub(crate) async fn pairs(call: Call) -> Outcome {
    let query = call.query(&["agentId", "limit"])?;
    let mut args = Map::new();
    narrow(&query, &mut args)?;
    Ok(answer::json(StatusCode::OK, &call.ask(PAIRS, args).await?))
}

/// `POST /purge`: deletes what has expired, and says how much that was.
pub(crate) async fn purge(call: Call) -> Outcome {
    call.query(&[])?;
    let args = call.read_if_any(&[])?;
    Ok(answer::json(StatusCode::OK, &call.ask(PURGE, args).await?))
}

/// What lists have in common: of one agent, and so many.
fn narrow(query: &Query, args: &mut Map<String, Value>) -> Result<(), Failure> {
    if let Some(agent) = query.bounded("agentId", crate::settings::ID_BYTES)? {
        args.insert(String::from("agentId"), agent.into());
    }
    if let Some(limit) = query.number("limit", 1..=openapi::PAGE)? {
        args.insert(String::from("limit"), limit.into());
    }
    Ok(())
}

pub(crate) async fn agents(call: Call) -> Outcome {
    let query = call.query(&["topic"])?;
    let mut args = Map::new();
    if let Some(topic) = query.bounded("topic", openapi::TOPIC_LETTERS)? {
        args.insert(String::from("topic"), topic.into());
    }
    Ok(answer::json(StatusCode::OK, &call.ask(AGENTS, args).await?))
}

/// `POST /agents`: the id is in the body.
pub(crate) async fn register(call: Call) -> Outcome {
    call.query(&[])?;
    let args = call.read(&["agentId", "callbackUrl", "callbackSecret", "topics", "description"])?;
    Ok(answer::json(StatusCode::OK, &call.ask(REGISTER, args).await?))
}

/// `PUT /agents/{id}`: the id is in the path.
pub(crate) async fn put(call: Call) -> Outcome {
    call.query(&[])?;
    let mut args = call.read_if_any(&["callbackUrl", "callbackSecret", "topics", "description"])?;
    args.extend(named(&call, "agentId")?);
    Ok(answer::json(StatusCode::OK, &call.ask(REGISTER, args).await?))
}

pub(crate) async fn unregister(call: Call) -> Outcome {
    call.query(&[])?;
    let args = named(&call, "agentId")?;
    Ok(answer::json(StatusCode::OK, &call.ask(UNREGISTER, args).await?))
}

pub(crate) async fn heartbeat(call: Call) -> Outcome {
    call.query(&[])?;
    let mut args = call.read_if_any(&["state"])?;
    args.extend(named(&call, "agentId")?);
    Ok(answer::json(StatusCode::OK, &call.ask(HEARTBEAT, args).await?))
}

pub(crate) async fn acknowledge(call: Call) -> Outcome {
    call.query(&[])?;
    let mut args = call.read(&["sourceAgentId", "seq", "inboxSeq"])?;
    args.extend(named(&call, "agentId")?);
    Ok(answer::json(StatusCode::OK, &call.ask(ACK, args).await?))
}

pub(crate) async fn openapi(call: Call) -> Outcome {
    call.query(&[])?;
    Ok(answer::json(StatusCode::OK, &openapi::document()))
}

pub(crate) async fn nowhere(_: Call) -> Outcome {
    Err(Failure::not_found())
}

pub(crate) async fn not_this_method(_: Call) -> Outcome {
    let fault =
        orchestr8_contract::Fault::invalid("this path does not take this method; Allow lists those it takes");
    Err(Failure::from(fault).status(StatusCode::METHOD_NOT_ALLOWED))
}

/// The id of the path as an argument.
fn named(call: &Call, name: &str) -> Result<Map<String, Value>, Failure> {
    Ok(Map::from_iter([(name.to_owned(), Value::from(call.id()?))]))
}
