//! Triggers, and the deliveries that they take.

use serde_json::{Value, json};

use super::Path;
use super::operation::{Operation, number_of, schema, text_of};
use super::shapes::{any_object, closed, list, moment, one_of, open, or_null, text, truth, whole};
use crate::settings::PAGE_LIMIT;

const TAG: &str = "triggers";
const ID: &str = "^[a-zA-Z0-9_-]{1,128}$";

pub(super) fn paths() -> Vec<Path> {
    vec![
        (
            "/triggers",
            vec![("get", listing()), ("post", apply("createTrigger")), ("put", apply("applyTrigger"))],
        ),
        ("/triggers/{id}", vec![("get", show()), ("put", put()), ("delete", delete())]),
        ("/triggers/{id}/pause", vec![("post", act("pauseTrigger", "Lets a trigger refuse deliveries."))]),
        (
            "/triggers/{id}/resume",
            vec![("post", act("resumeTrigger", "Lets a paused trigger take deliveries again."))],
        ),
        ("/triggers/{id}/redrive", vec![("post", redrive())]),
        ("/hooks/{hook}", vec![("post", deliver())]),
    ]
}

fn webhook() -> Value {
    closed(
        json!({
            "signature": one_of(&["any", "timed", "github"]),
            "deduplication": closed(json!({"key": text_of(1024), "windowMs": number_of(1, 604_800_000)}), &[]),
            "debounce": closed(
                json!({"quietMs": number_of(1, 86_400_000), "maxWaitMs": number_of(1, 86_400_000)}),
                &["quietMs"]
            ),
            "batch": closed(
                json!({"size": number_of(1, 100), "windowMs": number_of(1, 86_400_000), "input": text_of(128)}),
                &["size", "windowMs", "input"]
            ),
            "maxPerMinute": number_of(1, 6000),
        }),
        &[],
    )
}

fn event() -> Value {
    let types = [
        "workflow.started",
        "workflow.completed",
        "workflow.failed",
        "workflow.cancelled",
        "workflow.compensated",
        "workflow.paused",
        "workflow.resumed",
        "step.completed",
        "step.failed",
        "document.created",
        "document.updated",
        "document.moved",
        "document.deleted",
        "message.received",
    ];
    let types = json!({"type": "array", "minItems": 1, "maxItems": 16, "items": one_of(&types)});
    closed(
        json!({"types": types, "filter": text_of(4096), "agent": text_of(256), "acknowledge": truth(),
               "maxPerMinute": number_of(1, 600)}),
        &["types"],
    )
}

fn notify() -> Value {
    let on = json!({"type": "array", "maxItems": 3, "items": one_of(&["failed", "approval", "budget"])});
    let workflows = json!({"type": "array", "maxItems": 100, "items": text_of(256)});
    closed(json!({"url": text_of(8192), "on": on, "workflows": workflows}), &["url", "on"])
}

fn members() -> Value {
    let secret = json!({"oneOf": [
        closed(json!({"generate": {"const": true}}), &["generate"]),
        closed(json!({"value": {"type": "string", "minLength": 8, "maxLength": 65536}}), &["value"]),
        closed(json!({"name": text_of(128)}), &["name"]),
    ]});
    json!({
        "id": {"type": "string", "pattern": ID}, "workflowId": text_of(128), "version": text_of(128),
        "revision": number_of(1, u64::from(u32::MAX)), "secret": secret, "webhook": webhook(), "event": event(), "notify": notify(),
        "inputs": {"type": ["object", "string"]}, "paused": truth(),
    })
}

pub(super) fn trigger() -> Value {
    open(
        json!({
            "id": text(), "workflowId": text(), "revision": whole(), "webhook": or_null(any_object()), "event": or_null(any_object()), "notify": or_null(any_object()), "failed": whole(), "inputs": true,
            "url": or_null(text()), "secret": text(), "paused": truth(), "pauseReason": or_null(text()), "author": text(),
            "pending": whole(), "dueAt": or_null(moment()), "deliveries": whole(), "duplicates": whole(), "started": whole(),
            "lastDeliveryAt": or_null(moment()), "lastExecutionId": or_null(text()), "lastError": or_null(text()),
        }),
        &["id", "workflowId", "revision", "paused", "deliveries"],
    )
}

