//! Whether the process lives, whether it is ready, what it is; and JSON answers where no route is.

use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::Refusal;
use crate::refusal::JSON;

const LIVES: &str = "/healthz";
const READY: &str = "/readyz";
const VERSION: &str = "/version";

/// What the health routes ask and tell.
#[derive(Clone)]
pub struct Health {
    /// What `/version` says: name, version, and whatever else the program wants known.
    pub about: Value,
    /// Why the program is not ready; empty if it is. The words are public: probes show no credentials.
    pub unready: Arc<dyn Fn() -> Vec<String> + Send + Sync>,
    /// The signal given to `serve`: once it is set, the program is no longer ready.
    pub shutdown: CancellationToken,
}

/// Probes of an orchestrator cannot show a token, so these two ask for none.
pub(crate) fn is_open(path: &str) -> bool {
    path == LIVES || path == READY
}

/// The health routes beside `faces`, and 404 and 405 in our envelope. Call it last, with every route in place.
pub fn mount(faces: Router, health: Health) -> Router {
    faces
        .merge(routes(health))
        .fallback(async || Refusal::not_found())
        .method_not_allowed_fallback(async || Refusal::method())
}

fn routes(health: Health) -> Router {
    let Health { about, unready, shutdown } = health;
    let about = about.to_string();
    Router::new()
        .route(LIVES, get(async || answer(StatusCode::OK, json!({"status": "ok"}).to_string())))
        .route(READY, get(async move || ready(&*unready, &shutdown)))
        .route(VERSION, get(async move || answer(StatusCode::OK, about)))
}

fn ready(unready: &(dyn Fn() -> Vec<String> + Send + Sync), shutdown: &CancellationToken) -> Response {
    let reasons = if shutdown.is_cancelled() { vec!["draining".to_owned()] } else { unready() };
    if reasons.is_empty() {
        return answer(StatusCode::OK, json!({"status": "ready"}).to_string());
    }
    let body = json!({"status": "unready", "reasons": reasons});
    answer(StatusCode::SERVICE_UNAVAILABLE, body.to_string())
}

/// Health is of the moment: nobody may keep it.
fn answer(status: StatusCode, body: String) -> Response {
    let headers = [(CONTENT_TYPE, JSON), (CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (status, headers, body).into_response()
}
