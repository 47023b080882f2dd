//! What people use: documents and webhooks as plain REST.

use serde_json::{Value, json};

use super::Path;
use super::operation::{Operation, WRITES, number, schema, success};
use crate::limits::BATCH;

const TAG: &str = "people";
const UUID: &str = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$";
/// `root` is the parent of what has no other.
const PARENT: &str = "^(root|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$";
const EXAMPLE: &str = "0f9c2a52-5d0f-4f57-9c0f-0a1b2c3d4e5f";

pub(super) fn paths() -> Vec<Path> {
    vec![
        ("/documents", vec![("get", list()), ("post", create())]),
        ("/documents/batch", vec![("post", batch())]),
        ("/documents/query", vec![("post", query())]),
        (
            "/documents/verify",
            vec![(
                "post",
                whole(
                    "verifyIndex",
                    "Compares the index with the documents.",
                    json!({"repair": {"type": "boolean"}}),
                ),
            )],
        ),
        (
            "/documents/reindex",
            vec![("post", whole("reindex", "Makes the index anew from the documents.", json!({})))],
        ),
        ("/documents/{id}", vec![("get", show()), ("patch", edit()), ("delete", delete())]),
        ("/documents/{id}/children", vec![("get", children())]),
        ("/documents/{id}/history", vec![("get", history())]),
        ("/documents/{id}/move", vec![("post", relocate())]),
        (
            "/documents/{id}/restore",
            vec![("post", about("restoreDocument", "Brings a deleted document back.").fails(WRITES))],
        ),
        ("/documents/{id}/link", vec![("post", link())]),
        ("/webhooks", vec![("get", hooks()), ("post", hook())]),
        ("/webhooks/{id}", vec![("delete", unhook())]),
    ]
}

fn any(id: &str, summary: &str) -> Operation {
    Operation::new(id, TAG, summary).of_tenant().fails(&[404, 422])
}

fn about(id: &str, summary: &str) -> Operation {
    any(id, summary).path("id", UUID).gives(200, json!({"type": "object"}))
}

fn paged(operation: Operation) -> Operation {
    operation.query("cursor", json!({"type": "string"})).query("limit", at_least(1))
}

fn at_least(least: u64) -> Value {
    json!({"type": "integer", "minimum": least})
}

fn documents() -> Value {
    json!({"type": "object", "required": ["documents"], "properties": {
        "documents": {"type": "array", "items": schema("Document")}, "next_cursor": {"type": ["string", "null"]}}})
}

fn list() -> Operation {
    paged(any("listDocuments", "A page of documents."))
        .query("prefix", json!({"type": "string"}))
        .query("deleted", json!({"type": "boolean"}))
        .gives(200, documents())
}

fn create() -> Operation {
    let content = json!({"type": "object", "required": ["mime_type", "body"], "properties": {
        "mime_type": {"enum": ["text/markdown", "text/plain", "application/json"]}, "body": {"type": "string"}}});
    let body = json!({"type": "object", "required": ["document_id", "parent_id", "content", "metadata"], "properties": {
        "document_id": {"type": "string", "format": "uuid"}, "parent_id": {"type": "string"}, "content": content,
        "metadata": {"type": "object", "required": ["title"], "properties": {"title": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}}, "source": {"type": "string"}}},
        "is_human_readable": {"type": "boolean"}, "created_at": super::schemas::moment()}});
    let example = json!({"document_id": EXAMPLE, "parent_id": "root", "metadata": {"title": "Hello"},
        "content": {"mime_type": "text/markdown", "body": "# Hello"}});
    any("createDocument", "Creates a document.")
        .keyed()
        .body(body, example)
        .gives(201, schema("Document"))
        .fails(WRITES)
}

