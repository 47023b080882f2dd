//! `@worker/<queue>`: the agent that hands a step to whoever polls the queue.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ports::ids::For;
use tokio::sync::Notify;
use uuid::Uuid;

use super::super::{Agent, Answer, Call, WorkLocation, until_cancelled};
use super::task_queues::QueueKey;
use super::{Workers, is_queue, lease};
use crate::limits::WORKER_QUEUE_TASKS;

/// Stands for all queues.
pub struct Worker(Workers);

const FAMILY: &str = "@worker/";

impl Worker {
    pub fn new(workers: Workers) -> Self {
        Self(workers)
    }
}

impl Agent for Worker {
    fn id(&self) -> &str {
        FAMILY
    }

    fn about(&self) -> &str {
        "Hands the step to a worker of yours that polls the queue: @worker/<queue>."
    }

    fn location(&self) -> WorkLocation {
        WorkLocation::Remote { limit: WORKER_QUEUE_TASKS, is_per_tenant: true }
    }

    fn answers_to(&self, id: &str) -> bool {
        id.strip_prefix(FAMILY).is_some_and(is_queue)
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, Fault>> {
        let workers = self.0.clone();
        async move {
            let cancel = call.cancel.clone();
            until_cancelled(&cancel, workers.work(call)).await
        }
        .boxed()
    }
}

impl Workers {
    /// Offers the call and watches over its lease until a worker has answered.
    async fn work(&self, call: Call) -> Result<Answer, Fault> {
        let queue = call.agent.strip_prefix(FAMILY).filter(|queue| is_queue(queue));
        let queue = queue.ok_or_else(|| Fault::invalid("an agent of workers is called @worker/<queue>"))?;
        let queue = QueueKey { tenant: call.principal.tenant.clone(), name: queue.into() };
        let lease_ms = lease::length_ms(&call.config)?;
        let id = self.0.ids.fresh(For::Task);
        let mut offered = self.0.queues.lock().offer(id, queue, Arc::new(call), lease_ms)?;
        let _withdrawing = Withdraw { workers: self, id };
        loop {
            let now_us = self.0.clock.elapsed_us();
            let end_us = self.0.queues.lock().lease_end_us(id, now_us);
            let lapse = async {
                match end_us {
                    Some(end_us) => {
                        self.0.clock.sleep(Duration::from_micros(end_us.saturating_sub(now_us))).await
                    }
                    None => offered.leased.notified().await,
                }
            };
            tokio::select! {
                biased;
                answer = &mut offered.answer => {
                    let lost = || Fault::new(Code::OutcomeUnknown, "the task was lost; whether a worker did it is not known");
                    return answer.unwrap_or_else(|_| Err(lost()));
                }
                () = lapse => {}
            }
        }
    }
}

/// Takes the task out of the queue when the call ends in whatever way.
struct Withdraw<'w> {
    workers: &'w Workers,
    id: Uuid,
}

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        self.workers.0.queues.lock().withdraw(self.id);
    }
}

/// A place at a queue for one poll.
pub struct Seat {
    workers: Workers,
    queue: QueueKey,
    bell: Arc<Notify>,
}

impl Seat {
    pub fn take(workers: &Workers, queue: QueueKey) -> Result<Self, Fault> {
        let bell = workers.0.queues.lock().enter_poll(&queue)?;
        Ok(Self { workers: workers.clone(), queue, bell })
    }

    pub async fn called(&self) {
        self.bell.notified().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.workers.0.queues.lock().leave_poll(&self.queue);
    }
}
