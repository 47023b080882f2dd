//! Messages to executions: stored first, then handed to the actor, which is woken if there is none.

use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::error::StoredFault;
use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::log;
use orchestr8_kernel::ports::store::Batch;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::error::SendError;

use super::actor::{Actor, Message};
use super::line::Line;
use super::tables::InboxMessage;
use super::{Hub, fault, load, tables};
use crate::agents::Usage;
use crate::engine::event::{Event, Status, Task};
use crate::engine::state::{Phase, State, Undone, Work};
use crate::engine::{undo, view};
use crate::keyed_events::{self, tables::EventAddress};
use crate::limits;

/// A message that is durable, or that only has to be looked for.
pub enum Posted {
    /// There is something in the inbox.
    Wake { num: i64 },
    /// A child that must stop; it is found by its id.
    Cancel { execution: Arc<str>, event: Event },
    /// A child that must undo what it did for this execution.
    Undo { execution: Arc<str>, task: Task, reply_to: i64 },
    /// An execution waits for an event of this key, which may have come.
    Expect { name: String, key: String },
    /// The time of a task has come.
    Due { num: i64, task: Option<Task> },
}

impl Posted {
    /// Tells a child to stop.
    pub fn stop(execution: &Arc<str>) -> Self {
        let reason = String::from("the execution it belongs to stops");
        let event = Event::CancelAsked { reason, graceful: true, force: false };
        Self::Cancel { execution: execution.clone(), event }
    }

    /// Stops the rollback of a child.
    pub fn stop_by_force(execution: &Arc<str>) -> Self {
        let reason = String::from("the rollback it belongs to was stopped by force");
        let event = Event::CancelAsked { reason, graceful: false, force: true };
        Self::Cancel { execution: execution.clone(), event }
    }
}

/// What a child's end means for the step that waits for it.
pub fn child_ended(state: &State, task: Task) -> Event {
    let execution = &state.identity.execution;
    if state.status == Status::Completed {
        let mut outputs = Map::new();
        for (place, step) in state.workflow().steps.iter().enumerate() {
            if let Some(output) = state.output(place) {
                outputs.insert(step.id.to_string(), output.clone());
            }
        }
        return Event::Succeeded { task, attempts: 1, output: Value::Object(outputs), usage: state.usage };
    }
    let cause = state.errors.first().map(|problem| &problem.fault);
    let code = match undo::is_cancelled(state) {
        true => Code::Cancelled,
        false => cause.map_or(Code::AgentFailed, |fault| fault.code),
    };
    let why = cause.map_or(state.status.as_str(), |fault| &fault.message);
    let category = cause.filter(|fault| fault.code == code).map_or(code.category(), StoredFault::category);
    let mut fault = Fault::new(code, format!("the child execution {execution} did not complete: {why}"))
        .in_category(category)
        .with("childExecutionId", &**execution);
    if state.usage != Usage::default() {
        fault = fault.with(Usage::DETAIL, json!(state.usage));
    }
    Event::Failed { task, attempts: 1, fault: StoredFault::from(&fault) }
}

/// What a child has undone, for the undo of the step that waits for it.
pub fn child_undone(state: &State, task: Task) -> Event {
    let execution = &state.identity.execution;
    let (count, left) = (undo::count_done(state), undo::left(state));
    if left.is_empty() {
        let output = json!({Undone::COUNT: count, "childExecutionId": execution});
        return Event::Succeeded { task, attempts: 1, output, usage: Usage::default() };
    }
    let list: Vec<Value> = left.iter().take(limits::UNDO_LISTED).map(|one| view::unit(state, one)).collect();
    let message = format!(
        "{} of {} could not be undone in the child execution {execution}",
        left.len(),
        left.len() + count
    );
    let fault = Fault::new(Code::AgentFailed, message)
        .with("childExecutionId", &**execution)
        .with(Undone::COUNT, count)
        .with("notUndone", list);
    Event::Failed { task, attempts: 1, fault: StoredFault::from(&fault) }
}

impl Hub {
    /// Adds a message to a batch; deliver it once the batch is durable.
    pub fn post_to(&self, num: i64, event: &Event, batch: &mut Batch) -> Result<Posted, Fault> {
        let event = super::record::record(event)?;
        let (id, at_ms) = (self.0.fresh_message(), self.0.now_ms());
        let message = InboxMessage { id, execution: num, at_ms, event: &event };
        batch.then(tables::inbox_put(&message, message.seal(self.row_seal())?));
        Ok(Posted::Wake { num })
    }

    /// Delivers in the background what is durable.
    pub fn deliver_later(&self, tenant: Tenant, posted: Posted) {
        let hub = self.clone();
        tokio::spawn(async move {
            if let Err(fault) = hub.deliver(tenant, posted).await {
                hub.0.log().error(
                    "a message to an execution waits in its inbox",
                    json!({"error": log::error(&fault)}),
                );
            }
        });
    }

