//! What is asked of the program itself: its health, its figures, its description; and what is said where nothing is.

use http::{HeaderValue, StatusCode};
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::Args;

use super::Arguments;
use super::execution::mark;
use crate::actions::{ACCEPT_TOOL, METRICS, QUARANTINED, SERVERS, SYSTEM};
use crate::answer;
use crate::call::{Call, Outcome};
use crate::etag::{self, Condition};
use crate::failure::Failure;
use crate::wire::Health;

const NAME: &str = "orchestr8";

/// The committed description; a test holds it against what the code declares.
const OPENAPI: &str = include_str!("../../../../../schemas/openapi.json");
const REVALIDATE: HeaderValue = HeaderValue::from_static("no-cache");

pub(crate) async fn health(call: Call) -> Outcome {
    call.query(&[])?;
    let healthy = !call.face.settings.shutdown.is_cancelled();
    let body = Health {
        healthy,
        name: NAME,
        version: &call.face.settings.version,
        pid: std::process::id(),
        started_at: &call.face.started_at,
    };
    let status = if healthy { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Ok(answer::json(status, &body))
}

pub(crate) async fn metrics(call: Call) -> Outcome {
    call.query(&[])?;
    Ok(answer::json(StatusCode::OK, &call.ask(METRICS, Arguments::default().into_map()).await?))
}

pub(crate) async fn system(call: Call) -> Outcome {
    call.query(&[])?;
    Ok(answer::json(StatusCode::OK, &call.ask(SYSTEM, Arguments::default().into_map()).await?))
}

/// The other MCP servers whose tools are offered here.
pub(crate) async fn servers(call: Call) -> Outcome {
    call.query(&[])?;
    Ok(answer::json(StatusCode::OK, &call.ask(SERVERS, Arguments::default().into_map()).await?))
}

/// Tools of other servers whose definition has changed, with both definitions; for owners.
pub(crate) async fn quarantined(call: Call) -> Outcome {
    call.query(&[])?;
    Ok(answer::json(StatusCode::OK, &call.ask(QUARANTINED, Arguments::default().into_map()).await?))
}

/// Takes the changed definition that was looked at, and no other.
pub(crate) async fn accept_tool(call: Call) -> Outcome {
    call.query(&[])?;
    let body = call.read(&["server", "tool", "changed"])?;
    let given = call.once(ACCEPT_TOOL, Args::new(body.members)).await?;
    let mut response = answer::json(StatusCode::OK, &given.value);
    answer::mark_replayed(&mut response, given.replayed);
    Ok(response)
}

pub(crate) async fn openapi(call: Call) -> Outcome {
    call.query(&[])?;
    let tag = call.face.openapi_tag.get_or_init(|| etag::of_text(OPENAPI.as_bytes()));
    let mut response = match etag::check(call.headers(), tag) {
        Condition::Fresh => answer::empty(StatusCode::NOT_MODIFIED),
        Condition::Met | Condition::Failed => answer::bytes(StatusCode::OK, OPENAPI),
    };
    mark(&mut response, tag, REVALIDATE);
    Ok(response)
}

/// Below our prefixes, what is nowhere is told in our own words.
pub(crate) async fn nowhere(_: Call) -> Outcome {
    Err(Failure::not_found("there is nothing at this path; /openapi.json lists what there is"))
}

pub(crate) async fn not_this_method(call: Call) -> Outcome {
    let message =
        format!("this path does not take {}; the Allow header lists what it takes", call.parts.method);
    Err(Failure::from(Fault::new(Code::InvalidArgument, message)).status(StatusCode::METHOD_NOT_ALLOWED))
}
