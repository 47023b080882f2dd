//! What can be done to many executions at once.

use serde_json::{Value, json};

use super::Path;
use super::operation::{Operation, number_of, schema, text_of};
use super::shapes::{closed, list, moment, one_of, open, or_null, tags, text, truth, whole};
use crate::settings::PAGE_LIMIT;

const TAG: &str = "executions";

const LIVE: [&str; 6] = ["queued", "running", "waiting", "paused", "cancelling", "compensating"];
const FINAL: [&str; 4] = ["completed", "failed", "cancelled", "compensated"];

pub(super) fn paths() -> Vec<Path> {
    vec![("/executions/cancel", vec![("post", cancel())]), ("/executions/delete", vec![("post", delete())])]
}

fn members(statuses: &[&str]) -> Value {
    json!({
        "ids": {"type": "array", "items": text_of(128), "minItems": 1, "maxItems": PAGE_LIMIT},
        "where": tags(), "status": one_of(statuses), "workflowId": text_of(256), "correlationId": text_of(256),
        "since": moment(), "until": moment(), "cursor": {"type": "string", "pattern": "^[0-9]{1,18}$"},
        "limit": number_of(1, PAGE_LIMIT), "dryRun": truth(),
    })
}

const ABOUT: &str = "Name executions by ids, or pick them by filters, of which one at least must be given. One call takes up to 500, the newest first; \
with nextCursor as cursor the next call goes on. A dry run changes nothing and tells how many it would be, with the newest ten.";

fn answer(done: &str) -> Value {
    let skipped = open(json!({"executionId": text(), "reason": text()}), &["executionId", "reason"]);
    let mut members = json!({
        "dryRun": truth(), "count": whole(), "countIsLimited": truth(), "sample": list(schema("ExecutionSummary")),
        "skipped": list(skipped), "notFound": list(text()), "nextCursor": or_null(text()),
    });
    members[done] = list(text());
    open(members, &["dryRun", "count", "skipped"])
}

fn cancel() -> Operation {
    let mut body = members(&LIVE);
    body["reason"] = json!({"type": "string", "maxLength": 1024});
    body["force"] = truth();
    Operation::new("cancelExecutions", TAG, "Cancels many executions.")
        .about(ABOUT)
        .keyed()
        .body(closed(body, &[]))
        .example(json!({"where": {"customer": "42"}, "dryRun": true}))
        .gives(200, "A dry run.", answer("cancelled"))
        .gives(202, "They are being stopped.", answer("cancelled"))
}

fn delete() -> Operation {
    Operation::new("deleteExecutions", TAG, "Deletes many executions that have ended, for good.")
        .about(ABOUT)
        .keyed()
        .body(closed(members(&FINAL), &[]))
        .example(json!({"where": {"customer": "42"}, "dryRun": true}))
        .gives(200, "They are gone; or a dry run.", answer("deleted"))
}
