//! Recipes of documents, envelopes, artifacts, webhooks, peers and the paths of operators.

use serde_json::{Value, json};

use super::content::{PUBLIC_KEY, document, envelope, key};
use super::objects::Objects;
use super::recipe::{Recipe, of};
use super::wire::{get, http, post};

pub fn all() -> Vec<Recipe> {
    [documents(), webhooks(), envelopes(), operators()].into_iter().flatten().collect()
}

fn documents() -> Vec<Recipe> {
    vec![
        of("GET /documents", "knowledge.list", |_| get("/documents")),
        of("POST /documents", "knowledge.create_document", |o| {
            post("/documents", document(&o.uuid(), o.mark()))
        }),
        of("POST /documents/batch", "knowledge.get_many", |o| {
            post("/documents/batch", json!({"ids": [o.document()]}))
        })
        .filtering(),
        of("POST /documents/query", "knowledge.query_knowledge", |_| {
            post("/documents/query", json!({"query": "wombat"}))
        }),
        of("POST /documents/verify", "knowledge.verify", |_| post("/documents/verify", json!({}))),
        of("POST /documents/reindex", "knowledge.reindex", |_| post("/documents/reindex", json!({}))),
        of("GET /documents/{id}", "knowledge.get_document", |o| get(format!("/documents/{}", o.document()))),
        of("PATCH /documents/{id}", "knowledge.edit", |o| {
            let body = json!({"old_str": "wombat", "new_str": "quokka"});
            http("PATCH", format!("/documents/{}", o.document()), Some(body))
        }),
        of("DELETE /documents/{id}", "knowledge.delete_document", |o| {
            http("DELETE", format!("/documents/{}", o.document()), None)
        }),
        of("GET /documents/{id}/children", "knowledge.list_children", |o| {
            get(format!("/documents/{}/children", o.document()))
        }),
        of("GET /documents/{id}/history", "knowledge.document_history", |o| {
            get(format!("/documents/{}/history", o.document()))
        }),
        of("POST /documents/{id}/move", "knowledge.move_document", |o| {
            post(format!("/documents/{}/move", o.document()), json!({"new_parent_id": "root"}))
        }),
        of("POST /documents/{id}/restore", "knowledge.restore_document", |o| {
            http("POST", format!("/documents/{}/restore", o.deleted()), None)
        }),
        of("POST /documents/{id}/link", "knowledge.get_document", |o| {
            http("POST", format!("/documents/{}/link", o.document()), None)
        }),
    ]
}

fn webhooks() -> Vec<Recipe> {
    vec![
        of("GET /webhooks", "knowledge.webhooks_list", |_| get("/webhooks")),
        of("POST /webhooks", "knowledge.webhooks_add", |_| {
            post("/webhooks", json!({"url": "http://127.0.0.1:9/x", "events": ["document.created"]}))
        }),
        of("DELETE /webhooks/{id}", "knowledge.webhooks_remove", |o| {
            http("DELETE", format!("/webhooks/{}", o.webhook()), None)
        }),
        of("POST /artifacts", "artifacts.create", |_| post("/artifacts", json!({"an": "artifact"}))),
        // Without the signature of the server the address is nothing.
        of("GET /artifacts/{kind}/{tenant}/{name}", "link", |o| {
            get(format!("/artifacts/document/acme/{}?expires=1&sig=x", o.document()))
        })
        .audited_as("auth.claim"),
        of("GET /mcp/heartbeat", "peers.list", |_| get("/mcp/heartbeat")),
        of("POST /mcp/heartbeat", "peers.heartbeat", |_| {
            post("/mcp/heartbeat", json!({"status": "healthy", "revision": 1}))
        }),
        of("GET /mcp/capabilities", "open", |_| get("/mcp/capabilities")),
        of("GET /knowledge/openapi.json", "open", |_| get("/knowledge/openapi.json")),
        of("GET /metrics", "server.metrics", |_| get("/metrics")),
        of("GET /mcp/requests/{id}", "requests.show", |o| {
            get(format!("/mcp/requests/{}", o.envelope_request()))
        }),
        of("POST /mcp/requests/{id}/cancel", "requests.cancel", |o| {
            http("POST", format!("/mcp/requests/{}/cancel", o.envelope_request()), None)
        }),
        of("GET /a2a/replies/{inbox}", "knowledge.replies", |_| get("/a2a/replies/matrix")),
    ]
}

