//! Every path of this face, under both of its prefixes.

use std::sync::Arc;

use axum::Router;
use axum::routing::{MethodRouter, any, delete, get, post, put};
use orchestr8_kernel::Kernel;

use crate::endpoints::{
    approvals, audit, bulk, control, execute, execution, hooks, journal, limits, lists, plans, program,
    schedules, secrets, servers, tokens, triggers, witness, workers, workflows,
};
use crate::face::{Face, at};
use crate::live;
use crate::settings::Settings;

/// The same API is served under each.
pub const PREFIXES: [&str; 2] = ["/v1", "/api/v1"];

/// Links to approvals: their token is the credential.
pub const APPROVAL_LINKS: [&str; 2] = ["/v1/approvals", "/api/v1/approvals"];

/// Deliveries to triggers: their signature is the credential.
pub const HOOKS: [&str; 2] = ["/v1/hooks", "/api/v1/hooks"];

/// What is also found at the root, where people look for it first.
pub(crate) const ROOTS: [&str; 2] = ["/ws", "/openapi.json"];

/// The routes of this face.
pub fn router(kernel: Kernel, settings: Settings) -> Router {
    let face = Face::new(kernel, settings);
    let mut router = Router::new();
    for prefix in PREFIXES {
        for (path, methods) in paths(&face) {
            router = router.route(&format!("{prefix}{path}"), speaking(&face, methods));
        }
        for nothing in ["", "/", "/{*rest}"] {
            router = router.route(&format!("{prefix}{nothing}"), any(at(&face, program::nowhere)));
        }
    }
    let [socket, openapi] = ROOTS;
    router
        .route(socket, speaking(&face, get(at(&face, live::socket))))
        .route(openapi, speaking(&face, get(at(&face, program::openapi))))
}

/// Other methods are refused in the words of this face.
fn speaking(face: &Arc<Face>, methods: MethodRouter) -> MethodRouter {
    methods.fallback(at(face, program::not_this_method))
}

/// Every path below a prefix.
fn paths(face: &Arc<Face>) -> Vec<(&'static str, MethodRouter)> {
    let mut paths = vec![
        ("/workflows/execute", post(at(face, execute::execute))),
        ("/workflows/validate", post(at(face, workflows::validate))),
        (
            "/workflows",
            get(at(face, workflows::list)).put(at(face, workflows::apply)).post(at(face, workflows::apply)),
        ),
        ("/workflows/{id}", get(at(face, workflows::show)).delete(at(face, workflows::delete))),
        ("/workflows/{id}/revisions/{revision}", get(at(face, workflows::revision))),
        ("/agents", get(at(face, workflows::agents))),
        ("/approvals", get(at(face, approvals::list)).post(at(face, approvals::decide))),
        ("/approvals/{token}", get(at(face, approvals::show)).post(at(face, approvals::answer))),
        ("/workers/{queue}/poll", post(at(face, workers::poll))),
        ("/tasks/{id}/complete", post(at(face, workers::complete))),
        ("/tasks/{id}/fail", post(at(face, workers::fail))),
        ("/tasks/{id}/heartbeat", post(at(face, workers::heartbeat))),
        ("/dashboard/executions", get(at(face, lists::executions))),
        ("/dashboard/metrics", get(at(face, program::metrics))),
        ("/dashboard/system", get(at(face, program::system))),
        ("/dashboard/servers", get(at(face, program::servers))),
        ("/tools/quarantined", get(at(face, program::quarantined))),
        ("/tools/accept", post(at(face, program::accept_tool))),
        ("/limits", get(at(face, limits::list)).put(at(face, limits::set)).delete(at(face, limits::unset))),
        ("/audit", get(at(face, audit::list))),
        ("/audit/verify", get(at(face, audit::verify))),
        (
            "/witness/heads",
            get(at(face, witness::list)).post(at(face, witness::submit)).delete(at(face, witness::forget)),
        ),
        ("/events", get(at(face, live::events)).post(at(face, control::send_by_key))),
        ("/ws", get(at(face, live::socket))),
        ("/health", get(at(face, program::health))),
        ("/openapi.json", get(at(face, program::openapi))),
    ];
    paths.extend(executions(face));
    paths.extend(schedules(face));
    paths.extend(triggers(face));
    paths.extend(tokens(face));
    paths.extend(secrets(face));
    paths.extend(servers(face));
    paths.extend(workspaces(face));
    paths
}

