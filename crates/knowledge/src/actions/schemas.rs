//! What the actions take: the seed's schemas (KNO-8) with the members that the contract adds.

use serde_json::{Value, json};

use crate::limits;
use crate::outbox::EVENTS;
use crate::record::Mime;

fn object(required: &[&str], properties: Value) -> Value {
    json!({"type": "object", "required": required, "properties": properties})
}

fn id() -> Value {
    json!({"type": "string", "format": "uuid"})
}

fn text(max: usize) -> Value {
    json!({"type": "string", "maxLength": max})
}

/// Where a document stands among its siblings, as lists give it.
fn place() -> Value {
    json!({"type": "string", "minLength": 9, "maxLength": limits::PLACE_BYTES, "pattern": "^[0-9A-Za-z]+$"})
}

fn revision() -> Value {
    json!({"type": "integer", "minimum": 0})
}

fn limit(max: i64) -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": max})
}

pub fn nothing() -> Value {
    object(&[], json!({}))
}

pub fn verify() -> Value {
    object(&[], json!({"repair": {"type": "boolean", "default": false}}))
}

pub fn one() -> Value {
    object(&["document_id"], json!({"document_id": id()}))
}

/// KNO-8.1
pub fn create() -> Value {
    object(
        &["document_id", "parent_id", "content", "metadata"],
        json!({
            "document_id": id(),
            "parent_id": {"type": "string"},
            "content": {"type": "object", "required": ["mime_type", "body"], "properties": {
                "mime_type": {"enum": Mime::ALL.map(Mime::as_str)}, "body": {"type": "string"}}},
            "metadata": {"type": "object", "required": ["title"], "properties": {"title": {"type": "string"},
                "tags": {"type": "array", "items": {"type": "string"}}, "source": {"type": "string"}}},
            "is_human_readable": {"type": "boolean", "default": true},
            "created_at": {"type": "string", "format": "date-time"},
            "position": {"type": "object", "properties": {"place": place()}}
        }),
    )
}

/// KNO-8.2
pub fn update() -> Value {
    object(
        &["document_id", "patch", "update_mask"],
        json!({
            "document_id": id(),
            "patch": {"type": "object", "properties": {
                "content": {"type": ["object", "null"], "properties": {"mime_type": {"type": ["string", "null"]}, "body": {"type": ["string", "null"]}}},
                "metadata": {"type": ["object", "null"], "properties": {"title": {"type": ["string", "null"]},
                    "tags": {"type": ["array", "null"], "items": {"type": "string"}}, "last_editor": {"type": ["string", "null"]}}},
                "is_human_readable": {"type": ["boolean", "null"]}}},
            "update_mask": {"type": "array", "items": {"type": "string"}},
            "last_known_revision": revision()
        }),
    )
}

/// KNO-8.3
pub fn delete() -> Value {
    object(
        &["document_id"],
        json!({"document_id": id(), "reason": text(limits::REASON_CHARS),
               "delete_at": {"type": "string", "format": "date-time"}, "last_known_revision": revision()}),
    )
}

/// KNO-8.4
pub fn relocate() -> Value {
    object(
        &["document_id", "new_parent_id"],
        json!({"document_id": id(), "new_parent_id": {"type": "string"}, "last_known_revision": revision(),
               "position": {"type": "object", "properties": {"ordering": {"type": "integer"}, "before": {"type": "string"},
                   "place": place()}}}),
    )
}

pub fn edit() -> Value {
    object(
        &["document_id", "old_str", "new_str"],
        json!({"document_id": id(), "old_str": {"type": "string", "minLength": 1}, "new_str": {"type": "string"},
               "last_known_revision": revision()}),
    )
}

/// KNO-8.5
pub fn query() -> Value {
    object(
        &["query"],
        json!({
            "query": text(limits::QUERY_CHARS),
            "filters": {"type": "object", "properties": {
                "tags": {"type": "array", "maxItems": limits::TAGS, "items": {"type": "string"}},
                "tenant_id": {"type": "string"},
                "subtree": {"type": "string"},
                "metadata": {"type": "object", "maxProperties": limits::TAGS,
                    "additionalProperties": {"type": ["string", "number", "boolean"]}}}},
            "top_k": {"type": "integer", "minimum": 1, "maximum": limits::TOP_K_MAX, "default": limits::TOP_K},
            "context_hints": {"type": "object", "properties": {"preferred_format": {"enum": ["markdown", "plain"]},
                "language": {"type": "string"}}},
            "routing": {"type": "object", "properties": {
                "allow_external_search": {"type": "boolean", "default": false},
                "max_latency_ms": {"type": "integer", "minimum": limits::LATENCY_MS_MIN,
                    "maximum": limits::LATENCY_MS_MAX, "default": limits::LATENCY_MS},
                "retrieval": {"enum": ["hybrid", "lexical", "dense"], "default": "hybrid"},
                "noop_qdrant": {"type": "boolean", "default": false}}}
        }),
    )
}

pub fn get() -> Value {
    object(
        &["document_id"],
        json!({"document_id": id(), "full": {"type": "boolean", "default": false}, "revision": {"type": "integer", "minimum": 1}}),
    )
}

pub fn get_many() -> Value {
    object(
        &["ids"],
        json!({"ids": {"type": "array", "minItems": 1, "maxItems": limits::MANY, "items": id()},
               "full": {"type": "boolean", "default": false}}),
    )
}

pub fn children() -> Value {
    object(
        &[],
        json!({"parent_id": {"type": "string", "default": "root"}, "cursor": {"type": "string"}, "limit": limit(limits::PAGE_MAX)}),
    )
}

pub fn list() -> Value {
    object(
        &[],
        json!({"prefix": text(limits::TITLE_CHARS * 8), "deleted": {"type": "boolean", "default": false},
               "cursor": {"type": "string"}, "limit": limit(limits::PAGE_MAX)}),
    )
}

pub fn history() -> Value {
    object(
        &["document_id"],
        json!({"document_id": id(), "before_revision": {"type": "integer", "minimum": 1}, "limit": limit(limits::HISTORY_MAX)}),
    )
}

pub fn changes() -> Value {
    object(&[], json!({"after": {"type": "integer", "minimum": 0}, "limit": limit(limits::PAGE_MAX)}))
}

pub fn webhook_add() -> Value {
    object(
        &["url"],
        json!({"url": {"type": "string", "minLength": 1, "maxLength": limits::URL_BYTES},
               "events": {"type": "array", "minItems": 1, "uniqueItems": true, "items": {"enum": EVENTS}},
               "secret": {"type": "string", "minLength": 16, "maxLength": 256}}),
    )
}

pub fn webhook_remove() -> Value {
    object(&["webhook_id"], json!({"webhook_id": id()}))
}
