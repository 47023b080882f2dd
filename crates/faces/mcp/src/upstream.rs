//! What other MCP servers offer through this one beside tools: asked of the actions that reach them.

use std::sync::Arc;

use orchestr8_contract::Output;
use orchestr8_kernel::action::Action;
use orchestr8_kernel::outcome::Settled;
use orchestr8_kernel::{Args, Started, Submission};
use serde_json::{Map, Value};

use crate::era::{Era, Revision};
use crate::governed;
use crate::request::{Answer, Outcome, Request};
use crate::wire::{self, Error};

/// The actions that reach other servers. They are not there if no server is configured.
const LIST: &str = "upstream.list";
pub const READ: &str = "upstream.read";
pub const PROMPT: &str = "upstream.prompt";
pub const COMPLETE: &str = "upstream.complete";
pub const FOLLOW: &str = "upstream.follow";

/// What addresses of resources of other servers begin with.
const SCHEME: &str = "mcp://";

/// The action that reaches other servers in this way, for a connection that is not held to a governed workspace.
pub fn action(request: &Request<'_>, name: &str) -> Option<Arc<Action>> {
    request.kernel().registry().find(name).filter(|_| governed::role(request.who()).is_none())
}

/// The same, for the address of a resource that can only be one of another server.
pub fn action_for(request: &Request<'_>, name: &str, uri: &str) -> Option<Arc<Action>> {
    action(request, name).filter(|_| uri.starts_with(SCHEME))
}

/// Runs an action and answers with what is made of its outcome.
pub fn run(
    request: &Request<'_>,
    submission: Submission,
    conclude: impl FnOnce(Settled) -> Outcome + Send + 'static,
) -> Answer {
    match request.kernel().start(submission) {
        Started::Done(settled) => Answer::Now(conclude(*settled)),
        Started::Running(task) => Answer::Later(Box::pin(async move {
            match task.await {
                Ok(settled) => conclude(settled),
                Err(_) => Outcome::from(Err(Error::new(wire::INTERNAL, "the request was lost"))),
            }
        })),
    }
}

/// The request for a list of all other servers: none if there are none, or the client may not see what they have.
pub fn list(request: &Request<'_>, list: &str) -> Option<Submission> {
    let action = action(request, LIST).filter(|action| action.admits(request.who()))?;
    let args = Map::from_iter([("list".to_owned(), Value::from(list))]);
    Some(request.submission(action.name.as_str().into(), Args::new(args)))
}

/// The entries of a list, as this revision knows them.
pub fn entries(settled: &Settled, era: Era) -> Vec<Map<String, Value>> {
    let Ok(Output::Json { value: Value::Array(items) }) = &settled.result else { return Vec::new() };
    let entries = items.iter().filter_map(Value::as_object).cloned();
    entries.map(|entry| in_era(entry, era)).collect()
}

fn in_era(mut entry: Map<String, Value>, era: Era) -> Map<String, Value> {
    if !era.since(Revision::V2025_06_18) {
        entry.remove("title");
    }
    if !era.since(Revision::V2025_11_25) {
        entry.remove("icons");
    }
    entry
}
