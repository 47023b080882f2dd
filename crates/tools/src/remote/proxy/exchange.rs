//! One request to another server that is no call of a tool: with its questions, its progress and its time limit.

use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::{Context, Halt};
use rmcp::ServiceError;
use rmcp::model::{
    ClientRequest, CompleteRequest, CompleteRequestParams, ErrorCode, GetPromptRequest,
    GetPromptRequestParams, InputResponses, ReadResourceRequest, ReadResourceRequestParams, ServerResult,
};
use serde_json::Value;

use super::super::call::Call;
use super::super::call_hold::CallHold;
use super::super::desk::{Desk, InstanceUse};
use super::super::limits::ROUNDS;
use super::super::questions::{Asker, answers};
use super::super::sent::{Sent, meta};

/// What is asked of the server.
#[derive(Clone)]
pub enum Wanted {
    Resource(ReadResourceRequestParams),
    Prompt(GetPromptRequestParams),
    Completion(CompleteRequestParams),
}

impl Wanted {
    fn request(&self) -> ClientRequest {
        match self.clone() {
            Wanted::Resource(params) => ReadResourceRequest::new(params).into(),
            Wanted::Prompt(params) => GetPromptRequest::new(params).into(),
            Wanted::Completion(params) => CompleteRequest::new(params).into(),
        }
    }

    /// The same request with the answers to the server's questions.
    fn answered(&mut self, heard: InputResponses, state: Option<String>) {
        match self {
            Wanted::Resource(params) => {
                (params.input_responses, params.request_state) = (Some(heard), state);
            }
            Wanted::Prompt(params) => (params.input_responses, params.request_state) = (Some(heard), state),
            Wanted::Completion(_) => {}
        }
    }

    /// Whether an error of the server says that it has no such thing. A resource has nothing wrong but its address.
    fn is_unknown(&self, code: ErrorCode) -> bool {
        match self {
            Wanted::Resource(_) => {
                matches!(code, ErrorCode::RESOURCE_NOT_FOUND | ErrorCode::INVALID_PARAMS)
            }
            Wanted::Prompt(_) | Wanted::Completion(_) => false,
        }
    }
}

/// Asks within the time limit of the server, and gives back its result as it was said.
pub async fn exchange(in_use: InstanceUse, context: &Context, wanted: Wanted) -> Result<Value, Halt> {
    let desk = &in_use.desk().clone();
    let hold = CallHold::new(desk, in_use, context)?;
    let limit_ms = desk.server.timeout_ms.unwrap_or(context.kernel.limits().timeout_ms);
    let cancel = context.cancel.clone();
    tokio::select! {
        biased;
        result = rounds(desk, hold, context, wanted, limit_ms) => result,
        // Dropping the request tells the other server to stop.
        () = cancel.fired() => Err(Fault::new(Code::Cancelled, "stopped on request").into()),
        () = context.kernel.ports().clock.sleep(Duration::from_millis(limit_ms)) => {
            let fault = desk.fault(Code::Timeout, &format!("did not answer within {limit_ms} ms"));
            desk.note_error(&fault.message);
            Err(fault.with("timeoutMs", limit_ms).into())
        }
    }
}

async fn rounds(
    desk: &Arc<Desk>,
    hold: CallHold,
    context: &Context,
    mut wanted: Wanted,
    timeout_ms: u64,
) -> Result<Value, Halt> {
    let line = desk.line().await?;
    // What is only read may be asked for again, and its errors are those of a call.
    let errors = Call {
        desk: desk.clone(),
        hold,
        tool: String::new(),
        repeatable: true,
        insists: Arc::default(),
        timeout_ms,
    };
    for round in 0..ROUNDS {
        let (asker, mut later) = Asker::new(&desk.server.name, context.clone(), true);
        let under_way = line.calls.enter(Arc::new(asker), false);
        let sent = Sent::send(&line, wanted.request(), meta(&line, context, false), None).await;
        let sent = sent.map_err(|error| errors.failed(error))?;
        if let Some((id, token)) = sent.name() {
            under_way.named(id, token);
        }
        let answer = sent.answer().await;
        under_way.answered();
        if let Ok(asks) = later.try_recv() {
            return Err(Halt::Asks(asks));
        }
        match answer {
            Ok(ServerResult::InputRequiredResult(needs)) => {
                let requests = needs.input_requests.unwrap_or_default();
                let heard = answers(&desk.server.name, context, round, requests).await?;
                wanted.answered(heard, needs.request_state);
            }
            Ok(result) => return Ok(serde_json::to_value(result).unwrap_or_default()),
            Err(ServiceError::McpError(error)) if wanted.is_unknown(error.code) => {
                let what = format!("has no such resource: {}", error.message);
                return Err(desk.fault(Code::NotFound, &what).into());
            }
            Err(error) => return Err(errors.failed(error).into()),
        }
    }
    let what = format!("still has questions after {ROUNDS} rounds");
    Err(desk.fault(Code::ResourceExhausted, &what).into())
}
