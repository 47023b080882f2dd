//! The description of this API: OpenAPI 3.1, built here, committed as `schemas/knowledge.openapi.json`, served as it is.

mod agents;
mod operation;
mod operators;
mod people;
mod schemas;

use serde_json::{Map, Value, json};

use operation::Operation;

/// Where it is served.
pub(crate) const PATH: &str = "/knowledge/openapi.json";

/// One path, and what can be done there.
type Path = (&'static str, Vec<(&'static str, Operation)>);

const ABOUT: &str = "Two ways to the same documents: envelopes for agents, at once or over the bus, and plain REST for people. Every request may carry \
X-Correlation-ID, and every answer has one. Which proof of who asks is needed depends on knowledge.security.profile; on one's own machine it is none. \
Errors have one shape, whose details always have a hint and a trace_id.";

/// The whole description.
pub fn document() -> Value {
    let all = agents::paths().into_iter().chain(people::paths()).chain(operators::paths());
    let paths: Map<String, Value> = all
        .map(|(path, operations)| {
            let methods = operations.into_iter().map(|(method, one)| (method.to_owned(), one.into_value()));
            (path.to_owned(), Value::Object(methods.collect()))
        })
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "orchestr8 knowledge", "version": "1.0.0", "summary": "A tree of documents that agents and people write and search.",
            "description": ABOUT, "license": {"name": "MIT", "identifier": "MIT"},
        },
        "security": [{}, {"bearer": []}, {"signature": []}],
        "tags": [
            {"name": "agents", "description": "Envelopes, at once and over the bus; artifacts."},
            {"name": "people", "description": "Documents and webhooks as plain REST."},
            {"name": "operators", "description": "For whoever runs the server."},
        ],
        "paths": paths,
        "components": {
            "schemas": schemas::all(),
            "responses": operation::refusals(),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "Profile basic, and tokens of the edge."},
                "signature": {"type": "apiKey", "in": "header", "name": "X-JWS-Signature", "description": "Profile external: a detached JWS by Ed25519."},
            },
        },
    })
}