/// The arguments of each action that takes envelopes.
fn arguments(o: &Objects, action: &str) -> Value {
    match action {
        "knowledge.create_document" => document(&o.uuid(), o.mark()),
        "knowledge.update_document" => json!({"document_id": o.document(), "update_mask": ["metadata.title"],
            "patch": {"metadata": {"title": o.mark()}}}),
        "knowledge.move_document" => json!({"document_id": o.document(), "new_parent_id": "root"}),
        "knowledge.restore_document" => json!({"document_id": o.deleted()}),
        "knowledge.list_children" => json!({"parent_id": o.document()}),
        "knowledge.query_knowledge" => json!({"query": "wombat"}),
        _ => json!({"document_id": o.document()}),
    }
}

/// The actions that envelopes may name, by every way an envelope comes.
fn envelopes() -> Vec<Recipe> {
    let actions = [
        "knowledge.create_document",
        "knowledge.update_document",
        "knowledge.delete_document",
        "knowledge.move_document",
        "knowledge.restore_document",
        "knowledge.query_knowledge",
        "knowledge.get_document",
        "knowledge.list_children",
        "knowledge.document_history",
    ];
    let recipes = actions.into_iter().flat_map(|action| {
        let sealed =
            move |o: &Objects| envelope(&o.caller, o.tenant, &o.uuid(), action, arguments(o, action));
        [
            Recipe::new("POST /mcp/actions", action, move |o| post("/mcp/actions", sealed(o))),
            Recipe::new("POST /mcp/actions/{action}", action, move |o| {
                post(format!("/mcp/actions/{action}"), sealed(o))
            }),
            // What is published is only looked for when its turn comes.
            Recipe::new("POST /a2a/publish", action, move |o| post("/a2a/publish", sealed(o))).filtering(),
        ]
    });
    recipes.collect()
}

fn operators() -> Vec<Recipe> {
    vec![
        of("GET /admin/keys", "keys.manage", |_| get("/admin/keys")),
        of("POST /admin/keys", "keys.manage", |o| {
            post("/admin/keys", key(&o.fresh("added"), o.tenant, o.mark()))
        }),
        of("POST /admin/keys/{kid}/rotate", "keys.manage", |o| {
            let body = json!({"kid": o.fresh("rotated"), "public": PUBLIC_KEY});
            post(format!("/admin/keys/{}/rotate", o.key()), body)
        }),
        of("POST /admin/keys/{kid}/revoke", "keys.manage", |o| {
            post(format!("/admin/keys/{}/revoke", o.key()), json!({}))
        }),
        of("GET /admin/queues", "keys.manage", |_| get("/admin/queues")),
        of("GET /admin/dead-letters", "keys.manage", |_| get("/admin/dead-letters")),
        // No letter is dead here.
        of("GET /admin/dead-letters/{seq}", "keys.manage", |_| get("/admin/dead-letters/1")).ends(&["404"]),
        of("DELETE /admin/dead-letters/{seq}", "keys.manage", |_| {
            http("DELETE", "/admin/dead-letters/1", None)
        })
        .ends(&["404"]),
        of("POST /admin/dead-letters/{seq}/redrive", "keys.manage", |_| {
            http("POST", "/admin/dead-letters/1/redrive", None)
        })
        .ends(&["404"]),
        of("GET /admin/slo", "server.objectives", |_| get("/admin/slo")),
    ]
}
