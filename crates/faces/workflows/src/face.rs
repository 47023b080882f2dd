//! What all requests share.

use std::future::Future;
use std::sync::{Arc, OnceLock};

use axum::extract::Request;
use axum::response::Response;
use orchestr8_contract::{Code, Fault};
use orchestr8_edge::Endpoint;
use orchestr8_kernel::ports::clock;
use orchestr8_kernel::{Kernel, Principal, Submission, Why};

use crate::answer;
use crate::call::{Call, Given, given};
use crate::failure::Failure;
use crate::settings::Settings;

pub(crate) struct Face {
    pub kernel: Kernel,
    pub settings: Settings,
    /// When the program began to serve, as health tells it.
    pub started_at: String,
    /// The tag of the description of this API, made when it is first asked for.
    pub openapi_tag: OnceLock<String>,
    pub local: Arc<Principal>,
}

impl Face {
    pub fn new(kernel: Kernel, settings: Settings) -> Arc<Self> {
        let started_at = clock::iso(kernel.ports().clock.now_ms());
        let local = Arc::new(Principal::local());
        Arc::new(Self { kernel, settings, started_at, openapi_tag: OnceLock::new(), local })
    }

    pub fn now_ms(&self) -> i64 {
        self.kernel.ports().clock.now_ms()
    }

    /// Runs an action that waits. It stops waiting when nobody waits for it any more, or when the server stops.
    pub async fn wait(&self, submission: Submission) -> Result<Given, Failure> {
        let _waiting = submission.cancel.on_drop(Why::Disconnect);
        tokio::select! {
            biased;
            settled = self.kernel.submit(submission) => given(settled),
            () = self.settings.shutdown.cancelled() => {
                Err(Fault::new(Code::ShuttingDown, "the server is stopping; ask again once it is back").into())
            }
        }
    }

    /// Answers one request: every answer names its correlation id, every failure is the contract's error body.
    pub async fn answer<E: Endpoint<Call, Failure>>(
        self: Arc<Self>,
        request: Request,
        endpoint: E,
    ) -> Response {
        let (call, correlation) = Call::open(self.clone(), request).await;
        let outcome = match call {
            Ok(call) => endpoint.run(call).await,
            Err(failure) => Err(failure),
        };
        match outcome {
            Ok(mut response) => {
                answer::correlate(response.headers_mut(), &correlation);
                response
            }
            Err(failure) => failure.into_response(&correlation, self.now_ms()),
        }
    }
}

/// An endpoint as an axum route takes it.
pub(crate) fn at<E: Endpoint<Call, Failure>>(
    face: &Arc<Face>,
    endpoint: E,
) -> impl Fn(Request) -> std::pin::Pin<Box<dyn Future<Output = Response> + Send>> + Clone + Send + Sync + 'static
{
    let face = face.clone();
    move |request| Box::pin(face.clone().answer(request, endpoint.clone()))
}
