//! What can be done to an execution.

use serde_json::json;

use super::Path;
use super::operation::{Operation, schema, text_of};
use super::shapes::{any_object, closed, list, one_of, open, tags, text, truth};

const TAG: &str = "executions";

pub(super) fn paths() -> Vec<Path> {
    vec![
        ("/executions/{id}/cancel", vec![("post", cancel())]),
        ("/executions/{id}/pause", vec![("post", pause())]),
        ("/executions/{id}/resume", vec![("post", resume())]),
        ("/executions/{id}/retry", vec![("post", retry())]),
        ("/executions/{id}/fork", vec![("post", fork())]),
        ("/executions/{id}/events", vec![("post", signal())]),
        ("/executions/{id}/steps/{step}/resolve", vec![("post", resolve())]),
    ]
}

fn on_execution(id: &str, summary: &str) -> Operation {
    Operation::new(id, TAG, summary).path("id", "The execution.").keyed().fails(&[404, 409])
}

fn cancel() -> Operation {
    let reason = json!({"type": "string", "maxLength": 1024});
    let body = closed(json!({"reason": reason, "graceful": truth(), "force": truth()}), &[]);
    let done = json!({
        "executionId": text(), "status": schema("Status"), "graceful": truth(), "message": text(),
        "notUndone": list(schema("NotUndone")),
    });
    let done = open(done, &["executionId", "status"]);
    on_execution(
        "cancelExecution",
        "Stops an execution: steps get a moment to clean up, then they are cut off.",
    )
    .optional_body(body)
    .about("Cancel does not stop a rollback. With force it does, nothing is rolled back, and what is left is listed.")
    .gives(200, "Nothing changes: it had ended before, or it is rolled back; its status.", done.clone())
    .gives(202, "It is being stopped.", done)
}

fn pause() -> Operation {
    on_execution("pauseExecution", "Lets nothing new begin.")
        .optional_body(closed(json!({"reason": {"type": "string", "maxLength": 1024}}), &[]))
        .gives(200, "It is paused.", schema("Moved"))
}

fn resume() -> Operation {
    let positive = json!({"type": "integer", "minimum": 1});
    let budget = closed(
        json!({
            "wallClockMs": positive, "steps": positive, "tokens": positive,
            "cost": {"type": "number", "exclusiveMinimum": 0},
        }),
        &[],
    );
    on_execution(
        "resumeExecution",
        "Goes on with a paused execution, with a larger budget where that stopped it.",
    )
    .optional_body(closed(json!({"budget": budget}), &[]))
    .gives(200, "It goes on.", schema("Moved"))
}

fn retry() -> Operation {
    on_execution("retryExecution", "Goes on with a failed, cancelled or compensated execution from the steps that failed or were undone.")
        .optional_body(closed(json!({}), &[]))
        .gives(202, "It goes on.", schema("Moved"))
        .with_header(202, "Location", "Where to look at it.")
}

fn fork() -> Operation {
    let body = closed(
        json!({
            "inputs": any_object(), "variables": any_object(), "workflow": schema("Definition"), "tags": tags(),
        }),
        &[],
    );
    let done =
        json!({"executionId": text(), "status": schema("Status"), "forkedFrom": text(), "fromStep": text()});
    on_execution("forkExecution", "Starts a new execution that keeps what came before a step.")
        .required_query("fromStep", text_of(256), "The step to start again from.")
        .optional_body(body)
        .gives(202, "The new execution.", open(done, &["executionId", "status", "forkedFrom"]))
        .with_header(202, "Location", "Where to look at it.")
}

fn signal() -> Operation {
    let body = json!({"name": text_of(256), "payload": true, "id": text_of(256)});
    let done = open(json!({"executionId": text(), "accepted": truth()}), &["executionId", "accepted"]);
    on_execution("sendEvent", "Tells an execution of an event it may wait for.")
        .body(closed(body, &["name"]))
        .gives(202, "It is kept for the execution.", done)
}

pub(super) fn send_by_key() -> Operation {
    let body = json!({"name": text_of(256), "key": text_of(512), "payload": true, "id": text_of(256),
                      "to": one_of(&["one", "all"]), "keepMs": {"type": "integer", "minimum": 1, "maximum": 604_800_000}});
    let done = open(
        json!({"accepted": truth(), "name": text(), "key": text(), "executions": {"type": "array", "items": text()},
               "kept": truth(), "keptUntil": {"type": ["string", "null"]}, "duplicate": truth()}),
        &["accepted", "executions", "kept", "duplicate"],
    );
    Operation::new("sendEventByKey", TAG, "Sends an event to the executions that wait for its key.")
        .about("Without an execution that waits it is kept for one that will.")
        .keyed()
        .body(closed(body, &["name", "key"]))
        .gives(202, "It is durable.", done)
}

fn resolve() -> Operation {
    let body = json!({
        "action": one_of(&["retry", "fail", "complete"]), "output": true, "index": {"type": "integer", "minimum": 0},
    });
    let done = open(json!({"executionId": text(), "stepId": text()}), &["executionId"]);
    on_execution("resolveStep", "Says what became of a step whose end is not known.")
        .path("step", "The step.")
        .body(closed(body, &["action"]))
        .gives(200, "It goes on accordingly.", done)
}
