//! The program itself: figures, health, live events, this description.

use serde_json::json;

use super::Path;
use super::operation::{Operation, number_of, schema, text_of};
use super::shapes::{any_object, closed, list, open, or_null, text, truth, whole};
use crate::settings::PAGE_LIMIT;

const TAG: &str = "program";

pub(super) fn paths() -> Vec<Path> {
    vec![
        ("/events", vec![("get", events()), ("post", super::control::send_by_key())]),
        ("/ws", vec![("get", socket())]),
        ("/dashboard/metrics", vec![("get", figures("metrics", "How much runs, and how it went lately."))]),
        (
            "/dashboard/system",
            vec![("get", figures("system", "How the engine stands: queue, breakers, limits."))],
        ),
        ("/dashboard/servers", vec![("get", servers())]),
        ("/tools/quarantined", vec![("get", quarantined())]),
        ("/tools/accept", vec![("post", accept_tool())]),
        ("/audit", vec![("get", audit())]),
        ("/audit/verify", vec![("get", verify_audit())]),
        ("/health", vec![("get", health())]),
        ("/openapi.json", vec![("get", openapi())]),
    ]
}

fn events() -> Operation {
    Operation::new("events", TAG, "What happens, as server-sent events; resumable by id.")
        .about("The first event is connection.established. A comment comes at least every 30 seconds.")
        .query("executionId", text_of(256), "Only events of this execution.")
        .query("lastEventId", json!({"type": "string", "pattern": "^[0-9]{1,18}$"}), "The last id seen.")
        .header(
            "Last-Event-ID",
            json!({"type": "string", "pattern": "^[0-9]{1,18}$"}),
            "The same, as browsers send it.",
        )
        .gives_as(
            200,
            "A stream without end; the data of each event is an Event.",
            "text/event-stream",
            text(),
        )
        .fails(&[504])
}

fn socket() -> Operation {
    Operation::new("socket", TAG, "The same events over a WebSocket.")
        .about("The client may send ping, subscribe {executionId?, lastEventId?} and unsubscribe {executionId?}.")
        .query("executionId", text_of(256), "Only events of this execution.")
        .query("lastEventId", number_of(0, i64::MAX.unsigned_abs()), "The last id seen.")
        .gives_nothing(101, "A WebSocket.")
        .fails(&[426, 504])
}

fn figures(id: &str, summary: &str) -> Operation {
    Operation::new(id, TAG, summary).gives(200, "Figures of the moment.", any_object())
}

fn servers() -> Operation {
    Operation::new(
        "servers",
        TAG,
        "The other MCP servers whose tools are offered here; the same as GET /servers.",
    )
    .gives(
        200,
        "How it stands with each.",
        open(json!({"servers": list(schema("McpServer"))}), &["servers"]),
    )
}

fn quarantined() -> Operation {
    let tool = json!({
        "server": text(), "tool": text(), "accepted": text(), "acceptedDefinition": any_object(), "changed": text(),
        "changedDefinition": any_object(),
    });
    let tool =
        open(tool, &["server", "tool", "accepted", "acceptedDefinition", "changed", "changedDefinition"]);
    Operation::new(
        "listQuarantined",
        TAG,
        "Tools of other servers that changed since they were accepted; for owners.",
    )
    .gives(200, "Each with both definitions.", open(json!({"tools": list(tool)}), &["tools"]))
}

fn accept_tool() -> Operation {
    let body = json!({"server": text_of(256), "tool": text_of(256), "changed": text_of(256)});
    let done = json!({"server": text(), "tool": text(), "accepted": text()});
    Operation::new("acceptTool", TAG, "Accepts a changed tool, so that it can be used again; for owners.")
        .about("`changed` is the hash of the definition that was looked at. If it has changed again since, it is a conflict.")
        .keyed()
        .body(closed(body, &["server", "tool", "changed"]))
        .gives(200, "It is offered again.", open(done, &["server", "tool", "accepted"]))
        .fails(&[404, 409])
}

fn audit() -> Operation {
    let entry = json!({
        "sequence": whole(), "at": text(), "action": text(), "principal": text(), "tenant": or_null(text()),
        "object": or_null(text()), "end": text(), "errorCode": or_null(text()), "transport": text(), "runId": or_null(text()), "correlationId": or_null(text()),
        "argsHash": or_null(text()), "hash": text(), "intact": {"type": "boolean"}, "id": text(), "source": or_null(text()), "face": or_null(text()),
        "objects": or_null(list(text())), "agent": or_null(text()), "outcome": or_null(text()), "requestId": or_null(text()), "detail": {},
    });
    let entry = open(entry, &["id", "sequence", "at", "action", "principal", "end", "transport", "hash"]);
    let page = json!({"entries": list(entry), "nextCursor": or_null(text())});
    Operation::new("listAudit", TAG, "The audit trail, the newest first; for owners.")
        .query("action", text_of(256), "Only this action.")
        .query("principal", text_of(256), "Only what this one did.")
        .query("end", text_of(256), "Only what ended so.")
        .query(
            "object",
            text_of(256),
            "Only what is about this id: an execution, a session, a document, a message, a request.",
        )
        .query(
            "cursor",
            json!({"type": "string", "pattern": "^[0-9]{1,18}([.][0-9]{1,9})?$"}),
            "The nextCursor of the page before.",
        )
        .query("limit", number_of(1, PAGE_LIMIT), "Entries on the page.")
        .gives(200, "A page.", open(page, &["entries"]))
}

fn verify_audit() -> Operation {
    let said = json!({
        "whole": truth(), "entries": whole(), "head": text(), "brokenAt": whole(), "what": text(),
    });
    Operation::new(
        "verifyAudit",
        TAG,
        "Proves that no entry of the audit trail was changed, removed or put in between.",
    )
    .gives(
        200,
        "Whether it is whole, and its newest hash; else the first entry that does not hold.",
        open(said, &["whole"]),
    )
}

fn health() -> Operation {
    Operation::new("health", TAG, "Whether the program serves.")
        .gives(200, "It does.", schema("Health"))
        .gives(503, "It is stopping, or full.", json!({"oneOf": [schema("Health"), schema("Error")]}))
}

fn openapi() -> Operation {
    Operation::new("openapi", TAG, "This description.")
        .header("If-None-Match", text(), "The ETag the client has.")
        .gives(200, "This description.", any_object())
        .with_header(200, "ETag", "Changes with the program.")
        .gives_nothing(304, "The client has it already.")
}
