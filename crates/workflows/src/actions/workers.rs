//! The worker protocol: take work of a queue, say that it goes on, say how it ended.

use std::time::Duration;

use orchestr8_contract::json::bytes as json_bytes;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::action::Cost;
use orchestr8_kernel::grant::token_ended;
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{answer, hidden, number, object, reading};
use crate::agents::Usage;
use crate::agents::workers::{Failure, HeldTask, QueueKey, Task, Workers};
use crate::limits::OUTPUT_BYTES;

pub fn actions(workers: &Workers) -> Result<Vec<Action>, schema::Error> {
    let lease = || json!({"type": "string", "minLength": 1, "maxLength": 128});
    let poll_input = object(
        json!({
            "queue": {"type": "string"}, "workerId": {"type": "string"},
            "waitMs": {"type": "integer", "minimum": 0, "maximum": 60_000},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100}
        }),
        &["queue", "workerId"],
    );
    let complete_input = object(
        json!({"taskId": lease(), "leaseToken": lease(), "output": {},
               "usage": {"type": "object", "additionalProperties": false, "properties": {
                    "tokens": {"type": "integer", "minimum": 0}, "cost": {"type": "number", "minimum": 0}}}}),
        &["taskId", "leaseToken"],
    );
    let fail_input = object(
        json!({"taskId": lease(), "leaseToken": lease(),
               "error": {"type": "object", "additionalProperties": false, "required": ["message"], "properties": {
                    "message": {"type": "string"}, "code": {"type": "string"}, "retryable": {"type": "boolean"}}}}),
        &["taskId", "leaseToken", "error"],
    );
    let beat_input = object(json!({"taskId": lease(), "leaseToken": lease()}), &["taskId", "leaseToken"]);
    let quick = || Policy { cost: Cost::Quick, ..reading() };
    // The end of a task changes its execution: who reported it is on record.
    let ending = || Policy { audited: true, ..reading() };
    Ok(vec![
        hidden("workers.poll", "Takes work of a queue.", poll_input, reading(), workers, poll)?,
        hidden(
            "workers.complete",
            "Ends a task with its output.",
            complete_input,
            ending(),
            workers,
            complete,
        )?,
        hidden("workers.fail", "Ends a task with a failure.", fail_input, ending(), workers, fail)?,
        hidden("workers.heartbeat", "Says that a task goes on.", beat_input, quick(), workers, heartbeat)?,
    ])
}

async fn poll(workers: Workers, args: Args, context: Context) -> Result<Reply, Halt> {
    let wait = Duration::from_millis(number(&args, "waitMs").unwrap_or(0));
    let limit = number(&args, "limit").and_then(|limit| usize::try_from(limit).ok()).unwrap_or(1);
    let worker = args.text("workerId").unwrap_or_default();
    let name = args.text("queue").unwrap_or_default().into();
    let queue = QueueKey { tenant: context.principal.tenant.clone(), name };
    let tasks = tokio::select! {
        // First: a task must not go to a worker that may no longer have it.
        biased;
        () = context.principal.token_ended() => return Err(token_ended().into()),
        tasks = workers.poll(queue, worker, wait, limit) => tasks?,
        () = context.cancel.fired() => Vec::new(),
    };
    answer(json!({"tasks": tasks.iter().map(shown).collect::<Vec<_>>()}))
}

fn shown(task: &Task) -> Value {
    let call = &task.call;
    json!({
        "taskId": task.id, "leaseToken": task.lease_token, "leaseMs": task.lease_ms, "deadline": iso(task.deadline_ms),
        "executionId": call.execution, "workflowId": call.workflow, "stepId": call.step, "attempt": call.attempt,
        "idempotencyKey": call.key, "input": call.input, "config": call.config, "correlationId": call.correlation,
        "traceparent": call.trace,
    })
}

/// How long a worker waits for the end of its task to be on record.
const RECORD_LIMIT: Duration = Duration::from_secs(20);

/// The task that a worker says it holds.
fn held<'a>(args: &'a Args, context: &'a Context) -> Result<HeldTask<'a>, Fault> {
    let id = Uuid::parse_str(args.text("taskId").unwrap_or_default()).map_err(|_| {
        Fault::new(Code::NotFound, "there is no such task: it was ended, cancelled or timed out")
            .with("path", "/taskId")
    })?;
    let token = args.text("leaseToken").unwrap_or_default();
    Ok(HeldTask { tenant: &context.principal.tenant, id, token })
}

async fn complete(workers: Workers, args: Args, context: Context) -> Result<Reply, Halt> {
    let usage: Usage = args
        .get("usage")
        .cloned()
        .map(serde_json::from_value)
        .transpose()
        .map_err(|error| Fault::invalid(format!("/usage: {error}")).with("path", "/usage"))?
        .unwrap_or_default();
    let output = args.get("output").cloned().unwrap_or(Value::Null);
    let (task, bytes) = (held(&args, &context)?, json_bytes(&output));
    if bytes > OUTPUT_BYTES {
        let fault = Fault::new(
            Code::PayloadTooLarge,
            format!("/output: the output takes more than {OUTPUT_BYTES} bytes; the step has failed"),
        )
        .with("path", "/output")
        .with("bytes", bytes)
        .with("limit", OUTPUT_BYTES);
        accepted(&workers.refuse_output(&task, &fault)?, &context).await?;
        return Err(fault.into());
    }
    let recorded = workers.complete(&task, output, usage)?;
    accepted(&recorded, &context).await
}

/// A worker that is told so may forget the task: nothing is acknowledged before it is durable.
async fn accepted(recorded: &CancellationToken, context: &Context) -> Result<Reply, Halt> {
    const LATE: &str = "the end of the task could not be recorded in time; the task may come again";
    tokio::select! {
        () = recorded.cancelled() => answer(json!({"accepted": true})),
        () = context.kernel.ports().clock.sleep(RECORD_LIMIT) => {
            Err(Fault::new(Code::Unavailable, LATE).into())
        }
    }
}

async fn fail(workers: Workers, args: Args, context: Context) -> Result<Reply, Halt> {
    let error = args.get("error").cloned().unwrap_or(Value::Null);
    let failure = Failure {
        message: error["message"].as_str().unwrap_or_default().to_owned(),
        code: error["code"].as_str().map(str::to_owned),
        retryable: error["retryable"].as_bool().unwrap_or(false),
    };
    let recorded = workers.fail(&held(&args, &context)?, failure)?;
    accepted(&recorded, &context).await
}

async fn heartbeat(workers: Workers, args: Args, context: Context) -> Result<Reply, Halt> {
    let cancelled = workers.heartbeat(&held(&args, &context)?)?;
    answer(json!({"cancelled": cancelled}))
}
