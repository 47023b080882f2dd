//! What agents use: envelopes, the bus, artifacts, capabilities, heartbeats.

use serde_json::{Value, json};

use super::Path;
use super::operation::{ENVELOPE, Operation, TENANT, WRITES, number, schema, success};
use super::schemas::moment;
use crate::limits;

const TAG: &str = "agents";
const UUID: &str = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$";
const INBOX: &str = "^[A-Za-z0-9_.-]{1,128}$";

pub(super) fn paths() -> Vec<Path> {
    vec![
        ("/mcp/actions", vec![("post", envelope("act", "Runs the action an envelope names."))]),
        (
            "/mcp/actions/{action}",
            vec![(
                "post",
                envelope("actNamed", "The same, with the action in the address.")
                    .path("action", "^[A-Za-z0-9_.-]{1,128}$"),
            )],
        ),
        ("/mcp/capabilities", vec![("get", capabilities())]),
        ("/mcp/heartbeat", vec![("get", peers()), ("post", heartbeat())]),
        (
            "/mcp/requests/{id}",
            vec![("get", request("getRequest", "Where an acknowledged call has come to."))],
        ),
        (
            "/mcp/requests/{id}/cancel",
            vec![(
                "post",
                request(
                    "cancelRequest",
                    "Stops one that waits or runs; confirms that a failed one left nothing.",
                ),
            )],
        ),
        ("/a2a/publish", vec![("post", publish())]),
        ("/a2a/replies/{inbox}", vec![("get", replies())]),
        ("/artifacts", vec![("post", upload())]),
        ("/artifacts/{kind}/{tenant}/{name}", vec![("get", download())]),
        (
            "/metrics",
            vec![(
                "get",
                Operation::new("metrics", TAG, "Figures for Prometheus.").gives_as(
                    200,
                    "text/plain",
                    json!({"type": "string"}),
                ),
            )],
        ),
        (
            super::PATH,
            vec![(
                "get",
                Operation::new("describe", TAG, "This description.").gives(200, json!({"type": "object"})),
            )],
        ),
    ]
}

fn example() -> Value {
    json!({
        "envelope_version": "2.2", "request_id": "7b0d3b9e-52b4-4a6f-9d55-0d1f0a1b2c3d", "tenant_id": "acme",
        "principal": {"sub": "svc:writer"}, "timestamp": "2026-01-01T00:00:00Z", "action": "knowledge.query_knowledge",
        "action_version": "1.0.0", "payload": {"args": {"query": "whales"}},
    })
}

fn envelope(id: &str, summary: &str) -> Operation {
    Operation::new(id, TAG, summary)
        .keyed()
        .body(schema("Envelope"), example())
        .body_as("application/jose", json!({"schema": {"type": "string"}}))
        .gives(200, schema("Success"))
        .gives(202, success(schema("Acked")))
        .fails(ENVELOPE)
}

fn publish() -> Operation {
    Operation::new(
        "publish",
        TAG,
        "Takes an envelope to be run when its turn comes; durable when it is answered.",
    )
    .keyed()
    .body(schema("Envelope"), example())
    .body_as("application/jose", json!({"schema": {"type": "string"}}))
    .gives(202, success(schema("Acked")))
    .fails(ENVELOPE)
}

fn replies() -> Operation {
    let reply = json!({"type": "object", "required": ["seq", "at", "envelope"], "properties": {
        "seq": {"type": "integer"}, "at": super::schemas::moment(), "envelope": {"type": "object"}}});
    let page = json!({"type": "object", "required": ["replies", "next", "more"], "properties": {
        "replies": {"type": "array", "items": reply}, "next": {"type": "integer"}, "more": {"type": "boolean"}}});
    Operation::new(
        "readReplies",
        TAG,
        "Answers to published envelopes: a page, or with Accept: text/event-stream as they come.",
    )
    .path("inbox", INBOX)
    .query("after", number(0, i64::MAX.unsigned_abs()))
    .query("limit", number(1, limits::REPLIES))
    .query("wait_ms", number(0, limits::REPLY_WAIT_MS))
    .of_tenant()
    .gives(200, success(page))
    .gives_as(200, "text/event-stream", json!({"type": "string"}))
}

fn capabilities() -> Operation {
    let action = json!({"type": "object", "required": ["action", "action_version", "max_concurrent"], "properties": {
        "action": {"type": "string"}, "action_version": {"type": "string"}, "max_payload_bytes": {"type": "integer"},
        "max_concurrent": {"type": "integer"}}});
    let all = json!({"type": "object", "required": ["envelope_versions", "actions", "transports"], "properties": {
        "envelope_versions": {"type": "array", "items": {"type": "string"}}, "actions": {"type": "array", "items": action},
        "transports": {"type": "array", "items": {"enum": ["http-sync", "pubsub-async"]}},
        "deprecations": {"type": "array", "items": {"type": "object", "required": ["event", "alias", "role", "quarter", "at", "message"],
            "properties": {"event": {"type": "string"}, "alias": {"type": "string"}, "role": {"type": "string"},
                "quarter": {"type": "string"}, "at": moment(), "eol": {"type": "null"}, "message": {"type": "string"}}}}}});
    Operation::new("capabilities", TAG, "What this server can do and how it is reached.").gives(200, all)
}

fn heartbeat() -> Operation {
    let body = json!({"type": "object", "required": ["status", "revision"], "properties": {
        "status": {"enum": ["healthy", "degraded"]}, "revision": {"type": ["string", "number"]}, "name": {"type": "string"}}});
    Operation::new("heartbeat", TAG, "A peer says that it is alive.")
        .of_tenant()
        .body(body, json!({"status": "healthy", "revision": "1", "name": "worker-1"}))
        .gives(200, success(json!({"type": "object"})))
}

fn peers() -> Operation {
    let data = json!({"type": "object", "required": ["peers"], "properties": {"peers": {"type": "array", "items": {"type": "object"}}}});
    Operation::new("listPeers", TAG, "Who of a tenant's peers is alive.")
        .of_tenant()
        .gives(200, success(data))
}

fn request(id: &str, summary: &str) -> Operation {
    Operation::new(id, TAG, summary).path("id", UUID).of_tenant().gives(200, success(schema("Request")))
}

fn upload() -> Operation {
    // Any bytes are a text, or they are refused as one.
    let text = json!({"schema": {}});
    Operation::new("upload", TAG, "Keeps content for a day, to be named in an envelope.")
        .of_tenant()
        .body_as("text/markdown", text.clone())
        .body_as("text/plain", text)
        .gives(201, success(schema("Artifact")))
        .fails(WRITES)
}

fn download() -> Operation {
    let text = json!({"type": "string"});
    Operation::new("download", TAG, "What a signed link leads to. The link is all the proof there is.")
        .path("kind", "^(upload|document)$")
        .path("tenant", TENANT)
        .path("name", "^[A-Za-z0-9-]{1,128}$")
        .query("expires", number(0, i64::MAX.unsigned_abs()))
        .query("signature", json!({"type": "string"}))
        .gives_as(200, "text/markdown", text.clone())
        .gives_as(200, "text/plain", text)
        .gives(200, json!({}))
        .fails(&[440])
}
