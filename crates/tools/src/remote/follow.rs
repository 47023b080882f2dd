//! A call that became a task of the other server: looked after until it ends, and stopped there when it is stopped here.

use std::time::Duration;

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::{Context, Halt};
use rmcp::ServiceError;
use rmcp::model::{
    ClientRequest, CustomRequest, GetTaskParams, GetTaskRequest, InputRequests, ServerResult,
    UpdateTaskParams, UpdateTaskRequest,
};
use serde_json::{Value, json};

use super::call::Call;
use super::desk::Line;
use super::lift::{self, RELATED_TASK};
use super::limits::{POLL_FAILURES, QUESTIONS, ROUNDS};
use super::questions::answers;
use super::sent::{Running, Sent, Stop, meta};
use super::task::{Seen, Status};

/// One task, as it is looked after.
pub struct Following<'a> {
    pub call: &'a Call,
    pub line: &'a Line,
    pub context: &'a Context,
    /// The keys of questions that were answered. A server may show them for a while.
    answered: Vec<String>,
    rounds: usize,
}

/// What a look has shown.
enum Next {
    Wait,
    Ended(Box<Result<ServerResult, Halt>>),
    /// Its result is to be asked for, which may take as long as the task does.
    Fetch,
}

impl<'a> Following<'a> {
    pub fn new(call: &'a Call, line: &'a Line, context: &'a Context) -> Self {
        Self { call, line, context, answered: Vec::new(), rounds: 0 }
    }

    /// Waits for the end of the task that a call was answered with. How long that may take is the call's own limit.
    pub async fn until_end(mut self, task: &Value) -> Result<ServerResult, Halt> {
        let mut seen = self.read(task)?;
        let mut running = Running::new(&seen.id, Stop::new(self.line, self.context));
        let (mut failures, mut told) = (0, None);
        loop {
            if seen.message.is_some() && seen.message != told {
                self.context.status(seen.message.as_deref().unwrap_or_default());
                told = seen.message;
            }
            match self.judge(&running.id, seen.status).await? {
                Next::Wait => {}
                Next::Ended(result) => {
                    running.ended();
                    return (*result).map(own);
                }
                Next::Fetch => {
                    let params = json!({"taskId": running.id});
                    let fetch =
                        ClientRequest::CustomRequest(CustomRequest::new("tasks/result", Some(params)));
                    let fetched = self.ask(fetch).await;
                    running.ended();
                    return fetched.map(own).map_err(|error| self.call.failed(error).into());
                }
            }
            self.context.kernel.ports().clock.sleep(Duration::from_millis(seen.poll_ms)).await;
            seen.status = Status::Working;
            seen.message = None;
            match self.look(&running.id).await {
                Ok(Ok(next)) => (failures, seen) = (0, next),
                Ok(Err(fault)) => return Err(fault.into()),
                Err(_) if failures < POLL_FAILURES && !self.line.peer.is_transport_closed() => failures += 1,
                Err(error) => return Err(self.call.lost(error).into()),
            }
        }
    }

    /// The outer error is one of the way there, after which another look may succeed.
    async fn look(&self, id: &str) -> Result<Result<Seen, Fault>, ServiceError> {
        let look = ClientRequest::GetTaskRequest(GetTaskRequest::new(GetTaskParams::new(id)));
        match self.ask(look).await {
            Ok(answer) => Ok(self.read(lift::task(&answer).unwrap_or(&Value::Null))),
            Err(ServiceError::McpError(error)) => {
                let what =
                    format!("does not tell any more what becomes of the task of the call: {}", error.message);
                Ok(Err(self.call.unsure(&what).with("remoteCode", error.code.0)))
            }
            Err(error) => Err(error),
        }
    }

    fn read(&self, task: &Value) -> Result<Seen, Fault> {
        Seen::read(task).map_err(|what| self.call.unsure(what))
    }

    async fn ask(&self, request: ClientRequest) -> Result<ServerResult, ServiceError> {
        let meta = meta(self.line, self.context, true);
        Sent::send(self.line, request, meta, None).await?.answer().await
    }

    async fn judge(&mut self, id: &str, status: Status) -> Result<Next, Halt> {
        let modern = self.line.modern;
        let ended = |result| Next::Ended(Box::new(result));
        Ok(match status {
            Status::Working => Next::Wait,
            Status::InputRequired(questions) if modern => {
                self.answer(id, questions).await?;
                Next::Wait
            }
            // In the older revision whoever is ready for questions asks for the result.
            Status::InputRequired(_) => Next::Fetch,
            Status::Completed(None) | Status::Failed(None) if !modern => Next::Fetch,
            Status::Completed(Some(result)) => ended(Ok(ServerResult::CallToolResult(*result))),
            Status::Completed(None) => {
                ended(Err(self.call.unsure("has done the task of the call and tells no result").into()))
            }
            Status::Failed(Some(error)) => ended(Err(self.call.refused(&error).into())),
            Status::Failed(None) => {
                let what = "says that the task of the call has failed, and not why";
                ended(Err(self.call.desk.fault(Code::Unavailable, what).into()))
            }
            Status::Cancelled => {
                ended(Err(self.call.unsure("has cancelled the task of the call by itself").into()))
            }
        })
    }

    /// Asks what the task asks, and brings it the answers.
    async fn answer(&mut self, id: &str, mut questions: InputRequests) -> Result<(), Halt> {
        questions.retain(|key, _| !self.answered.contains(key));
        if questions.is_empty() {
            return Ok(());
        }
        if self.answered.len() + questions.len() > QUESTIONS {
            let what = format!("asks more than {QUESTIONS} questions in one task");
            return Err(self.call.desk.fault(Code::ResourceExhausted, &what).into());
        }
        self.answered.extend(questions.keys().cloned());
        let server = &self.call.desk.server.name;
        // Rounds before the call became a task have lower numbers.
        let round = ROUNDS + self.rounds;
        self.rounds += 1;
        let heard = match answers(server, self.context, round, questions).await {
            Err(Halt::Asks(_)) if !self.call.repeatable => {
                let what = "asks something in a task; the client answers by calling again, and this call may not be repeated";
                return Err(self.call.desk.fault(Code::CapabilityMissing, what).into());
            }
            heard => heard?,
        };
        let update = UpdateTaskRequest::new(UpdateTaskParams::new(id, heard));
        let told = self.ask(ClientRequest::UpdateTaskRequest(update)).await;
        told.map(drop).map_err(|error| self.call.failed(error).into())
    }
}

/// The result without the name of the task it is from: nobody here knows that task, and ours may have another.
fn own(mut result: ServerResult) -> ServerResult {
    if let ServerResult::CallToolResult(result) = &mut result
        && let Some(meta) = &mut result.meta
    {
        meta.remove(RELATED_TASK);
    }
    result
}
