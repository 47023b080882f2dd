//! The protocol of workers.

use serde_json::{Value, json};

use super::Path;
use super::operation::{Operation, number_of, schema, text_of};
use super::shapes::{closed, list, open, text, truth};

const TAG: &str = "workers";

pub(super) fn paths() -> Vec<Path> {
    vec![
        ("/workers/{queue}/poll", vec![("post", poll())]),
        ("/tasks/{id}/complete", vec![("post", complete())]),
        ("/tasks/{id}/fail", vec![("post", fail())]),
        ("/tasks/{id}/heartbeat", vec![("post", heartbeat())]),
    ]
}

fn poll() -> Operation {
    let body = json!({"workerId": text_of(256), "waitMs": number_of(0, 60_000), "limit": number_of(1, 100)});
    Operation::new("pollTasks", TAG, "Takes tasks of a queue, and waits for them if asked to.")
        .path_like("queue", "^[A-Za-z0-9_.-]{1,128}$", "The queue.")
        .body(closed(body, &["workerId"]))
        .gives(
            200,
            "Tasks, each under a lease; none if none came.",
            open(json!({"tasks": list(schema("Task"))}), &["tasks"]),
        )
        .fails(&[504])
}

fn report(id: &str, summary: &str, mut members: Value, required: &[&str]) -> Operation {
    members["leaseToken"] = text_of(128);
    Operation::new(id, TAG, summary)
        .path("id", "The task.")
        .keyed()
        .body(closed(members, required))
        .fails(&[404, 409])
}

fn complete() -> Operation {
    let usage = closed(
        json!({"tokens": {"type": "integer", "minimum": 0}, "cost": {"type": "number", "minimum": 0}}),
        &[],
    );
    report(
        "completeTask",
        "Ends a task with its output.",
        json!({"output": true, "usage": usage}),
        &["leaseToken"],
    )
    .gives(200, "It is taken.", accepted())
}

fn fail() -> Operation {
    let error = closed(json!({"message": text(), "code": text(), "retryable": truth()}), &["message"]);
    report("failTask", "Ends a task with a failure.", json!({"error": error}), &["leaseToken", "error"])
        .gives(200, "It is taken.", accepted())
}

fn heartbeat() -> Operation {
    report("heartbeatTask", "Says that a task goes on.", json!({}), &["leaseToken"]).gives(
        200,
        "Whether to stop.",
        open(json!({"cancelled": truth()}), &["cancelled"]),
    )
}

fn accepted() -> Value {
    open(json!({"accepted": truth()}), &["accepted"])
}
