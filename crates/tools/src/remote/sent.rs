//! A request on its way to another server.

use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::trace::TRACEPARENT;
use orchestr8_kernel::Context;
use orchestr8_kernel::ports::Clock;
use rmcp::model::{
    CancelTaskParams, CancelTaskRequest, ClientNotification, ClientRequest, CustomNotification,
    ProgressToken, RequestId, RequestMetaObject, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle};
use rmcp::{Peer, RoleClient, ServiceError};
use serde_json::{Value, json};

use super::call_hold::CallHold;
use super::desk::Line;
use super::lift;
use super::limits::{CANCEL_CONFIRM_MS, GIVEN_UP_MS};
use super::questions::able;

/// The key by which a request of the current revision says which log messages it wants.
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// What goes with every request of a call. `tasks`: this client can look after tasks.
pub fn meta(line: &Line, context: &Context, tasks: bool) -> RequestMetaObject {
    let mut meta = RequestMetaObject::new();
    if line.modern {
        meta.set_client_capabilities(able(context, tasks));
        if let Some(level) = context.log_level() {
            meta.insert(LOG_LEVEL.into(), json!(level));
        }
    }
    if let Some(trace) = context.trace {
        // Over HTTP it becomes a header too.
        meta.insert(TRACEPARENT.into(), trace.to_string().into());
    }
    meta
}

/// A request on its way; dropped before its answer, the other server is told to stop.
pub struct Sent {
    handle: Option<RequestHandle<RoleClient>>,
    /// The answer is to be a task: then it is the task that has to be stopped.
    task: Option<Stop>,
    hold: Option<CallHold>,
    /// Over HTTP in the current revision a closed stream is what cancels, and the library closes it.
    is_closed_by_cancel: bool,
    clock: Arc<dyn Clock>,
}

impl Sent {
    pub async fn send(
        line: &Line,
        request: ClientRequest,
        meta: RequestMetaObject,
        task: Option<Stop>,
    ) -> Result<Self, ServiceError> {
        let options = PeerRequestOptions::no_options().with_meta(meta);
        let handle = line.peer.send_request_with_option(request, options).await?;
        let (is_closed_by_cancel, clock) = (line.modern && line.is_http, line.clock.clone());
        Ok(Self { handle: Some(handle), task, hold: None, is_closed_by_cancel, clock })
    }

    /// Dropped before its answer, it goes on holding this until the server has answered.
    #[must_use]
    pub fn holding(mut self, hold: &CallHold) -> Self {
        self.hold = Some(hold.clone());
        self
    }

    /// What it is called on the wire.
    pub fn name(&self) -> Option<(RequestId, ProgressToken)> {
        self.handle.as_ref().map(|handle| (handle.id.clone(), handle.progress_token.clone()))
    }

    pub async fn answer(mut self) -> Result<ServerResult, ServiceError> {
        let Some(handle) = &mut self.handle else { return Err(ServiceError::TransportClosed) };
        let answer = (&mut handle.rx).await;
        self.handle = None;
        answer.unwrap_or(Err(ServiceError::TransportClosed))
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        let Some(mut handle) = self.handle.take() else { return };
        let (task, clock) = (self.task.take(), self.clock.clone());
        let (hold, is_closed_by_cancel) = (self.hold.take().map(CallHold::outlive), self.is_closed_by_cancel);
        tokio::spawn(async move {
            if let Some(stop) = task {
                // A task is told quickly, and goes on by itself if only the request for it is taken back.
                tokio::select! {
                    biased;
                    answer = &mut handle.rx => {
                        let task = answer.ok().and_then(Result::ok).as_ref().and_then(lift::task).cloned();
                        if let Some(id) = task.as_ref().and_then(|task| task.get("taskId")).and_then(Value::as_str) {
                            stop.stop(id.to_owned()).await;
                        }
                        return;
                    }
                    () = clock.sleep(Duration::from_millis(GIVEN_UP_MS)) => {}
                }
            }
            if !is_closed_by_cancel && !cancel_and_wait(&mut handle, &*clock).await {
                return;
            }
            // The library forgets the request, and tells the server once more.
            let _ = handle.cancel(Some(String::from(REASON))).await;
            drop(hold);
        });
    }
}

/// What a server is told that is to stop.
const REASON: &str = "the result is not wanted any more";

/// Tells the server to stop, and waits until it has answered, or for as long as a server may take that does not say that it has
/// stopped. True if it has not answered.
async fn cancel_and_wait(handle: &mut RequestHandle<RoleClient>, clock: &dyn Clock) -> bool {
    // Not as the library does it, which would forget the request at once and with it when it ends.
    let params = json!({"requestId": handle.id, "reason": REASON});
    let cancelled = CustomNotification::new("notifications/cancelled", Some(params));
    let told = handle.peer.send_notification(ClientNotification::CustomNotification(cancelled)).await;
    if told.is_err() {
        return true;
    }
    tokio::select! {
        biased;
        _ = &mut handle.rx => false,
        () = clock.sleep(Duration::from_millis(CANCEL_CONFIRM_MS)) => true,
    }
}

/// How a task of a server is stopped.
#[derive(Clone)]
pub struct Stop {
    peer: Peer<RoleClient>,
    meta: RequestMetaObject,
    clock: Arc<dyn Clock>,
}

impl Stop {
    pub fn new(line: &Line, context: &Context) -> Self {
        let clock = context.kernel.ports().clock.clone();
        Self { peer: line.peer.clone(), meta: meta(line, context, true), clock }
    }

    /// Tells the server to stop the task. What it makes of that is its own affair.
    pub async fn stop(self, id: String) {
        let request = ClientRequest::CancelTaskRequest(CancelTaskRequest::new(CancelTaskParams::new(id)));
        let options = PeerRequestOptions::no_options().with_meta(self.meta);
        let told = async {
            if let Ok(sent) = self.peer.send_request_with_option(request, options).await {
                let _ = sent.await_response().await;
            }
        };
        tokio::select! {
            biased;
            () = told => {}
            () = self.clock.sleep(Duration::from_millis(GIVEN_UP_MS)) => {}
        }
    }
}

/// A task that runs at the server; dropped before its end, it is stopped there.
pub struct Running {
    pub id: String,
    stop: Option<Stop>,
}

impl Running {
    pub fn new(id: &str, stop: Stop) -> Self {
        Self { id: id.to_owned(), stop: Some(stop) }
    }

    pub fn ended(&mut self) {
        self.stop = None;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            tokio::spawn(stop.stop(std::mem::take(&mut self.id)));
        }
    }
}
