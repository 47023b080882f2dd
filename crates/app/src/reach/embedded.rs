//! The same routes as a server's, called in this process on the embedded store.

use axum::Router;
use axum::body::{Body, to_bytes};
use futures::StreamExt;
use http::{Method, Request, Response};
use orchestr8_contract::Code;
use orchestr8_kernel::Principal;
use orchestr8_kernel::log::Level;
use serde_json::Value;
use tower::ServiceExt;

use super::stream::Events;
use super::{ANSWER_BYTES, Headers, Reply, read_body, refusal, too_large};
use crate::failure::Failure;
use crate::runtime::{Purpose, Runtime, WhenHeld};
use crate::settings::Settings;

/// What a command does to the store when there is no server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// It looks at records or writes some; no execution goes on.
    Record,
    /// It makes an execution go on; others that were left unfinished are not touched.
    Execute,
    /// It looks at sessions or changes some; nobody is spoken to.
    Sessions,
    /// It speaks with an agent, who may call any tool.
    Converse,
}

impl Intent {
    /// The store must be ours: executions in the memory of a second process would be lost with it.
    fn purpose(self) -> Purpose {
        let at_least = match self {
            Intent::Record | Intent::Execute | Intent::Sessions => Level::Warn,
            // What goes wrong in a conversation is told in it; the log would only be in its way.
            Intent::Converse => Level::Error,
        };
        let starts_servers = match self {
            // What only looks at records starts no programs.
            Intent::Record | Intent::Sessions => false,
            Intent::Execute | Intent::Converse => true,
        };
        Purpose { when_held: WhenHeld::Refuse, at_least, lasting: false, starts_servers }
    }
}

pub struct Embedded {
    runtime: Runtime,
    router: Router,
}

impl Embedded {
    /// Needs a tokio runtime around it.
    pub async fn build(settings: Settings, intent: Intent) -> Result<Self, Failure> {
        let runtime = Runtime::build(settings, intent.purpose())?;
        runtime.unlock().await?;
        match intent {
            Intent::Record => {}
            Intent::Execute | Intent::Converse => {
                // Steps and agents may call tools of other servers.
                runtime.remote.started().await;
                runtime.begin_alone().await?;
            }
            Intent::Sessions => runtime.sessions.start_alone().await?,
        }
        let router = runtime.router().merge(crate::runtime::knowledge::own_router(&runtime).await?);
        Ok(Self { runtime, router })
    }

    /// Lets an execution go on that was left unfinished.
    pub async fn take_up(&self, execution: &str) -> Result<(), Failure> {
        let tenant = Principal::local().tenant;
        self.runtime.workflows.take_up(&tenant, execution).await.map_err(Failure::from)
    }

    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: Headers<'_>,
        body: Option<&Value>,
    ) -> Result<Reply, Failure> {
        let response = self.call(method, path, headers, body).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = to_bytes(response.into_body(), ANSWER_BYTES).await.map_err(|_| too_large())?;
        Ok(Reply { status, headers, body: read_body(&bytes)? })
    }

    pub async fn events(&self, path: &str, headers: Headers<'_>) -> Result<Events, Failure> {
        let response = self.call(Method::GET, path, headers, None).await?;
        let status = response.status();
        if !status.is_success() {
            let bytes = to_bytes(response.into_body(), ANSWER_BYTES).await.map_err(|_| too_large())?;
            return Err(refusal(status, &read_body(&bytes)?));
        }
        let pieces = response.into_body().into_data_stream();
        Ok(Events::new(pieces.map(|piece| {
            piece
                .map_err(|error| Failure::new(Code::Internal, format!("the stream of events broke: {error}")))
        })))
    }

    /// The face of sessions, as a server has it.
    pub fn sessions(&self) -> orchestr8_sessions_face::Face {
        self.runtime.sessions_face()
    }

    pub async fn close(self) {
        self.runtime.close().await;
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        headers: Headers<'_>,
        body: Option<&Value>,
    ) -> Result<Response<Body>, Failure> {
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = match body {
            Some(body) => {
                request = request.header("content-type", "application/json");
                Body::from(body.to_string())
            }
            None => Body::empty(),
        };
        let request = request.body(body).map_err(|error| {
            Failure::new(Code::InvalidArgument, format!("this cannot be asked: {error}"))
                .hinting("a name, id or key has letters that do not belong there")
        })?;
        match self.router.clone().oneshot(request).await {
            Ok(response) => Ok(response),
            Err(never) => match never {},
        }
    }
}
