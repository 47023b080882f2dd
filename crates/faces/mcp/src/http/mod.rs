//! MCP over Streamable HTTP: one endpoint, `/mcp`, for both eras.
//!
//! ```text
//! POST   one message. Legacy: within a session, which `initialize` begins. Modern: it stands for itself.
//! GET    what the server says unasked, or the rest of a stream that broke off (legacy).
//! DELETE ends a session (legacy).
//! ```
//!
//! Beside it `/sse`, for clients of revision 2024-11-05.
//!
//! An answer that comes without anything said before it is one JSON body; as soon as something else is said on the way, or
//! nothing for a while, the answer is an event stream.

mod answer;
mod body;
mod event;
mod get;
mod headers;
mod mirror;
mod post;
mod refusal;
mod session;
mod sessions;
mod sse;
mod stream;
mod streams;
pub mod tables;
mod voice;
mod who;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::{any, get, post};
use bytes::Bytes;
use http::{HeaderMap, Method};
use orchestr8_contract::id::CorrelationId;
use orchestr8_kernel::ports::ids::For;
use tokio_util::sync::CancellationToken;

use crate::face::{Eras, Face, Nowhere, Outlet};
use crate::wire;

pub use sse::SSE_PATH;
pub use voice::voice;
pub use who::AdminToken;

use sessions::{Quota, Sessions};
use sse::SseSessions;
use stream::Budget;
use who::Gate;

/// Where clients find us.
pub const PATH: &str = "/mcp";

/// Room for the largest arguments we take (1 MiB) as base64 with their envelope.
pub const BODY_LIMIT_BYTES: usize = 4 * 1024 * 1024;

/// In each such span a body must come on, or end.
pub const BODY_TIMEOUT_MS: u64 = 10_000;

/// Sessions at once in all. When one more comes, the tenant with the most sessions makes room.
pub const SESSIONS: usize = 4096;

/// Sessions of one principal; when one more comes, the one of its own that was unused for longest ends.
pub const SESSIONS_PER_PRINCIPAL: usize = 256;

/// A working day: a client that slept over lunch finds its session again.
pub const SESSION_IDLE_MS: u64 = 8 * 60 * 60 * 1000;

/// Shorter than the half minute after which many proxies give up on a silent connection.
pub const KEEP_ALIVE_MS: u64 = 15_000;

/// How long a client waits before it comes back to a stream that was closed.
pub const RETRY_MS: u64 = 1000;

/// What an installation sets for this transport.
#[derive(Clone)]
pub struct Settings {
    pub body_limit_bytes: usize,
    pub body_timeout_ms: u64,
    pub max_sessions: usize,
    pub max_sessions_per_principal: usize,
    pub session_idle_ms: u64,
    pub keep_alive_ms: u64,
    pub retry_ms: u64,
    /// Whoever sends it as `X-Admin-Token` has the role `admin`.
    pub admin_token: Option<AdminToken>,
    /// Fires when the server stops, so that streams which never end by themselves end.
    pub shutdown: CancellationToken,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            body_limit_bytes: BODY_LIMIT_BYTES,
            body_timeout_ms: BODY_TIMEOUT_MS,
            max_sessions: SESSIONS,
            max_sessions_per_principal: SESSIONS_PER_PRINCIPAL,
            session_idle_ms: SESSION_IDLE_MS,
            keep_alive_ms: KEEP_ALIVE_MS,
            retry_ms: RETRY_MS,
            admin_token: None,
            shutdown: CancellationToken::new(),
        }
    }
}

/// The routes of this face.
pub fn router(face: Face, settings: Settings) -> Router {
    routes(Endpoint::new(face, settings))
}

fn routes(endpoint: Arc<Endpoint>) -> Router {
    let (opening, messages) = (endpoint.clone(), endpoint.clone());
    Router::new()
        .route(PATH, any(move |request: Request| endpoint.clone().answer(request)))
        .route(SSE_PATH, get(async move |request: Request| opening.clone().open_sse(&request.into_parts().0)))
        .route(sse::MESSAGES_PATH, post(move |request: Request| messages.clone().take_sse(request)))
}

/// What all requests share.
struct Endpoint {
    face: Face,
    eras: Eras,
    sessions: Arc<Sessions>,
    sse: Arc<SseSessions>,
    budget: Arc<Budget>,
    gate: Gate,
    nowhere: Arc<dyn Outlet>,
    settings: Settings,
}

impl Endpoint {
    fn new(face: Face, settings: Settings) -> Arc<Self> {
        let budget = Arc::new(Budget::default());
        let sessions =
            Sessions::new(face.clone(), budget.clone(), Quota::of(&settings), settings.session_idle_ms);
        let gate = Gate::new(settings.admin_token.clone());
        let eras = face.settings().eras;
        Arc::new(Self {
            face,
            eras,
            sessions,
            sse: Arc::default(),
            budget,
            gate,
            nowhere: Arc::new(Nowhere),
            settings,
        })
    }

    async fn answer(self: Arc<Self>, request: Request) -> Response {
        match *request.method() {
            Method::POST => self.post(request).await,
            Method::GET => Box::pin(self.get(request.into_parts().0)).await,
            Method::DELETE => Box::pin(self.delete(request.into_parts().0)).await,
            _ if self.eras.legacy => self.refuse_method("GET, POST, DELETE", request.headers()),
            _ => self.refuse_method("POST", request.headers()),
        }
    }

    /// Refuses a request that belongs to no conversation.
    fn refuse(&self, error: &wire::Error, text: Option<&Bytes>, headers: &HeaderMap) -> Response {
        let fresh = || CorrelationId::from_uuid(self.face.kernel().ports().ids.fresh(For::Connection));
        answer::refuse(error, text, &headers::correlation(headers).unwrap_or_else(fresh))
    }

    fn refuse_method(&self, methods: &'static str, headers: &HeaderMap) -> Response {
        answer::allowing(self.refuse(&refusal::method(), None, headers), methods)
    }

    fn keep_alive(&self) -> Duration {
        Duration::from_millis(self.settings.keep_alive_ms)
    }
}
