//! Work for programs of other people: a step waits in a queue until a worker polls for it, does it, and says how it went.
//!
//! Nothing here is stored. The durable part is the engine: after a crash it calls the step again with the same key, and
//! the task is in its queue again. A lease that lapses gives the task to the next worker, so a task may be done twice;
//! its key tells the worker so.

mod agent;
mod lease;
mod task_queues;

use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::ports::{Clock, Ids};
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::http::status::shorten;
use super::{Answer, Call, Usage};
use crate::engine::undo::{OUTCOME, OUTCOME_UNKNOWN};
use crate::limits::{WORKER_BATCH, WORKER_MESSAGE_BYTES, WORKER_WAIT_MS};
use task_queues::TaskQueues;

pub use agent::Worker;
pub use task_queues::{HeldTask, QueueKey};

/// The queues of this process. Clones share them.
#[derive(Clone)]
pub struct Workers(Arc<Inner>);

struct Inner {
    queues: Mutex<TaskQueues>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
}

/// A task as a worker gets it.
#[derive(Clone)]
pub struct Task {
    pub id: Uuid,
    /// Proves that the task is this worker's. For the worker only: never logged.
    pub lease_token: String,
    pub call: Arc<Call>,
    /// The lease lapses after this long without a heartbeat.
    pub lease_ms: u64,
    /// When it lapses, in milliseconds since 1970, if there is no heartbeat.
    pub deadline_ms: i64,
}

/// What a worker says about a failure.
#[derive(Debug, Clone, Default)]
pub struct Failure {
    pub message: String,
    /// A word of the worker's own, for the reader.
    pub code: Option<String>,
    /// Whether another try may help.
    pub retryable: bool,
}

impl Workers {
    pub fn new(clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Self {
        Self(Arc::new(Inner { queues: Mutex::default(), clock, ids }))
    }

    /// Up to `limit` tasks of a queue; waits for the first one, at most `wait`.
    pub async fn poll(
        &self,
        queue: QueueKey,
        worker: &str,
        wait: Duration,
        limit: usize,
    ) -> Result<Vec<Task>, Fault> {
        check_names(&queue.name, worker)?;
        if !(1..=WORKER_BATCH).contains(&limit) {
            return Err(
                Fault::invalid(format!("`limit` must be from 1 to {WORKER_BATCH}")).with("path", "limit")
            );
        }
        let wait = wait.min(Duration::from_millis(WORKER_WAIT_MS));
        let seat = agent::Seat::take(self, queue.clone())?;
        let over = self.0.clock.sleep(wait);
        tokio::pin!(over);
        loop {
            let tasks = self.hand_out(&queue, limit);
            if !tasks.is_empty() || wait.is_zero() {
                return Ok(tasks);
            }
            tokio::select! {
                biased;
                () = seat.called() => {}
                () = &mut over => return Ok(Vec::new()),
            }
        }
    }

    /// Ends a task with its output. What it gives fires once the output is on record; were this process to die before, the
    /// task would come again.
    pub fn complete(
        &self,
        task: &HeldTask<'_>,
        output: Value,
        usage: Usage,
    ) -> Result<CancellationToken, Fault> {
        let now_us = self.0.clock.elapsed_us();
        self.0.queues.lock().finish(task, now_us, Ok(Answer { output, usage }))
    }

    /// Ends a task whose output is too large to keep, which fails the step. What it gives fires once that is on record.
    pub fn refuse_output(&self, task: &HeldTask<'_>, fault: &Fault) -> Result<CancellationToken, Fault> {
        let now_us = self.0.clock.elapsed_us();
        let fault = fault.clone().with(OUTCOME, OUTCOME_UNKNOWN);
        self.0.queues.lock().finish(task, now_us, Err(fault))
    }

    /// Ends a task with a failure. What it gives fires once that is on record.
    pub fn fail(&self, task: &HeldTask<'_>, failure: Failure) -> Result<CancellationToken, Fault> {
        let code = if failure.retryable { Code::Unavailable } else { Code::AgentFailed };
        let message = shorten(&failure.message, WORKER_MESSAGE_BYTES).into_owned();
        let mut fault =
            Fault::new(code, if message.is_empty() { "the worker gives no reason".into() } else { message });
        if let Some(word) = failure.code {
            fault = fault.with("workerCode", shorten(&word, 128));
        }
        let now_us = self.0.clock.elapsed_us();
        self.0.queues.lock().finish(task, now_us, Err(fault))
    }

    /// Renews the worker's lease. Returns true if the task was cancelled.
    pub fn heartbeat(&self, task: &HeldTask<'_>) -> Result<bool, Fault> {
        let now_us = self.0.clock.elapsed_us();
        self.0.queues.lock().renew(task, now_us)
    }

    /// How many tasks wait for a worker, and how many are with one.
    pub fn depth(&self) -> (usize, usize) {
        self.0.queues.lock().depth()
    }

    fn hand_out(&self, queue: &QueueKey, limit: usize) -> Vec<Task> {
        let (now_us, now_ms) = (self.0.clock.elapsed_us(), self.0.clock.now_ms());
        let token = || self.0.ids.fresh(For::Task).simple().to_string();
        self.0.queues.lock().hand_out(queue, limit, &token, now_us, now_ms)
    }
}

/// Whether workers can poll a queue of this name.
pub fn is_queue(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    (1..=128).contains(&name.len()) && name.chars().all(plain)
}

fn check_names(queue: &str, worker: &str) -> Result<(), Fault> {
    if !is_queue(queue) {
        return Err(Fault::invalid("a queue's name is 1 to 128 of A-Z a-z 0-9 _ . -").with("path", "queue"));
    }
    if worker.is_empty() || worker.len() > 256 || worker.chars().any(char::is_control) {
        return Err(
            Fault::invalid("`workerId` must have 1 to 256 printable characters").with("path", "workerId")
        );
    }
    Ok(())
}
