//! Executions: start, look, list, read the journal.

use serde_json::{Value, json};

use super::Path;
use super::operation::{Operation, number_of, schema, text_of};
use super::shapes::{any_object, closed, list, moment, one_of, open, tags, text, whole};
use crate::endpoints::lists::STATUSES;
use crate::settings::{ENTRIES_LIMIT, PAGE_LIMIT};

const TAG: &str = "executions";

pub(super) fn paths() -> Vec<Path> {
    vec![
        ("/workflows/execute", vec![("post", execute())]),
        ("/executions", vec![("get", listing("listExecutions", "Executions, the newest first."))]),
        (
            "/dashboard/executions",
            vec![("get", listing("dashboardExecutions", "Executions, for the dashboard."))],
        ),
        ("/executions/retry", vec![("post", retry_many())]),
        ("/executions/{id}", vec![("get", show())]),
        ("/executions/{id}/workflow", vec![("get", definition())]),
        ("/executions/{id}/artifacts/{artifact}", vec![("get", artifact())]),
        ("/executions/{id}/journal", vec![("get", journal())]),
    ]
}

fn execute() -> Operation {
    let context = closed(
        json!({
            "correlationId": text_of(256), "timeout": {"type": "integer", "minimum": 1}, "variables": any_object(),
        }),
        &[],
    );
    let more = |name: &str, value: Value| {
        let mut properties = json!({
            "version": text(), "inputs": any_object(), "context": context, "tags": tags(),
            "priority": {"type": "integer", "minimum": -100, "maximum": 100},
        });
        properties[name] = value;
        closed(properties, &[name])
    };
    let mut stored = more("workflowId", text_of(128));
    stored["properties"]["revision"] = json!({"type": "integer", "minimum": 1});
    let body = json!({"oneOf": [more("workflow", schema("Definition")), stored]});
    Operation::new("execute", TAG, "Starts an execution of a workflow, given or stored.")
        .about("With mode=sync the answer waits for the end, at most 30 seconds (ADR-015). A failed execution is 422.")
        .query("mode", one_of(&["sync", "async"]), "async: answer at once; sync: wait for the end.")
        .keyed()
        .body(body)
        .example(hello())
        .gives(200, "It completed (mode=sync).", schema("Completed"))
        .gives(202, "It has begun.", schema("Accepted"))
        .with_header(202, "Location", "Where to look at it.")
        .with_header(202, "Retry-After", "Seconds until looking is worth while.")
        .fails(&[404, 409, 413, 422, 504])
        .links(&[200, 202], "/executionId", "id", &LOOKS)
}

/// What can be done with an execution once its id is known.
const LOOKS: [&str; 8] = [
    "getExecution",
    "getExecutionWorkflow",
    "getJournal",
    "cancelExecution",
    "pauseExecution",
    "resumeExecution",
    "retryExecution",
    "sendEvent",
];

pub(super) fn hello() -> Value {
    let step =
        json!({"id": "greet", "type": "agent", "agentId": "@orchestr8/echo", "input": {"message": "Hello"}});
    json!({"workflow": {"id": "hello", "version": "1.0.0", "name": "Hello", "steps": [step]}})
}

fn listing(id: &str, summary: &str) -> Operation {
    let pair = json!({"type": "string", "pattern": "^[A-Za-z0-9_.-]{1,64}=[^\\x00-\\x1f\\x7f-\\x9f]{1,64}$"});
    let conditions = json!({"type": "array", "items": pair, "maxItems": 16});
    Operation::new(id, TAG, summary)
        .query(
            "id",
            text_of(256),
            "The id, at least eight characters of its beginning, or last for the newest.",
        )
        .query("status", one_of(&STATUSES), "Only those with this status.")
        .query("workflowId", text_of(256), "Only those of this workflow.")
        .query("correlationId", text_of(256), "Only those with this correlation id.")
        .query(
            "where",
            conditions,
            "Only those with this tag, such as customer=42; given several times, with all of them.",
        )
        .query("since", moment(), "Created at or after this.")
        .query("until", moment(), "Created before this.")
        .query(
            "cursor",
            json!({"type": "string", "pattern": "^[0-9]{1,18}$"}),
            "The nextCursor of the page before.",
        )
        .query("limit", number_of(1, PAGE_LIMIT), "Rows on the page.")
        .gives(200, "A page.", schema("ExecutionPage"))
}

