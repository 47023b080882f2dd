//! What whoever runs the server uses.

use serde_json::{Value, json};

use super::Path;
use super::operation::{MISSING, Operation, TENANT, number, schema, success};
use crate::limits::DEAD_LETTERS;

const TAG: &str = "operators";
const SEQ: &str = "^[1-9][0-9]{0,8}$";
const KID: &str = "^[A-Za-z0-9._:-]{1,256}$";
const PUBLIC: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

pub(super) fn paths() -> Vec<Path> {
    vec![
        (
            "/admin/queues",
            vec![("get", of("listQueues", "How much of each tenant waits.").gives(200, success(any())))],
        ),
        ("/admin/dead-letters", vec![("get", list())]),
        (
            "/admin/dead-letters/{seq}",
            vec![
                ("get", letter("getDeadLetter", "One with its envelope.", schema("DeadLetter"))),
                ("delete", letter("dropDeadLetter", "Forgets one.", any())),
            ],
        ),
        (
            "/admin/dead-letters/{seq}/redrive",
            vec![("post", letter("redriveDeadLetter", "Sends one on its way again.", any()))],
        ),
        ("/admin/keys", vec![("get", keys()), ("post", add_key())]),
        ("/admin/keys/{kid}/rotate", vec![("post", rotate())]),
        (
            "/admin/keys/{kid}/revoke",
            vec![(
                "post",
                Operation::new("revokeKey", TAG, "Lets a key sign nothing any more.")
                    .path("kid", KID)
                    .gives(200, success(schema("Key"))),
            )],
        ),
        (
            "/admin/slo",
            vec![(
                "get",
                Operation::new("objectives", TAG, "Whether the promises are kept.")
                    .gives(200, success(any())),
            )],
        ),
    ]
}

fn any() -> Value {
    json!({"type": "object"})
}

fn of(id: &str, summary: &str) -> Operation {
    Operation::new(id, TAG, summary).of_tenant()
}

fn list() -> Operation {
    let data = json!({"type": "object", "required": ["dead_letters", "next"], "properties": {
        "dead_letters": {"type": "array", "items": schema("DeadLetter")}, "next": {"type": ["integer", "null"]}}});
    of("listDeadLetters", "What was given up, and why.")
        .query("after", number(0, i64::MAX.unsigned_abs()))
        .query("limit", number(1, DEAD_LETTERS))
        .gives(200, success(data))
}

fn letter(id: &str, summary: &str, data: Value) -> Operation {
    of(id, summary).path("seq", SEQ).gives(200, success(data))
}

fn keys() -> Operation {
    let data = json!({"type": "object", "required": ["keys", "next"], "properties": {
        "keys": {"type": "array", "items": schema("Key")}, "next": {"type": ["string", "null"]}}});
    of("listKeys", "The keys agents sign with.")
        .query("after", json!({"type": "string"}))
        .gives(200, success(data))
}

fn public() -> Value {
    json!({"type": "string", "pattern": "^[A-Za-z0-9_-]{43}$"})
}

fn add_key() -> Operation {
    let body = json!({"type": "object", "required": ["kid", "public", "tenant_id", "principal", "roles"], "properties": {
        "kid": {"type": "string", "pattern": KID}, "public": public(), "tenant_id": {"type": "string", "pattern": TENANT},
        "principal": {"type": "string", "minLength": 1, "maxLength": 256},
        "roles": {"type": "array", "items": {"enum": ["owner", "editor", "viewer", "agent", "cursor", "codex"]}}}});
    let example = json!({"kid": "k-1", "public": PUBLIC, "tenant_id": "acme", "principal": "svc:writer", "roles": ["editor"]});
    Operation::new("addKey", TAG, "Takes up the public half of a key.")
        .body(body, example)
        .gives(201, success(schema("Key")))
        .fails(&[409])
}

fn rotate() -> Operation {
    let body = json!({"type": "object", "required": ["kid", "public"], "properties": {"kid": {"type": "string", "pattern": KID}, "public": public()}});
    Operation::new("rotateKey", TAG, "Puts a new key in the place of an old one.")
        .path("kid", KID)
        .body(body, json!({"kid": "k-2", "public": PUBLIC}))
        .gives(201, success(schema("Key")))
        .fails(&[409])
        .fails(MISSING)
}
