//! The protocol of workers: take tasks of a queue, say that one lives, complete or fail it.

use http::StatusCode;
use orchestr8_kernel::Args;

use crate::actions::{COMPLETE_TASK, FAIL_TASK, HEARTBEAT_TASK, POLL};
use crate::answer;
use crate::call::{Call, Outcome};

/// Waits for tasks. A worker that leaves meanwhile is not given any: nobody would do them until their lease ends.
pub(crate) async fn poll(call: Call) -> Outcome {
    call.query(&[])?;
    let mut body = call.read(&["workerId", "waitMs", "limit"])?;
    body.members.insert("queue".into(), call.param("queue")?.into());
    Ok(answer::json(StatusCode::OK, &call.wait(POLL, body.members).await?))
}

pub(crate) async fn complete(call: Call) -> Outcome {
    report(call, COMPLETE_TASK, &["leaseToken", "output", "usage"]).await
}

pub(crate) async fn fail(call: Call) -> Outcome {
    report(call, FAIL_TASK, &["leaseToken", "error"]).await
}

pub(crate) async fn heartbeat(call: Call) -> Outcome {
    report(call, HEARTBEAT_TASK, &["leaseToken"]).await
}

async fn report(call: Call, action: &'static str, known: &[&str]) -> Outcome {
    call.query(&[])?;
    let mut body = call.read(known)?;
    body.members.insert("taskId".into(), call.param("id")?.into());
    let given = call.once(action, Args::new(body.members)).await?;
    let mut response = answer::json(StatusCode::OK, &given.value);
    answer::mark_replayed(&mut response, given.replayed);
    Ok(response)
}