    async fn deliver(&self, tenant: Tenant, posted: Posted) -> Result<(), Fault> {
        match posted {
            Posted::Cancel { execution, event } => {
                let Some(row) = load::find(self, tenant.as_str(), &execution).await? else { return Ok(()) };
                let mut batch = Batch::new();
                let posted = self.post_to(row.num, &event, &mut batch)?;
                self.0.ports.store.commit(batch).await.map_err(fault)?;
                Box::pin(self.deliver(tenant, posted)).await
            }
            Posted::Undo { execution, task, reply_to } => {
                let (num, event) = match load::find(self, tenant.as_str(), &execution).await? {
                    Some(row) => (row.num, Event::UndoAsked),
                    None => (reply_to, child_gone(&execution, task)),
                };
                let mut batch = Batch::new();
                let posted = self.post_to(num, &event, &mut batch)?;
                self.0.ports.store.commit(batch).await.map_err(fault)?;
                Box::pin(self.deliver(tenant, posted)).await
            }
            Posted::Wake { num } => self.wake(num).await,
            Posted::Expect { name, key } => {
                let address = EventAddress { tenant: tenant.as_str(), name: &name, key: &key };
                Box::pin(keyed_events::match_kept(self, address)).await
            }
            Posted::Due { num, task } => self.wake_due(num, task).await,
        }
    }

    /// Tells an execution to look into its inbox; one that has no actor gets one.
    pub(super) async fn wake(&self, num: i64) -> Result<(), Fault> {
        self.tell(num, Message::Look).await
    }

    /// The time of a task has come.
    pub(super) async fn wake_due(&self, num: i64, task: Option<Task>) -> Result<(), Fault> {
        self.tell(num, Message::Event(Event::Due { task })).await
    }

    /// Does something for one of many executions, and after a while lets it go on by itself: reading a large one waits for the turn of
    /// its tenant, and the others do not wait for that.
    pub(super) async fn for_a_while(
        &self,
        work: impl Future<Output = Result<(), Fault>> + Send + 'static,
    ) -> Result<(), Fault> {
        const WHILE: Duration = Duration::from_millis(100);
        let hub = self.clone();
        let mut working = tokio::spawn(async move {
            let done = work.await;
            if let Err(fault) = &done {
                hub.0.log().error("a message waits for its execution", json!({"error": log::error(fault)}));
            }
            done
        });
        tokio::select! {
            done = &mut working => done.unwrap_or_else(|error| Err(Fault::internal("a task was lost").because(error))),
            () = self.0.ports.clock.sleep(WHILE) => Ok(()),
        }
    }

    async fn tell(&self, num: i64, mut message: Message) -> Result<(), Fault> {
        loop {
            let live = match self.0.claim(num) {
                Ok(line) => return self.revive(line, num, Some(message)).await,
                Err(live) => live,
            };
            match live.sender.send(message).await {
                Ok(()) => return Ok(()),
                Err(SendError(_)) if self.0.stop.is_cancelled() => {
                    return Err(Fault::new(Code::ShuttingDown, "the execution goes on after a restart"));
                }
                // It retired in this very moment: the next look finds it gone.
                Err(SendError(back)) => message = back,
            }
            tokio::task::yield_now().await;
        }
    }

    /// Gives an execution that has no actor one again, with everything its inbox holds and with what it is told.
    pub(super) async fn revive(&self, line: Line, num: i64, told: Option<Message>) -> Result<(), Fault> {
        let load::Loaded { seed, state, tail, .. } = load::by_number(self, num).await?;
        let is_under_way = state.has_begun() && !state.status.is_final();
        if is_under_way && !self.0.gates.holds(num) {
            // Earlier versions recorded no places.
            self.0.gates.hold(num, self.0.gates.enter_again(&seed));
        }
        let lost: Vec<Task> = state.interrupted().collect();
        let mut actor = Actor::new(line, self.clone(), seed, state, tail);
        if is_under_way {
            actor.resume();
        }
        for task in lost {
            actor.give(Event::Lost { task });
        }
        if let Some(message) = told {
            actor.hear(message);
        }
        actor.look().await?;
        // What has ended meanwhile need not be told anything.
        let has_ended = |task: Task| actor.queue.iter().any(|(event, _)| event.task() == Some(task));
        for posted in unsaid(&actor.state, num, has_ended) {
            self.deliver_later(actor.seed.tenant.clone(), posted);
        }
        actor.take_up();
        actor.spawn_unrecorded();
        Ok(())
    }
}

/// What children were to be told, to stop or to undo what they did; the process may have died before that.
fn unsaid(state: &State, num: i64, has_ended: impl Fn(Task) -> bool) -> Vec<Posted> {
    let one = |(task, work): (&Task, &Work)| match &work.phase {
        Phase::Child { execution, .. } if task.undo => {
            Some(Posted::Undo { execution: execution.clone(), task: *task, reply_to: num })
        }
        Phase::Child { execution, stopping: true } => Some(Posted::stop(execution)),
        Phase::Child { stopping: false, .. }
        | Phase::Ready
        | Phase::Running
        | Phase::Retrying { .. }
        | Phase::Beginning
        | Phase::Waiting { .. }
        | Phase::Asking { .. }
        | Phase::Resting { .. }
        | Phase::Unknown => None,
    };
    state.work.iter().filter(|(task, _)| !has_ended(**task)).filter_map(one).collect()
}

fn child_gone(execution: &str, task: Task) -> Event {
    let fault = Fault::new(
        Code::NotFound,
        format!("the child execution {execution} is gone, so nothing of it can be undone"),
    )
    .with("childExecutionId", execution);
    Event::Failed { task, attempts: 1, fault: StoredFault::from(&fault) }
}
