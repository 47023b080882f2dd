//! One call of a tool of another server.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use orchestr8_contract::{Code, FailureCategory, Fault, Output};
use orchestr8_kernel::resilience::retry::RETRY_AFTER_MS;
use orchestr8_kernel::{Args, Context, Halt};
use rmcp::ServiceError;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, CustomRequest, ErrorCode, ErrorData, ServerResult,
    TASKS_EXTENSION_ID,
};
use serde_json::{Value, json};

use super::call_hold::CallHold;
use super::desk::{Desk, InstanceTool, Line};
use super::follow::Following;
use super::http_refusal::HttpRefusal;
use super::lift::{self, Support};
use super::limits::{MESSAGE_BYTES, ROUNDS, TASK_KEPT_MS};
use super::pins::Standing;
use super::questions::{Asker, answers};
use super::sent::{Sent, Stop, meta};
use super::{http, oversized, result};

/// One call of a tool by an instance of its server.
pub struct Call {
    pub desk: Arc<Desk>,
    pub hold: CallHold,
    /// Its own name there.
    pub tool: String,
    /// Calling it twice is as good as once: a call that was lost half way may be made again.
    pub repeatable: bool,
    /// In the current revision a tool says nothing about tasks until it is called: this one was, and takes no other calls.
    pub insists: Arc<AtomicBool>,
    /// How long the call may take.
    pub timeout_ms: u64,
}

