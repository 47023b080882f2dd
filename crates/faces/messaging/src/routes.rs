//! Every path of this face.

use std::sync::Arc;

use axum::Router;
use axum::routing::{MethodRouter, any, get, post, put};
use orchestr8_kernel::Kernel;

use crate::call::{Face, at};
use crate::settings::Settings;
use crate::{endpoints, inbox};

/// Everything is below it.
pub const PREFIX: &str = "/aacp";

/// The routes of this face.
pub fn router(kernel: Kernel, settings: Settings) -> Router {
    let face = Face::new(kernel, settings);
    let mut router = Router::new();
    for (path, methods) in paths(&face) {
        router =
            router.route(&format!("{PREFIX}{path}"), methods.fallback(at(&face, endpoints::not_this_method)));
    }
    for nothing in ["", "/", "/{*rest}"] {
        router = router.route(&format!("{PREFIX}{nothing}"), any(at(&face, endpoints::nowhere)));
    }
    router
}

fn paths(face: &Arc<Face>) -> Vec<(&'static str, MethodRouter)> {
    vec![
        ("/messages", post(at(face, endpoints::send))),
        ("/messages/{id}", get(at(face, endpoints::message))),
        ("/requests", get(at(face, endpoints::requests))),
        ("/requests/{id}", get(at(face, endpoints::request))),
        ("/pairs", get(at(face, endpoints::pairs))),
        ("/purge", post(at(face, endpoints::purge))),
        ("/agents", get(at(face, endpoints::agents)).post(at(face, endpoints::register))),
        ("/agents/{id}", put(at(face, endpoints::put)).delete(at(face, endpoints::unregister))),
        ("/agents/{id}/heartbeat", post(at(face, endpoints::heartbeat))),
        ("/agents/{id}/inbox", get(at(face, inbox::read))),
        ("/agents/{id}/acks", post(at(face, endpoints::acknowledge))),
        ("/openapi.json", get(at(face, endpoints::openapi))),
    ]
}
