//! Every path of this face.

use std::sync::Arc;

use axum::Router;
use axum::routing::{MethodRouter, delete, get, post};
use orchestr8_kernel::Kernel;

use crate::endpoints::{actions, admin, artifacts, documents, program, publish, replies, requests, webhooks};
use crate::face::{Face, at};
use crate::openapi;
use crate::settings::Settings;

/// Below these paths this face checks credentials itself; the edge lets them through.
pub const OWN_CREDENTIALS: [&str; 8] = [
    "/mcp/actions",
    "/mcp/capabilities",
    "/mcp/heartbeat",
    "/mcp/requests",
    "/documents",
    "/artifacts",
    "/webhooks",
    "/a2a",
];

/// Below this path whoever runs the server is at home; the edge asks for credentials where it asks for any.
pub(crate) const ADMIN: &str = "/admin";

/// The routes of this face.
pub fn router(kernel: Kernel, settings: Settings) -> Router {
    of(&Face::new(kernel, settings))
}

pub(crate) fn of(face: &Arc<Face>) -> Router {
    let mut router = Router::new();
    for (path, methods) in all(face) {
        router = router.route(path, methods.fallback(at(face, program::not_this_method)));
    }
    router
}

/// Every path with what it takes.
pub(crate) fn all(face: &Arc<Face>) -> impl Iterator<Item = (&'static str, MethodRouter)> {
    envelopes(face).into_iter().chain(people(face)).chain(operators(face))
}

/// For agents.
fn envelopes(face: &Arc<Face>) -> Vec<(&'static str, MethodRouter)> {
    vec![
        ("/mcp/actions", post(at(face, actions::any))),
        ("/mcp/actions/{action}", post(at(face, actions::named))),
        ("/mcp/capabilities", get(at(face, program::capabilities))),
        ("/mcp/heartbeat", get(at(face, program::peers)).post(at(face, program::heartbeat))),
        ("/mcp/requests/{id}", get(at(face, requests::show))),
        ("/mcp/requests/{id}/cancel", post(at(face, requests::cancel))),
        ("/artifacts", post(at(face, artifacts::upload))),
        ("/artifacts/{kind}/{tenant}/{name}", get(at(face, artifacts::download))),
        ("/a2a/publish", post(at(face, publish::publish))),
        ("/a2a/replies/{inbox}", get(at(face, replies::read))),
        ("/metrics", get(at(face, program::metrics))),
        (openapi::PATH, get(at(face, program::describe))),
    ]
}

/// For whoever runs the server.
fn operators(face: &Arc<Face>) -> Vec<(&'static str, MethodRouter)> {
    vec![
        ("/admin/queues", get(at(face, admin::dead::queues))),
        ("/admin/dead-letters", get(at(face, admin::dead::list))),
        (
            "/admin/dead-letters/{seq}",
            get(at(face, admin::dead::show)).delete(at(face, admin::dead::discard)),
        ),
        ("/admin/dead-letters/{seq}/redrive", post(at(face, admin::dead::redrive))),
        ("/admin/keys", get(at(face, admin::keys::list)).post(at(face, admin::keys::add))),
        ("/admin/keys/{kid}/rotate", post(at(face, admin::keys::rotate))),
        ("/admin/keys/{kid}/revoke", post(at(face, admin::keys::revoke))),
        ("/admin/slo", get(at(face, admin::slo::show))),
    ]
}

/// For people.
fn people(face: &Arc<Face>) -> Vec<(&'static str, MethodRouter)> {
    vec![
        ("/documents", get(at(face, documents::list)).post(at(face, documents::create))),
        ("/documents/batch", post(at(face, documents::batch))),
        ("/documents/query", post(at(face, documents::query))),
        ("/documents/verify", post(at(face, documents::verify))),
        ("/documents/reindex", post(at(face, documents::reindex))),
        (
            "/documents/{id}",
            get(at(face, documents::show))
                .patch(at(face, documents::edit))
                .delete(at(face, documents::delete)),
        ),
        ("/documents/{id}/children", get(at(face, documents::children))),
        ("/documents/{id}/history", get(at(face, documents::history))),
        ("/documents/{id}/move", post(at(face, documents::relocate))),
        ("/documents/{id}/restore", post(at(face, documents::restore))),
        ("/documents/{id}/link", post(at(face, artifacts::link))),
        ("/webhooks", get(at(face, webhooks::list)).post(at(face, webhooks::add))),
        ("/webhooks/{id}", delete(at(face, webhooks::remove))),
    ]
}
