//! Recipes of the REST API below `/v1`: workflows, executions, schedules, approvals, workers, tokens, secrets, audit, events.

use serde_json::json;

use super::content::{echo, secret};
use super::recipe::{Recipe, of};
use super::wire::{Request, get, http, post};

pub fn all() -> Vec<Recipe> {
    [
        definitions(),
        executions(),
        schedules(),
        triggers(),
        approvals(),
        workspaces(),
        workers(),
        administration(),
        observation(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn definitions() -> Vec<Recipe> {
    vec![
        of("GET /v1/workflows", "workflows.list", |_| get("/v1/workflows")),
        of("PUT /v1/workflows", "workflows.apply", |o| {
            http("PUT", "/v1/workflows", Some(json!({"workflow": echo(&o.fresh("put"), o.mark())})))
        }),
        of("POST /v1/workflows", "workflows.apply", |o| {
            post("/v1/workflows", json!({"workflow": echo(&o.fresh("posted"), o.mark())}))
        }),
        of("POST /v1/workflows/validate", "workflows.validate", |_| {
            post("/v1/workflows/validate", json!({"workflow": echo("v", "checked")}))
        }),
        of("POST /v1/workflows/execute", "workflows.execute", |o| {
            post("/v1/workflows/execute", json!({"workflowId": o.workflow()}))
        }),
        of("GET /v1/workflows/{id}", "workflows.show", |o| get(format!("/v1/workflows/{}", o.workflow()))),
        of("GET /v1/workflows/{id}/revisions/{revision}", "workflows.show", |o| {
            get(format!("/v1/workflows/{}/revisions/1", o.workflow()))
        }),
        of("DELETE /v1/workflows/{id}", "workflows.delete", |o| {
            http("DELETE", format!("/v1/workflows/{}", o.workflow()), None)
        }),
    ]
}

fn executions() -> Vec<Recipe> {
    let read = |path: &'static str, action| {
        Recipe::new(format!("GET /v1/executions/{{id}}{path}"), action, move |o| {
            get(format!("/v1/executions/{}{path}", o.execution()))
        })
    };
    let act = |verb: &'static str, action| {
        Recipe::new(format!("POST /v1/executions/{{id}}/{verb}"), action, move |o| {
            http("POST", format!("/v1/executions/{}/{verb}", o.execution()), None)
        })
    };
    vec![
        of("GET /v1/executions", "executions.list", |_| get("/v1/executions")),
        read("", "executions.get"),
        read("/journal", "executions.journal"),
        read("/workflow", "executions.definition"),
        of("GET /v1/executions/{id}/artifacts/{artifact}", "executions.artifact", |o| {
            get(format!("/v1/executions/{}", o.artifact()))
        }),
        act("cancel", "executions.cancel"),
        act("pause", "executions.pause"),
        of("POST /v1/executions/{id}/resume", "executions.resume", |o| {
            http("POST", format!("/v1/executions/{}/resume", o.execution()), None)
        })
        .ends(&["409 CONFLICT"]),
        of("POST /v1/executions/{id}/retry", "executions.retry", |o| {
            http("POST", format!("/v1/executions/{}/retry", o.failed()), None)
        }),
        of("POST /v1/executions/{id}/fork", "executions.fork", |o| {
            post(format!("/v1/executions/{}/fork?fromStep=a", o.failed()), json!({}))
        }),
        of("POST /v1/executions/{id}/events", "executions.signal", |o| {
            post(format!("/v1/executions/{}/events", o.execution()), json!({"name": "paid"}))
        }),
        of("POST /v1/events", "events.send", |o| {
            post("/v1/events", json!({"name": "paid", "key": o.fresh("key")}))
        }),
        // Only a step whose outcome is not known can be resolved.
        of("POST /v1/executions/{id}/steps/{step}/resolve", "executions.resolve", |o| {
            post(format!("/v1/executions/{}/steps/ask/resolve", o.execution()), json!({"action": "fail"}))
        })
        .ends(&["409 CONFLICT"]),
        of("POST /v1/executions/retry", "executions.retry_many", |_| {
            post("/v1/executions/retry", json!({"workflowId": "none"}))
        }),
        of("POST /v1/executions/cancel", "executions.cancel_many", |_| {
            post("/v1/executions/cancel", json!({"workflowId": "none"}))
        }),
        of("POST /v1/executions/delete", "executions.delete_many", |_| {
            post("/v1/executions/delete", json!({"workflowId": "none"}))
        }),
    ]
}

fn schedules() -> Vec<Recipe> {
    let body = |id: Option<String>, workflow: String| {
        let mut body = json!({"workflowId": workflow, "cron": "0 3 1 1 *"});
        if let Some(id) = id {
            body["id"] = json!(id);
        }
        Some(body)
    };
    let act = |verb: &'static str, action| {
        Recipe::new(format!("POST /v1/schedules/{{id}}/{verb}"), action, move |o| {
            http("POST", format!("/v1/schedules/{}/{verb}", o.schedule()), None)
        })
    };
    vec![
        of("GET /v1/schedules", "schedules.list", |_| get("/v1/schedules")),
        of("PUT /v1/schedules", "schedules.apply", move |o| {
            http("PUT", "/v1/schedules", body(Some(o.fresh("put")), o.workflow()))
        }),
        of("POST /v1/schedules", "schedules.apply", move |o| {
            http("POST", "/v1/schedules", body(Some(o.fresh("posted")), o.workflow()))
        }),
        of("PUT /v1/schedules/{id}", "schedules.apply", move |o| {
            http("PUT", format!("/v1/schedules/{}", o.fresh("named")), body(None, o.workflow()))
        }),
        of("GET /v1/schedules/{id}", "schedules.show", |o| get(format!("/v1/schedules/{}", o.schedule()))),
        of("DELETE /v1/schedules/{id}", "schedules.delete", |o| {
            http("DELETE", format!("/v1/schedules/{}", o.schedule()), None)
        }),
        act("pause", "schedules.pause"),
        act("resume", "schedules.resume"),
        act("trigger", "schedules.trigger"),
    ]
}

