//! What objects consist of: definitions, documents, secrets, keys and envelopes, each with a mark in it.

use orchestr8_kernel::ports::{Clock, clock};
use serde_json::{Value, json};

use super::objects::CANARY;

/// An Ed25519 public key.
pub const PUBLIC_KEY: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

pub fn workflow(id: &str, steps: Value) -> Value {
    marked_workflow(id, CANARY, steps)
}

fn marked_workflow(id: &str, mark: &str, steps: Value) -> Value {
    let inputs = json!({"type": "object", "additionalProperties": true});
    json!({"id": id, "version": "1.0.0", "name": mark, "inputs": inputs, "steps": steps})
}

pub fn echo(id: &str, mark: &str) -> Value {
    marked_workflow(id, mark, json!([{"id": "a", "agentId": "@orchestr8/echo", "input": {"message": mark}}]))
}

pub fn document(id: &str, mark: &str) -> Value {
    json!({"document_id": id, "parent_id": "root", "metadata": {"title": mark},
        "content": {"mime_type": "text/markdown", "body": format!("{mark} wombat")}})
}

pub fn secret(name: &str, mark: &str) -> Value {
    json!({"name": name, "value": format!("{mark}-{name}"), "workflows": [mark], "to": ["example.org:authorization"]})
}

pub fn key(kid: &str, tenant: &str, mark: &str) -> Value {
    json!({"kid": kid, "public": PUBLIC_KEY, "tenant_id": tenant, "principal": mark, "roles": ["viewer"]})
}

pub fn envelope(sub: &str, tenant: &str, id: &str, action: &str, args: Value) -> Value {
    json!({"envelope_version": "2.2", "request_id": id, "tenant_id": tenant, "action": action,
        "principal": {"type": "service", "sub": sub, "roles": []}, "action_version": "1.0.0",
        "timestamp": now(), "payload": {"args": args}})
}

/// The time of now, as envelopes want it.
fn now() -> String {
    clock::iso(clock::Real::new().now_ms())
}
