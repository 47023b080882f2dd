//! The shapes that several operations share.

use serde_json::{Value, json};

use super::operation::TENANT;
use crate::to_wire::Word;

/// Every shape, by name.
pub(super) fn all() -> Value {
    json!({
        "Error": error(),
        "Envelope": envelope(),
        "Success": {"type": "object", "required": ["ok", "data"], "properties": {
            "ok": {"const": true}, "data": {}, "usage": usage(), "replayed": {"type": "boolean"}, "ignored": {"type": "boolean"}}},
        "Acked": {"type": "object", "required": ["state", "request_id", "check_url"], "properties": {
            "state": {"const": "ACKED"}, "request_id": {"type": "string"}, "check_url": {"type": "string"}}},
        "Request": {"type": "object", "required": ["request_id", "state", "action"], "properties": {
            "request_id": {"type": "string"}, "action": {"type": "string"}, "acked_at": moment(), "updated_at": moment(), "answer": {},
            "state": {"enum": ["ACKED", "RUNNING", "SUCCEEDED", "FAILED", "COMPENSATED", "CANCELLED"]}}},
        "Document": document(),
        "Artifact": {"type": "object", "required": ["artifact_uri", "artifact_hash", "mime_type", "expires_at"], "properties": {
            "artifact_uri": {"type": "string"}, "artifact_hash": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "mime_type": {"type": "string"}, "expires_at": moment()}},
        "DeadLetter": {"type": "object", "required": ["seq", "tenant_id", "subject", "request_id", "attempts", "why"], "properties": {
            "seq": {"type": "integer"}, "tenant_id": {"type": "string"}, "subject": {"type": "string"}, "request_id": {"type": "string"},
            "principal": {"type": "string"}, "reply_to": {"type": ["string", "null"]}, "attempts": {"type": "integer"},
            "redrives": {"type": "integer"}, "why": {"type": "string"}, "published_at": moment(), "dead_at": moment(),
            "bytes": {"type": "integer"}, "envelope": {}}},
        "Key": {"type": "object", "required": ["kid", "tenant_id", "principal", "roles", "public", "status", "expires_at"], "properties": {
            "kid": {"type": "string"}, "tenant_id": {"type": "string"}, "principal": {"type": "string"},
            "roles": {"type": "array", "items": {"type": "string"}}, "public": {"type": "string"},
            "status": {"enum": ["active", "rotated", "revoked", "expired"]}, "created_at": moment(), "expires_at": moment(),
            "ends_at": moment(), "age_days": {"type": "integer"}}},
    })
}

pub(super) fn moment() -> Value {
    json!({"type": "string", "format": "date-time"})
}

fn usage() -> Value {
    json!({"type": "object", "properties": {"latency_ms": {"type": "integer"}, "qdrant_hits": {"type": "integer"}}})
}

fn error() -> Value {
    let words: Vec<&str> = Word::ALL.iter().map(|word| word.as_str()).collect();
    json!({"type": "object", "required": ["ok", "error"], "properties": {
        "ok": {"const": false}, "replayed": {"type": "boolean"},
        "error": {"type": "object", "required": ["code", "message", "details"], "properties": {
            "code": {"enum": words}, "message": {"type": "string"},
            "details": {"type": "object", "required": ["hint", "trace_id"], "properties": {
                "hint": {"type": "string"}, "trace_id": {"type": "string"}}}}}}})
}

/// KNO-2
fn envelope() -> Value {
    let bounded = json!({"type": ["string", "null"], "minLength": 1, "maxLength": 256, "pattern": "^[^\\x00-\\x1f\\x7f-\\x9f]*$"});
    json!({"type": "object",
        "required": ["envelope_version", "request_id", "tenant_id", "principal", "timestamp", "action", "action_version", "payload"],
        "properties": {
            "envelope_version": {"const": "2.2"}, "request_id": {"type": "string", "format": "uuid"},
            "correlation_id": bounded, "trace_id": bounded, "tenant_id": {"type": "string", "pattern": TENANT},
            "principal": {"type": "object", "required": ["sub"], "properties": {
                "sub": {"type": "string", "minLength": 1, "maxLength": 256, "pattern": "^[^\\x00-\\x1f\\x7f-\\x9f]*$"},
                "roles": {"type": ["array", "null"], "maxItems": 16, "items": {"type": "string"}}}},
            "timestamp": moment(), "ttl_sec": {"type": ["integer", "null"], "minimum": 1, "maximum": 604_800},
            "idempotency_key": bounded, "seq": {"type": ["integer", "null"], "minimum": 0, "maximum": i64::MAX},
            "action": {"type": "string"}, "action_version": {"type": "string"}, "context_id": bounded, "reply_to": bounded,
            "resource_links": {"type": ["array", "null"], "maxItems": 100},
            "payload": {"type": "object", "required": ["args"], "properties": {
                "schema_version": {"enum": ["1.0", null]}, "args": {"type": "object"}}}}})
}

fn document() -> Value {
    json!({"type": "object", "required": ["id", "revision"], "properties": {
        "id": {"type": "string", "format": "uuid"}, "revision": {"type": "integer", "minimum": 1},
        "parent_id": {"type": "string"}, "path": {"type": "string"}, "metadata": {"type": "object"},
        "content_length": {"type": "integer"}, "truncated": {"type": "boolean"}, "is_human_readable": {"type": "boolean"},
        "created_at": moment(), "updated_at": moment()}})
}
