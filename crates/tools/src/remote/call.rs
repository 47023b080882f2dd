//! One call of a tool of another server.

use std::error::Error;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::trace::TRACEPARENT;
use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::action::Work;
use orchestr8_kernel::{Args, Context, Halt, Reply};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ErrorCode, ErrorData, RequestMetaObject,
    ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle};
use rmcp::{RoleClient, ServiceError};
use serde_json::Value;

use super::desk::{Desk, Line};
use super::limits::ROUNDS;
use super::questions::{Asker, able, answers};
use super::{http, result};

/// The work of a tool of another server.
#[derive(Clone)]
pub struct Call {
    pub desk: Arc<Desk>,
    /// Its own name there.
    pub tool: String,
    /// Calling it twice is as good as once: a call that was lost half way may be made again.
    pub repeatable: bool,
}

impl Work for Call {
    fn run(&self, args: Args, context: Context) -> BoxFuture<'static, Result<Reply, Halt>> {
        let call = self.clone();
        async move { call.make(args, context).await.map(Reply::from) }.boxed()
    }
}

impl Call {
    async fn make(self, args: Args, context: Context) -> Result<Output, Halt> {
        let _slot = self.desk.slot()?;
        let cancel = context.cancel.clone();
        tokio::select! {
            biased;
            result = self.rounds(args, context) => result,
            // Dropping the call tells the other server to stop.
            () = cancel.fired() => Err(Fault::new(Code::Cancelled, "stopped on request").into()),
        }
    }

    /// Calls, and calls again with answers for as long as the server has questions first.
    async fn rounds(&self, args: Args, context: Context) -> Result<Output, Halt> {
        let line = self.desk.line()?;
        let mut params = CallToolRequestParams::new(self.tool.clone());
        if let Value::Object(arguments) = args.into_value() {
            params = params.with_arguments(arguments);
        }
        let server = &self.desk.server.name;
        for round in 0..ROUNDS {
            match self.answer(&line, params.clone(), &context).await? {
                ServerResult::CallToolResult(result) => return Ok(result::output(result)),
                ServerResult::InputRequiredResult(needs) => {
                    let requests = needs.input_requests.unwrap_or_default();
                    params.input_responses = Some(answers(server, &context, round, requests).await?);
                    params.request_state = needs.request_state;
                }
                _ => {
                    let what = "gave an answer that is no result of a tool";
                    return Err(self.desk.fault(Code::Unavailable, what).into());
                }
            }
        }
        let what = format!("still has questions after {ROUNDS} rounds");
        Err(self.desk.fault(Code::ResourceExhausted, &what).into())
    }

    async fn answer(
        &self,
        line: &Line,
        params: CallToolRequestParams,
        context: &Context,
    ) -> Result<ServerResult, Halt> {
        let mut meta = RequestMetaObject::new();
        if line.modern {
            meta.set_client_capabilities(able(context));
        }
        if let Some(trace) = context.trace {
            // Over HTTP it becomes a header too.
            meta.insert(TRACEPARENT.into(), trace.to_string().into());
        }
        let options = PeerRequestOptions::no_options().with_meta(meta);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let (asker, mut later) = Asker::new(&self.desk.server.name, context.clone(), self.repeatable);
        let under_way = line.calls.enter(Arc::new(asker));
        let sent = line.peer.send_request_with_option(request, options).await;
        // A connection that is closed takes nothing, so nothing was sent.
        let mut sent = Sent(Some(sent.map_err(|error| self.away(error))?));
        let Some(handle) = &mut sent.0 else { return Err(self.lost("the call was lost").into()) };
        under_way.named(handle.id.clone(), handle.progress_token.clone());
        let answer = (&mut handle.rx).await;
        sent.0 = None;
        under_way.answered();
        if let Ok(asks) = later.try_recv() {
            // What it answered without knowing is of no use.
            return Err(Halt::Asks(asks));
        }
        match answer {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(self.failed(error).into()),
            Err(gone) => Err(self.lost(gone).into()),
        }
    }

    fn failed(&self, error: ServiceError) -> Fault {
        match error {
            ServiceError::McpError(error) => self.refused(&error),
            error => match http::Error::within(&error) {
                Some(cause) if cause.was_never_sent() => self.away(error),
                Some(http::Error::TooLarge { limit }) => {
                    let what =
                        format!("answered with more than {limit} bytes; the call may have taken effect");
                    self.desk.fault(Code::PayloadTooLarge, &what).with("limitBytes", *limit)
                }
                Some(http::Error::Http(_)) | None => self.lost(error),
            },
        }
    }

    /// The server answered with an error of the protocol.
    fn refused(&self, error: &ErrorData) -> Fault {
        let code = match error.code {
            ErrorCode::INVALID_PARAMS => Code::InvalidArgument,
            ErrorCode::METHOD_NOT_FOUND => Code::NotFound,
            _ => Code::Unavailable,
        };
        self.desk
            .fault(code, &format!("answered with an error: {}", error.message))
            .with("remoteCode", error.code.0)
    }

    /// Nothing was sent: it is safe to try again.
    fn away(&self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Fault {
        self.desk.fault(Code::Unavailable, "cannot be reached now").because(cause)
    }

    /// It went away in the middle of the call.
    fn lost(&self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Fault {
        match self.repeatable {
            true => self.away(cause),
            false => self
                .desk
                .fault(
                    Code::OutcomeUnknown,
                    "went away during the call; whether the call took effect is not known",
                )
                .because(cause),
        }
    }
}

/// A request on its way; dropped before its answer, the other server is told to stop.
struct Sent(Option<RequestHandle<RoleClient>>);

impl Drop for Sent {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take() {
            tokio::spawn(handle.cancel(Some(String::from("nobody waits for it any more"))));
        }
    }
}
