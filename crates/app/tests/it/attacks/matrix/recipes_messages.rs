//! Recipes of agent messages below `/aacp`.

use serde_json::json;

use super::recipe::{Recipe, of};
use super::wire::{get, http, post};

pub fn all() -> Vec<Recipe> {
    vec![
        of("GET /aacp/agents", "agents.list", |_| get("/aacp/agents")),
        of("POST /aacp/agents", "agents.register", |o| {
            post("/aacp/agents", json!({"agentId": o.fresh("posted")}))
        }),
        of("PUT /aacp/agents/{id}", "agents.register", |o| {
            http("PUT", format!("/aacp/agents/{}", o.fresh("put")), Some(json!({"topics": ["t"]})))
        }),
        of("DELETE /aacp/agents/{id}", "agents.unregister", |o| {
            http("DELETE", format!("/aacp/agents/{}", o.agent()), None)
        }),
        of("POST /aacp/agents/{id}/heartbeat", "agents.heartbeat", |o| {
            http("POST", format!("/aacp/agents/{}/heartbeat", o.agent()), None)
        }),
        of("GET /aacp/agents/{id}/inbox", "aacp.inbox", |o| get(format!("/aacp/agents/{}/inbox", o.agent()))),
        of("POST /aacp/agents/{id}/acks", "aacp.ack", |o| {
            post(format!("/aacp/agents/{}/acks", o.agent()), json!({"inboxSeq": 0}))
        }),
        of("POST /aacp/messages", "aacp.send", |o| {
            let body = json!({"messageType": "EVENT", "sourceAgentId": o.fresh("source"), "targetAgentId": "echo",
                "payload": {"note": o.mark()}});
            post("/aacp/messages", body)
        }),
        of("GET /aacp/messages/{id}", "aacp.message", |o| get(format!("/aacp/messages/{}", o.message().0))),
        of("GET /aacp/requests", "aacp.requests", |_| get("/aacp/requests")),
        of("GET /aacp/requests/{id}", "aacp.request_status", |o| {
            get(format!("/aacp/requests/{}", o.message().1))
        }),
        of("GET /aacp/pairs", "aacp.pairs", |_| get("/aacp/pairs")),
        of("POST /aacp/purge", "aacp.purge_expired", |_| post("/aacp/purge", json!({}))),
        of("GET /aacp/openapi.json", "open", |_| get("/aacp/openapi.json")),
    ]
}