fn triggers() -> Vec<Recipe> {
    let body = |id: Option<String>, workflow: String| {
        let mut body = json!({"workflowId": workflow, "webhook": {}});
        if let Some(id) = id {
            body["id"] = json!(id);
        }
        Some(body)
    };
    let act = |verb: &'static str, action| {
        Recipe::new(format!("POST /v1/triggers/{{id}}/{verb}"), action, move |o| {
            http("POST", format!("/v1/triggers/{}/{verb}", o.trigger()), None)
        })
    };
    vec![
        of("GET /v1/triggers", "triggers.list", |_| get("/v1/triggers")),
        of("PUT /v1/triggers", "triggers.apply", move |o| {
            http("PUT", "/v1/triggers", body(Some(o.fresh("put")), o.workflow()))
        }),
        of("POST /v1/triggers", "triggers.apply", move |o| {
            http("POST", "/v1/triggers", body(Some(o.fresh("posted")), o.workflow()))
        }),
        of("PUT /v1/triggers/{id}", "triggers.apply", move |o| {
            http("PUT", format!("/v1/triggers/{}", o.fresh("named")), body(None, o.workflow()))
        }),
        of("GET /v1/triggers/{id}", "triggers.show", |o| get(format!("/v1/triggers/{}", o.trigger()))),
        of("DELETE /v1/triggers/{id}", "triggers.delete", |o| {
            http("DELETE", format!("/v1/triggers/{}", o.trigger()), None)
        }),
        act("pause", "triggers.pause"),
        act("resume", "triggers.resume"),
        act("redrive", "triggers.redrive"),
        of("POST /v1/hooks/{hook}", "hooks.deliver", |o| o.delivery()),
    ]
}

fn approvals() -> Vec<Recipe> {
    let decision = || json!({"decision": "approve", "onBehalfOf": "boss"});
    vec![
        of("GET /v1/approvals", "executions.approvals", |_| get("/v1/approvals")),
        of("POST /v1/approvals", "executions.approve", move |o| {
            let mut body = decision();
            body["token"] = json!(o.approval());
            post("/v1/approvals", body)
        }),
        of("GET /v1/approvals/{token}", "executions.approvals", |o| {
            get(format!("/v1/approvals/{}", o.approval()))
        })
        .by_link(),
        of("POST /v1/approvals/{token}", "executions.approve", move |o| {
            post(format!("/v1/approvals/{}", o.approval()), decision())
        }),
    ]
}

/// There are no workspaces here: what is asked for is looked for, and not found, after the role check.
fn workspaces() -> Vec<Recipe> {
    let plan = || format!("/v1/plans/{}", "0".repeat(64));
    vec![
        of("GET /v1/plans", "plans.list", |_| get("/v1/plans")),
        of("GET /v1/plans/{hash}", "plans.get", move |_| get(plan())).ends(&["404"]),
        of("POST /v1/plans/{hash}", "plans.decide", move |_| post(plan(), json!({"decision": "approve"})))
            .ends(&["404"]),
        of("GET /v1/trails", "trails.show", |_| get("/v1/trails?workspace=/nowhere")).ends(&["404"]),
        of("POST /v1/trails/accept", "trails.accept", |_| {
            post("/v1/trails/accept", json!({"workspace": "/nowhere"}))
        })
        .ends(&["404"]),
    ]
}

fn workers() -> Vec<Recipe> {
    vec![
        of("POST /v1/workers/{queue}/poll", "workers.poll", |_| {
            post("/v1/workers/empty/poll", json!({"workerId": "w", "waitMs": 0}))
        }),
        of("POST /v1/tasks/{id}/complete", "workers.complete", |o| {
            let task = o.task();
            post(format!("/v1/tasks/{}/complete", task.id), json!({"leaseToken": task.lease, "output": 1}))
        }),
        of("POST /v1/tasks/{id}/fail", "workers.fail", |o| {
            let (task, error) = (o.task(), json!({"message": "no"}));
            post(format!("/v1/tasks/{}/fail", task.id), json!({"leaseToken": task.lease, "error": error}))
        }),
        of("POST /v1/tasks/{id}/heartbeat", "workers.heartbeat", |o| {
            let task = o.task();
            post(format!("/v1/tasks/{}/heartbeat", task.id), json!({"leaseToken": task.lease}))
        }),
    ]
}