fn executions(face: &Arc<Face>) -> Vec<(&'static str, MethodRouter)> {
    vec![
        ("/executions", get(at(face, lists::executions))),
        ("/executions/retry", post(at(face, lists::retry))),
        ("/executions/cancel", post(at(face, bulk::cancel))),
        ("/executions/delete", post(at(face, bulk::delete))),
        ("/executions/{id}", get(at(face, execution::show))),
        ("/executions/{id}/workflow", get(at(face, execution::definition))),
        ("/executions/{id}/artifacts/{artifact}", get(at(face, execution::artifact))),
        ("/executions/{id}/journal", get(at(face, journal::read))),
        ("/executions/{id}/cancel", post(at(face, control::cancel))),
        ("/executions/{id}/pause", post(at(face, control::pause))),
        ("/executions/{id}/resume", post(at(face, control::resume))),
        ("/executions/{id}/retry", post(at(face, control::retry))),
        ("/executions/{id}/fork", post(at(face, control::fork))),
        ("/executions/{id}/events", post(at(face, control::signal))),
        ("/executions/{id}/steps/{step}/resolve", post(at(face, control::resolve))),
    ]
}

fn secrets(face: &Arc<Face>) -> Vec<(&'static str, MethodRouter)> {
    vec![
        ("/secrets", get(at(face, secrets::list)).post(at(face, secrets::set))),
        ("/secrets/{name}", put(at(face, secrets::rotate)).delete(at(face, secrets::delete))),
    ]
}

fn servers(face: &Arc<Face>) -> Vec<(&'static str, MethodRouter)> {
    vec![
        ("/servers", get(at(face, servers::list)).post(at(face, servers::add))),
        ("/servers/{name}", get(at(face, servers::show)).delete(at(face, servers::remove))),
        ("/servers/{name}/restart", post(at(face, servers::restart))),
        ("/servers/{name}/logs", get(at(face, servers::logs))),
    ]
}

fn workspaces(face: &Arc<Face>) -> Vec<(&'static str, MethodRouter)> {
    vec![
        ("/plans", get(at(face, plans::list))),
        ("/plans/{hash}", get(at(face, plans::show)).post(at(face, plans::decide))),
        ("/trails", get(at(face, plans::trail))),
        ("/trails/accept", post(at(face, plans::accept_trail))),
    ]
}

fn schedules(face: &Arc<Face>) -> Vec<(&'static str, MethodRouter)> {
    vec![
        (
            "/schedules",
            get(at(face, schedules::list)).put(at(face, schedules::apply)).post(at(face, schedules::apply)),
        ),
        (
            "/schedules/{id}",
            get(at(face, schedules::show)).put(at(face, schedules::put)).delete(at(face, schedules::delete)),
        ),
        ("/schedules/{id}/pause", post(at(face, schedules::pause))),
        ("/schedules/{id}/resume", post(at(face, schedules::resume))),
        ("/schedules/{id}/trigger", post(at(face, schedules::trigger))),
    ]
}

fn triggers(face: &Arc<Face>) -> Vec<(&'static str, MethodRouter)> {
    vec![
        (
            "/triggers",
            get(at(face, triggers::list)).put(at(face, triggers::apply)).post(at(face, triggers::apply)),
        ),
        (
            "/triggers/{id}",
            get(at(face, triggers::show)).put(at(face, triggers::put)).delete(at(face, triggers::delete)),
        ),
        ("/triggers/{id}/pause", post(at(face, triggers::pause))),
        ("/triggers/{id}/resume", post(at(face, triggers::resume))),
        ("/triggers/{id}/redrive", post(at(face, triggers::redrive))),
        ("/hooks/{hook}", post(at(face, hooks::deliver))),
    ]
}

fn tokens(face: &Arc<Face>) -> Vec<(&'static str, MethodRouter)> {
    vec![
        ("/tokens", get(at(face, tokens::list)).post(at(face, tokens::create))),
        ("/tokens/{id}", delete(at(face, tokens::revoke))),
        ("/tokens/{id}/rotate", post(at(face, tokens::rotate))),
        ("/tokens/{id}/revoke", post(at(face, tokens::revoke))),
    ]
}
