//! Stored workflows, and validation of any.

use serde_json::json;

use super::Path;
use super::executions::hello;
use super::operation::{Operation, number_of, schema, text_of};
use super::shapes::{closed, list, open, text, truth};
use crate::settings::PAGE_LIMIT;

const TAG: &str = "workflows";

pub(super) fn paths() -> Vec<Path> {
    vec![
        (
            "/workflows",
            vec![("get", listing()), ("post", apply("createWorkflow")), ("put", apply("applyWorkflow"))],
        ),
        ("/workflows/validate", vec![("post", validate())]),
        ("/workflows/{id}", vec![("get", show()), ("delete", delete())]),
        ("/workflows/{id}/revisions/{revision}", vec![("get", revision())]),
        ("/agents", vec![("get", agents())]),
    ]
}

fn listing() -> Operation {
    Operation::new("listWorkflows", TAG, "Stored workflows.")
        .query("search", text_of(256), "Part of an id or a name.")
        .query("cursor", text_of(512), "The nextCursor of the page before.")
        .query("limit", number_of(1, PAGE_LIMIT), "Rows on the page.")
        .gives(200, "A page.", schema("WorkflowPage"))
}

fn apply(id: &str) -> Operation {
    Operation::new(id, TAG, "Stores a workflow under its id, as a new revision if it differs.")
        .keyed()
        .body(closed(json!({"workflow": schema("Definition")}), &["workflow"]))
        .example(hello())
        .gives(200, "It is stored like this already.", schema("Applied"))
        .gives(201, "A new revision.", schema("Applied"))
        .with_header(201, "Location", "Where it is.")
        .links(&[200, 201], "/id", "id", &["getWorkflow", "deleteWorkflow"])
}

fn validate() -> Operation {
    Operation::new(
        "validateWorkflow",
        TAG,
        "Says everything that is wrong with a workflow, each with its path and a hint.",
    )
    .keyed()
    .body(closed(json!({"workflow": true}), &["workflow"]))
    .gives(200, "Whether it is valid.", schema("Validation"))
}

fn show() -> Operation {
    Operation::new("getWorkflow", TAG, "A stored workflow, its newest revision.")
        .path("id", "The workflow.")
        .gives(200, "The workflow.", schema("Workflow"))
        .fails(&[404])
}

fn revision() -> Operation {
    Operation::new("getRevision", TAG, "A stored workflow as it was in one revision.")
        .path("id", "The workflow.")
        .path_like("revision", "^[1-9][0-9]{0,8}$", "The number of the revision.")
        .gives(200, "The workflow.", schema("Workflow"))
        .fails(&[404])
}

fn delete() -> Operation {
    let done = open(json!({"id": text(), "deleted": {"const": true}}), &["id", "deleted"]);
    Operation::new("deleteWorkflow", TAG, "Deletes a stored workflow; its executions go on.")
        .path("id", "The workflow.")
        .keyed()
        .gives(200, "It is gone.", done)
        .fails(&[404])
}

fn agents() -> Operation {
    let agent = open(json!({"id": text(), "about": text(), "pure": truth()}), &["id"]);
    Operation::new("listAgents", TAG, "What a step can call.").gives(
        200,
        "Every agent.",
        open(json!({"agents": list(agent)}), &["agents"]),
    )
}
