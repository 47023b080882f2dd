//! What is ready begins: with a slot where this process does the work (WF-19.3), with a place with others where they do.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::error::StoredFault;
use orchestr8_contract::{Code, Fault};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::actor::{Actor, Occupied, Running};
use super::remote_limits::RemoteKey;
use super::{limit_overrides, run_task};
use crate::agents::WorkLocation;
use crate::engine::event::{Event, Task};
use crate::engine::scope;

impl Actor {
    /// Begins what is ready, in the order of the definition; what finds no room asks for it and keeps nothing else waiting.
    pub(super) fn start_ready(&mut self) {
        if self.hub.0.closing.is_cancelled() {
            return;
        }
        let max = self.state.workflow().policies.max_concurrency.unwrap_or(usize::MAX);
        while self.asked.len() < max
            && !self.is_batch_full()
            && let Some(task) = self.ready.pop_first()
        {
            self.asked.insert(task);
            self.occupy(task);
        }
        if self.state.has_begun() {
            self.spare.clear();
        }
    }

    /// Begins a step if there is room for it, and waits for room if not.
    fn occupy(&mut self, task: Task) {
        // What a tree runs takes turns as one execution.
        let root = self.seed.tree_root();
        let agent = scope::agent(&self.state, task);
        let location = agent.and_then(|agent| self.hub.0.agents.find(agent)).map(|agent| agent.location());
        let who = (&self.seed.tenant, &root.workflow, root.num);
        let waiting: BoxFuture<'static, Option<Occupied>> = match (location, agent) {
            (Some(WorkLocation::Remote { limit, is_per_tenant }), Some(agent)) => {
                let tenant = is_per_tenant.then(|| self.seed.tenant.clone());
                let key = RemoteKey { agent: agent.clone(), tenant };
                let limit = limit_overrides::remote_of(&self.hub, &key, limit);
                self.remote.insert(task);
                match self.hub.0.remote_limits.take(key, limit, who) {
                    Ok(place) => return self.start(task, Occupied::Remote(place)),
                    Err(receiver) => wait_for(receiver, Occupied::Remote),
                }
            }
            // An agent that there is not fails at once.
            (Some(WorkLocation::ThisProcess | WorkLocation::Remote { .. }) | None, _) => {
                match self.spare.pop().map_or_else(|| self.hub.0.scheduler.take(who), Ok) {
                    Ok(slot) => return self.start(task, Occupied::Slot(slot)),
                    Err(receiver) => wait_for(receiver, Occupied::Slot),
                }
            }
        };
        let refusal = self.refusal(task, agent);
        // Nothing is left out of a rollback or of the handlers because others are busy.
        let is_patient = task.undo || self.state.workflow().steps[task.step].section.is_closing();
        let wait_ms = self.state.workflow().policies.queue_wait_ms;
        let wait_ms = wait_ms.unwrap_or(self.hub.0.settings.queue_wait_ms);
        let expired = self.hub.0.ports.clock.sleep(Duration::from_millis(wait_ms));
        self.grants.push(Box::pin(async move {
            tokio::select! {
                biased;
                Some(occupied) = waiting => (task, Ok(occupied)),
                () = expired, if !is_patient => (task, Err(refusal)),
            }
        }));
    }

    /// For a step that waits too long.
    fn refusal(&self, task: Task, agent: Option<&Arc<str>>) -> Fault {
        match agent.filter(|_| self.remote.contains(&task)) {
            Some(agent) => {
                let text = format!("as many steps as '{agent}' may have are with it, and none ended in time");
                Fault::new(Code::Timeout, text).with("reason", "remote_limit").with("agentId", &**agent)
            }
            None => Fault::new(Code::Timeout, "no slot became free in time").with("reason", "queue_wait"),
        }
    }

    pub(super) fn granted(&mut self, task: Task, granted: Result<Occupied, Fault>) {
        match granted {
            Ok(occupied) => self.start(task, occupied),
            Err(fault) => {
                let fault = fault.with("attempts", 0);
                let event = Event::Failed { task, attempts: 0, fault: StoredFault::from(&fault) };
                self.queue.push_back((event, None));
            }
        }
    }

    pub(super) fn start(&mut self, task: Task, occupied: Occupied) {
        if !self.may_resolve(task) {
            self.needs_turn = true;
            return self.held.push((task, occupied));
        }
        // After a crash an attempt keeps its number, so that what it calls can recognise it.
        let attempt = self.state.work.get(&task).map_or(1, |work| work.attempts.max(1));
        let (cancel, recorded) = (CancellationToken::new(), CancellationToken::new());
        let running = Running { _occupied: occupied, cancel: cancel.clone(), recorded: recorded.clone() };
        self.running.insert(task, running);
        self.take_in(Event::Started { task, attempt }, None);
        let (prepared, fuel) = run_task::prepare(self, task, attempt, cancel, recorded);
        self.fuel += fuel;
        match prepared {
            run_task::Prepared::Done { ended, bytes_read } => {
                self.commit_bytes += bytes_read;
                self.queue.push_back((ended.into_event(), None));
            }
            run_task::Prepared::Start(start) => self.starting.push(start),
        }
    }

    /// Counts as begun while it runs steps here or waits to: one that only waits for others keeps no other from beginning.
    pub(super) fn count_begun(&mut self) {
        if self.asked.len() == self.remote.len() && self.spare.is_empty() {
            self.counted = None;
        } else if self.counted.is_none() {
            self.counted = Some(self.hub.0.scheduler.count_begun(&self.seed.tenant));
        }
    }
}

fn wait_for<T: Send + 'static>(
    receiver: oneshot::Receiver<T>,
    occupied: fn(T) -> Occupied,
) -> BoxFuture<'static, Option<Occupied>> {
    receiver.map(move |received| received.ok().map(occupied)).boxed()
}
