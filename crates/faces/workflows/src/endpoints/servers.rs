//! Other MCP servers: listed, added, shown, restarted, removed, and what they wrote to stderr. No Idempotency-Key: each of these may be
//! repeated, and the second addition of a name is refused.

use http::StatusCode;

use super::Arguments;
use crate::actions::{ADD_SERVER, REMOVE_SERVER, RESTART_SERVER, SERVER, SERVER_LOGS, SERVERS};
use crate::answer;
use crate::call::{Call, Outcome};

/// The members of an entry, as `servers.add` takes them.
pub(crate) const MEMBERS: [&str; 14] = [
    "name",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "prefix",
    "allow",
    "deny",
    "maxConcurrent",
    "startTimeoutMs",
    "timeoutMs",
    "idleTimeoutMs",
];

pub(crate) async fn list(call: Call) -> Outcome {
    call.query(&[])?;
    Ok(answer::json(StatusCode::OK, &call.ask(SERVERS, Arguments::default().into_map()).await?))
}

/// `POST /servers`: adds a server for the tenant of the caller.
pub(crate) async fn add(call: Call) -> Outcome {
    call.query(&[])?;
    let body = call.read(&MEMBERS)?;
    Ok(answer::json(StatusCode::OK, &call.ask(ADD_SERVER, body.members).await?))
}

pub(crate) async fn show(call: Call) -> Outcome {
    about(call, SERVER).await
}

pub(crate) async fn logs(call: Call) -> Outcome {
    about(call, SERVER_LOGS).await
}

pub(crate) async fn restart(call: Call) -> Outcome {
    about(call, RESTART_SERVER).await
}

pub(crate) async fn remove(call: Call) -> Outcome {
    about(call, REMOVE_SERVER).await
}

/// An action that takes nothing but the name.
async fn about(call: Call, action: &'static str) -> Outcome {
    call.query(&[])?;
    let args = Arguments::of("name", call.param("name")?);
    Ok(answer::json(StatusCode::OK, &call.ask(action, args.into_map()).await?))
}
