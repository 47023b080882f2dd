//! One request on its way to one action: who asks, under which ids, with what.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use orchestr8_contract::id::{CorrelationId, Tenant};
use orchestr8_contract::{Code, Fault, Output};
use orchestr8_edge::ask::{self, Query, Wrong};
use orchestr8_edge::{Arrival, Intake, Params};
use orchestr8_kernel::{Args, Halt, Kernel, Principal, Submission, Transport, Why};
use serde_json::{Map, Value};

use crate::answer;
use crate::failure::Failure;
use crate::settings::{ID_BYTES, Settings};

/// What all requests share.
pub(crate) struct Face {
    pub kernel: Kernel,
    pub settings: Settings,
    local: Arc<Principal>,
}

/// What an endpoint gives: a response, or why there is none.
pub(crate) type Outcome = Result<Response, Failure>;

pub(crate) struct Call {
    pub face: Arc<Face>,
    pub parts: Parts,
    pub correlation: CorrelationId,
    principal: Arc<Principal>,
    body: Bytes,
    params: Params,
}

impl Face {
    pub fn new(kernel: Kernel, settings: Settings) -> Arc<Self> {
        Arc::new(Self { kernel, settings, local: Arc::new(Principal::local()) })
    }

    /// Runs an action. One that waits stops waiting when nobody waits for it any more, or when the server stops.
    pub async fn run(&self, submission: Submission) -> Result<Map<String, Value>, Failure> {
        let _waiting = submission.cancel.on_drop(Why::Disconnect);
        let settled = tokio::select! {
            biased;
            settled = self.kernel.submit(submission) => settled,
            () = self.settings.shutdown.cancelled() => {
                return Err(Fault::new(Code::ShuttingDown, "the server is stopping; ask again once it is back").into());
            }
        };
        match settled.result {
            Ok(Output::Json { value: Value::Object(value) }) => Ok(value),
            Ok(
                Output::Json { .. } | Output::Blocks { .. } | Output::Resource { .. } | Output::Prompt { .. },
            )
            | Err(Halt::Asks(_)) => {
                Err(Fault::internal("the action gave something that is no object").into())
            }
            Err(Halt::Fault(fault)) => Err(fault.into()),
        }
    }

    async fn answer<F, R>(self: Arc<Self>, request: Request, endpoint: F) -> Response
    where
        F: Fn(Call) -> R,
        R: Future<Output = Outcome>,
    {
        let (call, correlation) = Call::open(self, request).await;
        let outcome = match call {
            Ok(call) => endpoint(call).await,
            Err(failure) => Err(failure),
        };
        let mut response = outcome.unwrap_or_else(|failure| failure.into_response(&correlation));
        answer::correlate(response.headers_mut(), &correlation);
        response
    }
}

impl Call {
    /// Takes a request apart and its body in. The correlation id is known whatever else is wrong.
    async fn open(face: Arc<Face>, request: Request) -> (Result<Self, Failure>, CorrelationId) {
        let (limit_bytes, timeout_ms) = (face.settings.body_limit_bytes, face.settings.body_timeout_ms);
        let intake = Intake { limit_bytes, timeout_ms };
        let (arrival, correlation) = Arrival::take(request, &*face.kernel.ports().ids, intake).await;
        let call = arrival.map_err(Failure::from).and_then(|arrival| {
            let principal = arrival.principal()?.unwrap_or_else(|| face.local.clone());
            let Arrival { parts, correlation, body, params } = arrival;
            Ok(Self { face, parts, correlation, principal, body, params })
        });
        (call, correlation)
    }

    pub fn tenant(&self) -> &Tenant {
        &self.principal.tenant
    }

    /// The id in the path. What cannot be an id names nothing.
    pub fn id(&self) -> Result<&str, Failure> {
        self.params.id("id", ID_BYTES).ok_or_else(Failure::not_found)
    }

    pub fn query(&self, known: &[&str]) -> Result<Query, Failure> {
        Ok(Query::read(&self.parts.uri, known)?)
    }

    /// A body of JSON that must be there.
    pub fn read(&self, known: &[&str]) -> Result<Map<String, Value>, Failure> {
        let media =
            self.parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let media = media.split(';').next().unwrap_or_default().trim_ascii();
        if !media.eq_ignore_ascii_case("application/json") {
            let wrong = Wrong::new("Content-Type", "send JSON, and say so: Content-Type: application/json");
            return Err(Failure::from(wrong).status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        }
        Ok(ask::object(&self.body, known)?.members)
    }

    /// A body of JSON that may be left out.
    pub fn read_if_any(&self, known: &[&str]) -> Result<Map<String, Value>, Failure> {
        if self.body.is_empty() { Ok(Map::new()) } else { self.read(known) }
    }

    pub async fn ask(
        &self,
        action: &'static str,
        args: Map<String, Value>,
    ) -> Result<Map<String, Value>, Failure> {
        self.face.run(self.submission(action, args)).await
    }

    pub fn submission(&self, action: &'static str, args: Map<String, Value>) -> Submission {
        let args = Args::new(args);
        let mut submission = Submission::new(action, args, self.principal.clone(), self.correlation.clone());
        submission.transport = Transport::Http;
        submission.source = orchestr8_edge::source("messaging", &self.parts.extensions);
        submission.trace = orchestr8_edge::trace(&self.parts.headers);
        submission
    }
}

/// An endpoint as an axum route takes it.
pub(crate) fn at<F, R>(
    face: &Arc<Face>,
    endpoint: F,
) -> impl Fn(Request) -> Pin<Box<dyn Future<Output = Response> + Send>> + Clone + Send + Sync + 'static
where
    F: Fn(Call) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Outcome> + Send + 'static,
{
    let face = face.clone();
    move |request| Box::pin(face.clone().answer(request, endpoint.clone()))
}
