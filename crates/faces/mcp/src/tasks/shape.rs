//! A task on the wire, in the words of either era.

use orchestr8_kernel::ports::clock::iso;
use serde_json::{Map, Value};

use super::task::{Ended, Seen};
use crate::body::{Body, ResultType};
use crate::era::Era;

/// How often a client should look.
const POLL_MS: u64 = 500;

/// The answer to a call that became a task.
pub fn created(seen: &Seen, era: Era) -> Body {
    match era {
        Era::Legacy(_) => Body::empty().value("task", &members(seen, era)),
        Era::Modern => flat(&members(seen, era)).of(ResultType::Task),
    }
}

/// The answer to a client that looks after a task.
pub fn seen(seen: &Seen, era: Era) -> Body {
    flat(&value(seen, era))
}

/// A task with all that its status has to show.
pub fn value(seen: &Seen, era: Era) -> Map<String, Value> {
    let mut task = members(seen, era);
    if !era.is_modern() {
        return task;
    }
    let parsed = |json: &str| serde_json::from_str::<Value>(json).unwrap_or_default();
    match &seen.ended {
        Some(Ended::Completed(result)) => {
            let mut result = parsed(result);
            if let Some(result) = result.as_object_mut() {
                result.insert("resultType".into(), "complete".into());
            }
            task.insert("result".into(), result);
        }
        Some(Ended::Failed(error)) => {
            task.insert("error".into(), parsed(error));
        }
        Some(Ended::Cancelled) | None => {}
    }
    if seen.ended.is_none() && !seen.questions.is_empty() {
        task.insert("inputRequests".into(), Value::Object(seen.questions.clone()));
    }
    task
}

fn members(seen: &Seen, era: Era) -> Map<String, Value> {
    let (ttl, poll) = if era.is_modern() { ("ttlMs", "pollIntervalMs") } else { ("ttl", "pollInterval") };
    let mut members = Map::from_iter([
        ("taskId".to_owned(), Value::from(seen.id.as_str())),
        ("status".to_owned(), seen.status.as_str().into()),
        ("createdAt".to_owned(), iso(seen.created_ms).into()),
        ("lastUpdatedAt".to_owned(), iso(seen.updated_ms).into()),
        (ttl.to_owned(), seen.ttl_ms.into()),
        (poll.to_owned(), POLL_MS.into()),
    ]);
    if let Some(message) = &seen.message {
        members.insert("statusMessage".into(), message.as_str().into());
    }
    members
}

fn flat(members: &Map<String, Value>) -> Body {
    members.iter().fold(Body::empty(), |body, (name, value)| body.value(name, value))
}
