//! Governed workspaces: plans and trails.

use serde_json::{Value, json};

use super::Path;
use super::operation::{Operation, number_of, schema, text_of};
use super::shapes::{closed, list, moment, one_of, open, or_null, text, whole};

const TAG: &str = "workspaces";
const HASH: &str = "^[0-9a-f]{64}$";
const STATUSES: [&str; 3] = ["waiting", "approved", "rejected"];
const METHODS: [&str; 5] = ["request", "planner", "proposer", "elicitation", "bootstrap"];

pub(super) fn paths() -> Vec<Path> {
    vec![
        ("/plans", vec![("get", listing())]),
        ("/plans/{hash}", vec![("get", show()), ("post", decide())]),
        ("/trails", vec![("get", trail())]),
        ("/trails/accept", vec![("post", accept())]),
    ]
}

/// The shape of a plan without its text.
pub(super) fn plan() -> Value {
    let members = json!({
        "workspace": text(), "hash": text(), "title": text(), "status": one_of(&STATUSES), "proposer": or_null(text()),
        "proposedAt": moment(), "decidedBy": or_null(text()), "decidedAt": or_null(moment()),
        "method": or_null(one_of(&METHODS)), "comment": or_null(text()), "signature": or_null(text()), "content": text(),
    });
    open(members, &["workspace", "hash", "title", "status", "proposedAt"])
}

fn listing() -> Operation {
    Operation::new("listPlans", TAG, "Plans of governed workspaces, the oldest first.")
        .query("workspace", text_of(4096), "Only those of this folder.")
        .query("status", one_of(&STATUSES), "Only those with this status.")
        .query("limit", number_of(1, 200), "Plans in the answer.")
        .gives(200, "The plans.", open(json!({"plans": list(schema("GovernedPlan"))}), &["plans"]))
}

fn show() -> Operation {
    Operation::new("getPlan", TAG, "A plan of a governed workspace with its text.")
        .path_like("hash", HASH, "The plan.")
        .query("workspace", text_of(4096), "Its folder, if several workspaces have the plan.")
        .gives(200, "The plan.", schema("GovernedPlan"))
        .fails(&[404])
}

fn decide() -> Operation {
    let members = json!({
        "decision": one_of(&["approve", "reject"]), "workspace": text_of(4096), "comment": text_of(4096),
    });
    Operation::new("decidePlan", TAG, "Approves or rejects a plan. Files are written within an approved plan only.")
        .about("The approval is a record of the server, signed; the plan file shows it. The principal that proposed a plan cannot approve it, unless `workspace.selfApproval` is set. Rejecting an approved plan withdraws the approval.")
        .path_like("hash", HASH, "The plan.")
        .keyed()
        .body(closed(members, &["decision"]))
        .example(json!({"decision": "approve", "comment": "Read and discussed."}))
        .gives(200, "The plan after the decision.", schema("GovernedPlan"))
        .fails(&[404])
}

fn trail() -> Operation {
    let members = json!({"workspace": text(), "entries": whole(), "head": text(), "pending": whole()});
    Operation::new(
        "getTrail",
        TAG,
        "Where the audit trail of a governed workspace ends, as the server signed it.",
    )
    .required_query("workspace", text_of(4096), "The folder.")
    .gives(200, "The end.", open(members, &["workspace", "entries", "head"]))
    .fails(&[404])
}

fn accept() -> Operation {
    let end = open(json!({"entries": whole(), "head": text()}), &["entries", "head"]);
    let members = json!({"workspace": text(), "entries": whole(), "head": text(), "before": or_null(end)});
    Operation::new("acceptTrail", TAG, "Goes on with the audit trail of a governed workspace as it is in its folder.")
        .about("For a trail that was restored from a backup, comes from another server, or was tampered with. It must be whole by itself.")
        .keyed()
        .body(closed(json!({"workspace": text_of(4096), "reason": text_of(4096)}), &["workspace"]))
        .gives(200, "The end.", open(members, &["workspace", "entries", "head"]))
}
