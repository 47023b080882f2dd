//! The description of this API: OpenAPI 3.1, built here, committed as `schemas/openapi.json`, served as it is.

mod approvals;
mod bulk;
mod control;
mod definition;
mod executions;
mod limits;
mod operation;
mod plans;
mod program;
mod schedules;
mod schemas;
mod secrets;
mod servers;
mod shapes;
mod tokens;
mod triggers;
mod witness;
mod workers;
mod workflows;

use serde_json::{Map, Value, json};

use operation::Operation;

/// One path below a prefix, and what can be done there.
type Path = (&'static str, Vec<(&'static str, Operation)>);

/// The whole description. Paths are below each of the servers.
pub fn document() -> Value {
    let mut paths = Map::new();
    for (path, operations) in all() {
        let methods: Map<String, Value> = operations
            .into_iter()
            .map(|(method, operation)| (method.to_owned(), operation.into_value()))
            .collect();
        paths.insert(path.to_owned(), methods.into());
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "orchestr8 workflows",
            "version": "1.0.0",
            "summary": "Run durable workflows, look at them, and follow them live.",
            "description": ABOUT,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/v1"}, {"url": "/api/v1"}],
        "security": [{}, {"bearer": []}],
        "tags": [
            {"name": "executions", "description": "Runs of workflows."},
            {"name": "workflows", "description": "Definitions, checked or stored."},
            {"name": "approvals", "description": "What waits for a person's word."},
            {"name": "schedules", "description": "What runs at which times."},
            {"name": "limits", "description": "Limits of queues, agents and tenants, changed while the server runs."},
            {"name": "workspaces", "description": "Plans of governed workspaces, and where their audit trails end."},
            {"name": "triggers", "description": "What starts workflows from outside."},
            {"name": "secrets", "description": "Values that steps send to bound destinations, and that no answer shows."},
            {"name": "servers", "description": "Other MCP servers whose tools are offered here."},
            {"name": "witness", "description": "Signed heads of other servers' audit logs, which this server remembers for them."},
            {"name": "workers", "description": "The protocol of programs that do the work of steps."},
            {"name": "tokens", "description": "API tokens: who may call, and as what."},
            {"name": "program", "description": "The program itself: figures, health, live events."},
        ],
        "paths": paths,
        "components": {
            "schemas": schemas::all(),
            "responses": operation::refusals(),
            "parameters": operation::parameters(),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "Asked for where the server listens to more than this machine."},
            },
        },
    })
}

const ABOUT: &str = "Every request may carry X-Correlation-ID, and every answer has one. A POST with an Idempotency-Key can be repeated \
safely for a day: the repeat gets the first answer, marked Idempotency-Replayed. Unknown parameters and members are refused by name. \
Errors have one shape; `cause` is the code of docs/errors.md where `error.code` is a wider word.";

fn all() -> Vec<Path> {
    let mut paths = executions::paths();
    paths.extend(control::paths());
    paths.extend(bulk::paths());
    paths.extend(workflows::paths());
    paths.extend(approvals::paths());
    paths.extend(schedules::paths());
    paths.extend(triggers::paths());
    paths.extend(secrets::paths());
    paths.extend(servers::paths());
    paths.extend(limits::paths());
    paths.extend(plans::paths());
    paths.extend(witness::paths());
    paths.extend(workers::paths());
    paths.extend(tokens::paths());
    paths.extend(program::paths());
    paths
}
