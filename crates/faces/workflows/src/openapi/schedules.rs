//! Schedules.

use serde_json::{Value, json};

use super::Path;
use super::operation::{Operation, number_of, schema, text_of};
use super::shapes::{any_object, closed, list, one_of, open, or_null, tags, text, truth};
use crate::settings::PAGE_LIMIT;

const TAG: &str = "schedules";
const ID: &str = "^[a-zA-Z0-9_-]{1,128}$";

pub(super) fn paths() -> Vec<Path> {
    vec![
        (
            "/schedules",
            vec![("get", listing()), ("post", apply("createSchedule")), ("put", apply("applySchedule"))],
        ),
        ("/schedules/{id}", vec![("get", show()), ("put", put()), ("delete", delete())]),
        ("/schedules/{id}/pause", vec![("post", act("pauseSchedule", "Lets a schedule start nothing."))]),
        (
            "/schedules/{id}/resume",
            vec![("post", act("resumeSchedule", "Lets a paused schedule start again."))],
        ),
        ("/schedules/{id}/trigger", vec![("post", trigger())]),
    ]
}

fn members() -> Value {
    json!({
        "id": {"type": "string", "pattern": ID}, "workflowId": text_of(128),
        "cron": {"type": "string", "maxLength": 256, "pattern": "^\\S+( \\S+){4,6}$", "examples": ["0 8 * * 1-5"]}, "timeZone": text_of(128), "inputs": any_object(), "tags": tags(),
        "overlap": one_of(&["skip", "queue", "cancel", "allow"]), "backfill": one_of(&["none", "one", "all"]),
        "paused": truth(),
    })
}

fn listing() -> Operation {
    let page =
        open(json!({"schedules": list(schema("Schedule")), "nextCursor": or_null(text())}), &["schedules"]);
    Operation::new("listSchedules", TAG, "Every schedule.")
        .query("cursor", text_of(512), "The nextCursor of the page before.")
        .query("limit", number_of(1, PAGE_LIMIT), "Rows on the page.")
        .gives(200, "A page.", page)
}

fn apply(id: &str) -> Operation {
    Operation::new(id, TAG, "Stores a schedule under its id.")
        .keyed()
        .body(closed(members(), &["id", "workflowId", "cron"]))
        .example(json!({"id": "mornings", "workflowId": "hello", "cron": "0 8 * * 1-5", "timeZone": "Europe/Berlin"}))
        .gives(200, "It is stored.", schema("Schedule"))
        .links(&[200], "/id", "id", &["getSchedule", "pauseSchedule", "resumeSchedule", "triggerSchedule", "deleteSchedule"])
        .fails(&[404])
}

fn put() -> Operation {
    Operation::new("putSchedule", TAG, "Stores the schedule of this id.")
        .path_like("id", ID, "The schedule.")
        .keyed()
        .body(closed(members(), &["workflowId", "cron"]))
        .gives(200, "It is stored.", schema("Schedule"))
        .fails(&[404])
}

fn show() -> Operation {
    Operation::new("getSchedule", TAG, "One schedule.")
        .path_like("id", ID, "The schedule.")
        .gives(200, "The schedule.", schema("Schedule"))
        .fails(&[404])
}

fn on_schedule(id: &str, summary: &str) -> Operation {
    Operation::new(id, TAG, summary)
        .path_like("id", ID, "The schedule.")
        .keyed()
        .optional_body(closed(json!({}), &[]))
        .fails(&[404])
}

fn act(id: &str, summary: &str) -> Operation {
    on_schedule(id, summary).gives(200, "The schedule.", schema("Schedule"))
}

fn delete() -> Operation {
    let done = open(json!({"id": text(), "deleted": {"const": true}}), &["id", "deleted"]);
    on_schedule("deleteSchedule", "Deletes a schedule; what it started goes on.").gives(
        200,
        "It is gone.",
        done,
    )
}

fn trigger() -> Operation {
    let done = open(
        json!({"id": text(), "executionId": text(), "status": schema("Status")}),
        &["id", "executionId"],
    );
    on_schedule("triggerSchedule", "Starts what the schedule starts, now.")
        .gives(202, "It has begun.", done)
        .with_header(202, "Location", "Where to look at it.")
}