fn administration() -> Vec<Recipe> {
    vec![
        of("GET /v1/tokens", "tokens.list", |_| get("/v1/tokens")),
        of("POST /v1/tokens", "tokens.create", |o| {
            post("/v1/tokens", json!({"name": o.fresh("made"), "roles": ["admin"]}))
        }),
        of("DELETE /v1/tokens/{id}", "tokens.revoke", |o| {
            http("DELETE", format!("/v1/tokens/{}", o.token()), None)
        }),
        of("POST /v1/tokens/{id}/revoke", "tokens.revoke", |o| {
            http("POST", format!("/v1/tokens/{}/revoke", o.token()), None)
        }),
        of("POST /v1/tokens/{id}/rotate", "tokens.rotate", |o| {
            post(format!("/v1/tokens/{}/rotate", o.token()), json!({}))
        }),
        of("GET /v1/secrets", "secrets.list", |_| get("/v1/secrets")),
        of("POST /v1/secrets", "secrets.set", |o| post("/v1/secrets", secret(&o.fresh("set"), o.mark()))),
        of("PUT /v1/secrets/{name}", "secrets.rotate", |o| {
            let body = json!({"value": "another-value-0123456789"});
            http("PUT", format!("/v1/secrets/{}", o.secret()), Some(body))
        }),
        of("DELETE /v1/secrets/{name}", "secrets.delete", |o| {
            http("DELETE", format!("/v1/secrets/{}", o.secret()), None)
        }),
        of("POST /v1/servers", "servers.add", |o| {
            // No one listens there; it is added all the same.
            post("/v1/servers", json!({"name": o.fresh("up"), "url": "https://mcp.invalid/mcp"}))
        }),
        // This server has no other servers of these names.
        of("POST /v1/servers/{name}/restart", "servers.restart", |_| {
            post("/v1/servers/none/restart", json!({}))
        })
        .ends(&["404"]),
        of("GET /v1/servers/{name}/logs", "servers.logs", |_| get("/v1/servers/none/logs")).ends(&["404"]),
        of("DELETE /v1/servers/{name}", "servers.remove", |_| {
            http("DELETE", String::from("/v1/servers/none"), None)
        })
        .ends(&["404"]),
        of("GET /v1/limits", "limits.list", |_| get("/v1/limits")),
        of("PUT /v1/limits", "limits.set", |_| {
            let body = json!({"scope": "queue", "name": "empty", "value": 7});
            http("PUT", "/v1/limits", Some(body))
        }),
        of("DELETE /v1/limits", "limits.unset", |_| {
            http("DELETE", String::from("/v1/limits?scope=queue&name=empty"), None)
        }),
        of("GET /v1/audit", "audit.entries", |_| get("/v1/audit?limit=500")),
        of("GET /v1/audit/verify", "audit.verify", |_| get("/v1/audit/verify")),
        of("GET /v1/witness/heads", "witness.heads", |_| get("/v1/witness/heads")),
        // Heads that no key has signed, and those of an unknown log: refused and not found after the role check.
        of("POST /v1/witness/heads", "witness.submit", |_| {
            post("/v1/witness/heads", json!({"key": "no key", "heads": ["no head"]}))
        })
        .ends(&["400 VALIDATION"]),
        of("DELETE /v1/witness/heads", "witness.forget", |_| {
            http("DELETE", String::from("/v1/witness/heads?origin=none&principal=none"), None)
        })
        .ends(&["404"]),
        of("GET /v1/tools/quarantined", "tools.quarantined", |_| get("/v1/tools/quarantined")),
        // This server has no other servers.
        of("POST /v1/tools/accept", "tools.accept", |_| {
            post("/v1/tools/accept", json!({"server": "none", "tool": "t", "changed": "c"}))
        })
        .ends(&["404"]),
    ]
}

fn observation() -> Vec<Recipe> {
    vec![
        of("GET /v1/agents", "workflows.agents", |_| get("/v1/agents")),
        of("GET /v1/dashboard/executions", "executions.list", |_| get("/v1/dashboard/executions")),
        of("GET /v1/dashboard/metrics", "workflows.metrics", |_| get("/v1/dashboard/metrics")),
        of("GET /v1/dashboard/servers", "tools.servers", |_| get("/v1/dashboard/servers")),
        of("GET /v1/servers", "tools.servers", |_| get("/v1/servers")),
        of("GET /v1/servers/{name}", "servers.show", |_| get("/v1/servers/none")).ends(&["404"]),
        of("GET /v1/dashboard/system", "workflows.system", |_| get("/v1/dashboard/system")),
        of("GET /v1/events", "executions.events", |_| Request::Stream {
            target: String::from("/v1/events?lastEventId=0"),
        }),
        of("GET /v1/ws", "executions.events", |_| Request::Socket {
            target: String::from("/v1/ws?lastEventId=0"),
        }),
        of("GET /v1/health", "open", |_| get("/v1/health")),
        of("GET /v1/openapi.json", "open", |_| get("/v1/openapi.json")),
    ]
}