fn listing() -> Operation {
    let page =
        open(json!({"triggers": list(schema("Trigger")), "nextCursor": or_null(text())}), &["triggers"]);
    Operation::new("listTriggers", TAG, "Every trigger, with its last delivery and its counters.")
        .query("cursor", text_of(512), "The nextCursor of the page before.")
        .query("limit", number_of(1, PAGE_LIMIT), "Rows on the page.")
        .gives(200, "A page.", page)
}

fn apply(id: &str) -> Operation {
    Operation::new(id, TAG, "Stores a trigger under its id.")
        .about("A secret that is generated is in this answer only.")
        .body(closed(members(), &["id"]))
        .example(json!({"id": "orders", "workflowId": "hello", "webhook": {}}))
        .gives(200, "It is stored.", schema("Trigger"))
        .links(&[200], "/id", "id", &["getTrigger", "pauseTrigger", "resumeTrigger", "deleteTrigger"])
        .fails(&[404])
}

fn put() -> Operation {
    Operation::new("putTrigger", TAG, "Stores the trigger of this id.")
        .path_like("id", ID, "The trigger.")
        .body(closed(members(), &[]))
        .gives(200, "It is stored.", schema("Trigger"))
        .fails(&[404])
}

fn show() -> Operation {
    Operation::new("getTrigger", TAG, "One trigger.")
        .path_like("id", ID, "The trigger.")
        .gives(200, "The trigger.", schema("Trigger"))
        .fails(&[404])
}

fn on_trigger(id: &str, summary: &str) -> Operation {
    Operation::new(id, TAG, summary)
        .path_like("id", ID, "The trigger.")
        .keyed()
        .optional_body(closed(json!({}), &[]))
        .fails(&[404])
}

fn act(id: &str, summary: &str) -> Operation {
    on_trigger(id, summary).gives(200, "The trigger.", schema("Trigger"))
}

fn delete() -> Operation {
    let done = open(
        json!({"id": text(), "deleted": {"const": true}, "pendingDropped": whole()}),
        &["id", "deleted"],
    );
    on_trigger("deleteTrigger", "Deletes a trigger and the deliveries that wait for it.").gives(
        200,
        "It is gone.",
        done,
    )
}

fn redrive() -> Operation {
    let done = open(json!({"id": text(), "redriven": whole()}), &["id", "redriven"]);
    on_trigger("redriveTrigger", "Sends again the notifications that were given up.").gives(
        200,
        "They are due.",
        done,
    )
}

fn deliver() -> Operation {
    let taken = open(
        json!({"accepted": {"const": true}, "duplicate": truth(), "executionId": or_null(text()), "pending": whole()}),
        &["accepted", "duplicate"],
    );
    Operation::new("deliver", TAG, "Takes a delivery to a webhook trigger in.")
        .about(
            "The signature is the credential: X-Orchestr8-Signature-V1 (t=<seconds>,v1=<hex of HMAC-SHA-256 over \
             \"<seconds>.<body>\">) or X-Hub-Signature-256 (sha256=<hex of HMAC-SHA-256 over the body>). Unknown names and wrong \
             signatures get the same 401.",
        )
        .path_like("hook", "^[^\\s/]{1,512}$", "The id of the trigger; `<id>.<tenant>` for a tenant other than the local one.")
        .header("X-Orchestr8-Signature-V1", text_of(1024), "The signature with its time.")
        .header("X-Hub-Signature-256", text_of(128), "The signature as GitHub makes it.")
        .optional_body(json!({}))
        .gives(200, "The same delivery was taken in before.", taken.clone())
        .gives(202, "It is durable.", taken)
        .fails(&[409])
}
