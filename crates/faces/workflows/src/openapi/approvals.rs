//! Approvals.

use serde_json::{Value, json};

use super::Path;
use super::operation::{Operation, number_of, schema, text_of};
use super::shapes::{closed, list, one_of, open, text};
use crate::settings::PAGE_LIMIT;

const TAG: &str = "approvals";

pub(super) fn paths() -> Vec<Path> {
    vec![
        ("/approvals", vec![("get", listing()), ("post", decide())]),
        ("/approvals/{token}", vec![("get", show()), ("post", answer())]),
    ]
}

fn listing() -> Operation {
    Operation::new("listApprovals", TAG, "What waits for a person's word.")
        .query("executionId", text_of(256), "Only those of this execution.")
        .query("limit", number_of(1, PAGE_LIMIT), "How many.")
        .gives(200, "Open approvals.", open(json!({"approvals": list(schema("Approval"))}), &["approvals"]))
}

fn word() -> Value {
    json!({
        "decision": one_of(&["approve", "reject"]), "onBehalfOf": {"type": "string", "minLength": 1, "maxLength": 256},
        "comment": {"type": "string", "maxLength": 4096}, "data": true,
    })
}

fn decided() -> Value {
    let done =
        json!({"executionId": text(), "stepId": text(), "decision": one_of(&["approved", "rejected"])});
    open(done, &["executionId", "stepId", "decision"])
}

fn decide() -> Operation {
    let mut members = word();
    members["token"] = text_of(128);
    Operation::new("decideApproval", TAG, "Approves or rejects; the token is in the body.")
        .keyed()
        .body(closed(members, &["token", "decision"]))
        .gives(200, "It is recorded.", decided())
        .fails(&[404])
}

fn show() -> Operation {
    Operation::new("getApproval", TAG, "What is asked: JSON, or a page with a form for whoever accepts HTML.")
        .path("token", "The token of the approval.")
        .gives(200, "The approval.", schema("Approval"))
        .gives_as(200, "The approval.", "text/html", text())
        .fails(&[404])
        .gives_as(404, "Nothing waits under this token.", "text/html", text())
}

fn answer() -> Operation {
    let form = json!({
        "type": "object", "required": ["decision"],
        "properties": {"decision": one_of(&["approve", "reject"]), "onBehalfOf": text(), "comment": text()},
        "patternProperties": {"^data\\.": text()}, "additionalProperties": false,
    });
    let mut operation =
        Operation::new("answerApproval", TAG, "Approves or rejects, from a program or from the page.")
            .path("token", "The token of the approval.")
            .keyed()
            .body(closed(word(), &["decision"]))
            .form(form)
            .gives(200, "It is recorded.", decided())
            .gives_as(200, "It is recorded.", "text/html", text())
            .fails(&[404]);
    // The form of the page is answered with a page, whatever comes of it.
    for status in [400, 403, 404, 409, 413, 429, 500, 503] {
        operation = operation.gives_as(status, "", "text/html", text());
    }
    operation
}