fn retry_many() -> Operation {
    let body = closed(
        json!({
            "status": one_of(&["failed", "cancelled", "compensated"]), "workflowId": text_of(256), "correlationId": text_of(256),
            "where": tags(), "since": moment(), "until": moment(), "limit": number_of(1, PAGE_LIMIT),
        }),
        &[],
    );
    let done = open(json!({"retried": list(text()), "skipped": whole()}), &["retried", "skipped"]);
    Operation::new("retryExecutions", TAG, "Goes on with many executions that failed or were cancelled.")
        .keyed()
        .optional_body(body)
        .gives(202, "They go on.", done)
}

fn show() -> Operation {
    let wait = json!({"type": "string", "pattern": "^[0-9]{1,6}(ms|s)?$"});
    Operation::new("getExecution", TAG, "One execution.")
        .about(
            "With wait the answer comes when the execution has ended; with wait and If-None-Match, when it is another than \
             the client has, else 304. At most 60 seconds.",
        )
        .path("id", "The execution.")
        .query("wait", wait, "How long to wait: seconds (10, 10s) or milliseconds (500ms).")
        .query("at", number_of(0, i64::MAX.unsigned_abs()), "As it was after this entry of its journal.")
        .header("If-None-Match", text(), "The ETag the client has.")
        .header("If-Match", text(), "The ETag it must have.")
        .gives(200, "The execution.", schema("Execution"))
        .with_header(200, "ETag", "Changes with everything but the journal (ADR-003).")
        .with_header(200, "Cache-Control", "How long it may be kept.")
        .gives_nothing(304, "The client has it already.")
        .with_header(304, "ETag", "The tag it has.")
        .fails(&[404, 412, 504])
}

fn definition() -> Operation {
    let shown = open(
        json!({"executionId": text(), "hash": text(), "workflow": any_object()}),
        &["executionId", "hash", "workflow"],
    );
    Operation::new(
        "getExecutionWorkflow",
        TAG,
        "The workflow that an execution runs, as it was when it began.",
    )
    .path("id", "The execution.")
    .gives(200, "The workflow.", shown)
    .fails(&[404])
}

fn artifact() -> Operation {
    Operation::new("getArtifact", TAG, "A result that a step with output artifact has kept.")
        .path("id", "The execution.")
        .path("artifact", "The id that the output of the step names in $artifact.")
        .gives_as(200, "The result: JSON, or a text.", "application/json", json!(true))
        .gives_as(200, "The result: JSON, or a text.", "text/plain", json!({"type": "string"}))
        .fails(&[404])
}

fn journal() -> Operation {
    let since = json!({"oneOf": [{"type": "integer", "minimum": 0}, moment()]});
    let types = json!({
        "type": "string", "maxLength": 2048,
        "pattern": "^[^,\\x00-\\x1f\\x7f-\\x9f]{1,60}(,[^,\\x00-\\x1f\\x7f-\\x9f]{1,60}){0,31}$",
    });
    Operation::new("getJournal", TAG, "What happened in an execution, entry by entry.")
        .path("id", "The execution.")
        .query("since", since, "What came after this sequence or this moment.")
        .query(
            "cursor",
            json!({"type": "string", "pattern": "^[0-9]{1,18}$"}),
            "The nextCursor of the page before.",
        )
        .query("limit", number_of(1, ENTRIES_LIMIT), "Entries on the page (100), or lines in all.")
        .query("level", one_of(&["debug", "info", "warn", "error"]), "Only entries of this level.")
        .query("types", types, "Only entries of these types, with commas between them; at most 32.")
        .query("format", one_of(&["json", "ndjson"]), "One page, or all entries as lines of JSON.")
        .header("If-None-Match", text(), "The ETag the client has.")
        .header("If-Match", text(), "Never met: a journal has weak tags.")
        .gives(200, "Entries.", schema("JournalPage"))
        .gives_as(200, "Entries.", "application/x-ndjson", json!({"type": "string"}))
        .with_header(200, "ETag", "Weak; changes when entries are added (ADR-003).")
        .with_header(200, "Last-Modified", "When the newest entry was written.")
        .gives_nothing(304, "The client has it already.")
        .with_header(304, "ETag", "The tag it has.")
        .fails(&[404, 412])
}