fn batch() -> Operation {
    let ids = json!({"type": "array", "minItems": 1, "maxItems": BATCH, "items": {"type": "string"}});
    let body = json!({"type": "object", "required": ["ids"], "properties": {"ids": ids, "full": {"type": "boolean"}}});
    any("getDocuments", "Several documents at once.")
        .body(body, json!({"ids": [EXAMPLE]}))
        .gives(200, json!({"type": "object"}))
}

fn query() -> Operation {
    let filters = json!({"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}}, "subtree": {"type": "string"}}});
    let body = json!({"type": "object", "required": ["query"], "properties": {
        "query": {"type": "string", "maxLength": 2048}, "filters": filters, "top_k": number(1, 20)}});
    any("queryKnowledge", "Finds passages that answer a question.")
        .body(body, json!({"query": "whales"}))
        .gives(200, json!({"type": "object", "required": ["response", "context"]}))
        .fails(WRITES)
}

/// About all documents of a tenant at once.
fn whole(id: &str, summary: &str, properties: Value) -> Operation {
    let body = json!({"type": "object", "properties": properties});
    any(id, summary).keyed().body(body, json!({})).gives(200, json!({"type": "object"})).fails(WRITES)
}

fn show() -> Operation {
    any("getDocument", "The beginning of a document, or all of it.")
        .path("id", UUID)
        .query("full", json!({"type": "boolean"}))
        .query("revision", number(1, i64::MAX.unsigned_abs()))
        .gives(200, schema("Document"))
}

fn edit() -> Operation {
    let body = json!({"type": "object", "required": ["old_str", "new_str"], "properties": {
        "old_str": {"type": "string", "minLength": 1}, "new_str": {"type": "string"}, "last_known_revision": {"type": "integer", "minimum": 0}}});
    about("editDocument", "Edits where the old text stands exactly once.")
        .keyed()
        .body(body, json!({"old_str": "Hello", "new_str": "Good day"}))
        .fails(WRITES)
}

fn delete() -> Operation {
    about("deleteDocument", "Deletes a document; it can be restored for 90 days.").keyed().fails(WRITES)
}

fn children() -> Operation {
    let below = paged(any("listChildren", "What is below a document.").path("id", PARENT));
    below.gives(200, json!({"type": "object"}))
}

fn history() -> Operation {
    about("documentHistory", "What a document was.")
        .query("before_revision", number(1, i64::MAX.unsigned_abs()))
        .query("limit", at_least(1))
}

fn relocate() -> Operation {
    let position = json!({"type": "object", "properties": {"ordering": {"type": "integer"}, "before": {"type": "string"}}});
    let body = json!({"type": "object", "required": ["new_parent_id"], "properties": {
        "new_parent_id": {"type": "string"}, "position": position, "last_known_revision": {"type": "integer", "minimum": 0}}});
    about("moveDocument", "Moves a document below another.")
        .keyed()
        .body(body, json!({"new_parent_id": "root"}))
        .fails(WRITES)
}

fn link() -> Operation {
    Operation::new("linkDocument", TAG, "A link to the content, for 15 minutes, for whoever has it.")
        .of_tenant()
        .path("id", UUID)
        .gives(200, success(schema("Artifact")))
        .fails(&[422])
}

fn hooks() -> Operation {
    any("listWebhooks", "Who is told of changes.").gives(200, json!({"type": "object"}))
}

fn hook() -> Operation {
    let events = json!({"type": "array", "items": {"enum": ["document.created", "document.updated", "document.deleted", "document.moved"]}});
    let body = json!({"type": "object", "required": ["url"], "properties": {"url": {"type": "string"}, "events": events, "secret": {"type": "string"}}});
    any("addWebhook", "Tells somebody of changes.")
        .keyed()
        .body(body, json!({"url": "https://example.org/hook", "events": ["document.created"]}))
        .gives(201, json!({"type": "object"}))
        .fails(WRITES)
}

fn unhook() -> Operation {
    any("removeWebhook", "Tells somebody no more.").path("id", UUID).gives(200, json!({"type": "object"}))
}