impl Call {
    pub async fn make(self, args: Args, context: Context) -> Result<Output, Halt> {
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
        let line = self.desk.line().await?;
        let support = self.check_tool()?;
        let mut params = CallToolRequestParams::new(self.tool.clone());
        if let Value::Object(arguments) = args.into_value() {
            params = params.with_arguments(arguments);
        }
        let server = &self.desk.server.name;
        for round in 0..ROUNDS {
            match self.answer(&line, support, params.clone(), &context).await? {
                ServerResult::CallToolResult(result) => return Ok(result::output(server, result)),
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

    /// Whether this instance has the tool as it was accepted, and what it says about tasks.
    fn check_tool(&self) -> Result<Support, Fault> {
        let Some(known) = self.desk.tool(&self.tool) else {
            return Err(self.desk.unreached("has not listed its tools yet"));
        };
        match known {
            Some(InstanceTool { standing: Standing::Accepted, support }) => Ok(support),
            Some(InstanceTool { standing: Standing::Quarantined, .. }) => {
                Err(quarantined(&self.desk.server.name, &self.tool))
            }
            Some(InstanceTool { standing: Standing::Refused(_), .. }) | None => {
                let what = format!("does not offer the tool '{}' now", self.tool);
                let fault = self.desk.fault(Code::NotFound, &what).in_category(FailureCategory::Business);
                Err(fault.with("tool", self.tool.as_str()))
            }
        }
    }

    async fn answer(
        &self,
        line: &Line,
        support: Support,
        params: CallToolRequestParams,
        context: &Context,
    ) -> Result<ServerResult, Halt> {
        let as_task = match support {
            Support::Required => true,
            Support::Optional => context.in_task(),
            Support::Forbidden => line.modern && self.insists.load(Ordering::Relaxed),
        };
        match self.once(line, params.clone(), context, as_task).await? {
            Err(ServiceError::McpError(error)) if line.modern && !as_task && insists(&error) => {
                self.insists.store(true, Ordering::Relaxed);
                self.once(line, params, context, true).await?
            }
            answer => answer,
        }
        .map_err(|error| self.failed(error).into())
    }

    /// The inner error is what the server answered with, or that it did not.
    async fn once(
        &self,
        line: &Line,
        params: CallToolRequestParams,
        context: &Context,
        as_task: bool,
    ) -> Result<Result<ServerResult, ServiceError>, Halt> {
        let (request, stop) = match as_task && !line.modern {
            true => (self.task_request(&params), Some(Stop::new(line, context))),
            false => (ClientRequest::CallToolRequest(CallToolRequest::new(params)), None),
        };
        let (asker, mut later) = Asker::new(&self.desk.server.name, context.clone(), self.repeatable);
        let under_way = line.calls.enter(Arc::new(asker), stop.is_some());
        let sent = Sent::send(line, request, meta(line, context, as_task), stop).await;
        // A connection that is closed takes nothing, so nothing was sent.
        let sent = sent.map_err(|error| self.away(error))?.holding(&self.hold);
        if let Some((id, token)) = sent.name() {
            under_way.named(id, token);
        }
        let mut answer = sent.answer().await;
        let task = answer.as_ref().ok().and_then(lift::task).cloned();
        under_way.became(task.as_ref().and_then(|task| task.get("taskId")).and_then(Value::as_str));
        let mut halt = None;
        if let Some(task) = task {
            match Following::new(self, line, context).until_end(&task).await {
                Ok(result) => answer = Ok(result),
                Err(why) => halt = Some(why),
            }
        }
        under_way.answered();
        match (later.try_recv(), halt) {
            // What it answered without knowing is of no use.
            (Ok(asks), _) => Err(Halt::Asks(asks)),
            (Err(_), Some(halt)) => Err(halt),
            (Err(_), None) => Ok(answer),
        }
    }

    /// A call that is to become a task, in the older revision, where the client says so.
    fn task_request(&self, params: &CallToolRequestParams) -> ClientRequest {
        let ttl_ms = self.timeout_ms.saturating_add(TASK_KEPT_MS);
        let mut said = json!({"name": self.tool, "task": {"ttl": ttl_ms}});
        if let Some(arguments) = &params.arguments {
            said["arguments"] = Value::Object(arguments.clone());
        }
        ClientRequest::CustomRequest(CustomRequest::new("tools/call", Some(said)))
    }

    /// The fault for a call that got no result. The server's status shows it as its last error.
    pub fn failed(&self, error: ServiceError) -> Fault {
        let fault = self.fault_of(error);
        self.desk.note_error(&fault.message);
        fault
    }

    fn fault_of(&self, error: ServiceError) -> Fault {
        match error {
            ServiceError::McpError(error) if error.code.0 == oversized::CODE => {
                let limit = error.data.as_ref().and_then(|data| data.get(oversized::LIMIT)?.as_u64());
                self.too_large(limit.unwrap_or(MESSAGE_BYTES as u64))
            }
            ServiceError::McpError(error) => self.refused(&error),
            error if http::Error::is_about_session(&error) => self.away(error),
            error => match http::Error::within(&error) {
                Some(cause) if cause.was_never_sent() => self.away(error),
                Some(http::Error::Refused(refusal)) => self.refused_over_http(refusal),
                Some(http::Error::TooLarge { limit }) => self.too_large(*limit as u64),
                Some(http::Error::Http(_)) | None => self.lost(error),
            },
        }
    }

    fn too_large(&self, limit: u64) -> Fault {
        let what = format!("answered with more than {limit} bytes; the call may have taken effect");
        self.desk
            .fault(Code::PayloadTooLarge, &what)
            // It is one of this tool and of what it was asked for.
            .in_category(FailureCategory::Business)
            .with("limitBytes", limit)
    }

    /// The server answered with an error of the protocol.
    pub fn refused(&self, error: &ErrorData) -> Fault {
        let code = match error.code {
            ErrorCode::INVALID_PARAMS => Code::InvalidArgument,
            ErrorCode::METHOD_NOT_FOUND => Code::NotFound,
            _ => Code::Unavailable,
        };
        self.desk
            .fault(code, &format!("answered with an error: {}", error.message))
            // It is one of this tool: the server is well, and so are its other tools.
            .in_category(FailureCategory::Business)
            .with("remoteCode", error.code.0)
    }

    /// The server answered with a status instead of a message.
    fn refused_over_http(&self, refusal: &HttpRefusal) -> Fault {
        let what = refusal.to_string();
        let fault = match refusal.code() {
            Some(code) => self.desk.fault(code, &what),
            None => self.unsure(&what),
        };
        let fault = fault.with("status", refusal.status.as_u16());
        match refusal.retry_after_ms {
            Some(wait_ms) => fault.with(RETRY_AFTER_MS, wait_ms),
            None => fault,
        }
    }

    /// Nothing was sent: it is safe to try again.
    fn away(&self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Fault {
        self.desk.request_check();
        self.desk.unreached("cannot be reached now").because(cause)
    }

    /// It went away in the middle of the call.
    pub fn lost(&self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Fault {
        self.desk.request_check();
        self.unsure("went away during the call").because(cause)
    }

    /// Something went wrong at the server after the call had begun.
    pub fn unsure(&self, what: &str) -> Fault {
        match self.repeatable {
            true => self.desk.fault(Code::Unavailable, what),
            false => self
                .desk
                .fault(Code::OutcomeUnknown, &format!("{what}; whether the call took effect is not known")),
        }
    }
}

/// The fault of a tool in quarantine.
pub fn quarantined(server: &str, tool: &str) -> Fault {
    let what =
        format!("the definition of '{tool}' of the MCP server '{server}' has changed since it was accepted");
    Fault::new(Code::Quarantined, what).with("server", server).with("tool", tool)
}

/// Whether a server of the current revision refuses a call because its client has not declared tasks.
fn insists(error: &ErrorData) -> bool {
    let required = error.data.as_ref().and_then(|data| data.pointer("/requiredCapabilities/extensions"));
    error.code == ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
        && required.is_some_and(|extensions| extensions.get(TASKS_EXTENSION_ID).is_some())
}
