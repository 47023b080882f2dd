//! The tasks and the queues they wait in. Everything here is quick and behind one lock.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use orchestr8_contract::{Code, Fault};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::super::{Answer, Call};
use super::Task;
use super::lease::{self, Lease};
use crate::limits::{ENDED_TASKS_KEPT, WORKER_POLLS, WORKER_TASKS};

#[derive(Default)]
pub struct Desk {
    queues: HashMap<Arc<str>, Queue>,
    tasks: HashMap<Uuid, Entry>,
    polls: usize,
    ended: Ended,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Uuid>,
    /// Calls one of those who poll.
    bell: Arc<Notify>,
    polls: usize,
}

struct Entry {
    queue: Arc<str>,
    call: Arc<Call>,
    lease_ms: u64,
    lease: Option<Lease>,
    /// Rings when a lease is given: whoever made the task then watches over its end.
    leased: Arc<Notify>,
    answer: oneshot::Sender<Result<Answer, Fault>>,
}

/// A task on its way: its answer, and the bell that rings when a worker has taken it.
pub struct Offered {
    pub answer: oneshot::Receiver<Result<Answer, Fault>>,
    pub leased: Arc<Notify>,
}

impl Desk {
    /// Puts a task at the end of its queue.
    pub fn offer(&mut self, id: Uuid, queue: &str, call: Arc<Call>, lease_ms: u64) -> Result<Offered, Fault> {
        if self.tasks.len() >= WORKER_TASKS {
            return Err(Fault::new(
                Code::ResourceExhausted,
                format!("{WORKER_TASKS} tasks wait for workers or are with them"),
            ));
        }
        let (sender, answer) = oneshot::channel();
        let leased = Arc::new(Notify::new());
        let queue: Arc<str> = queue.into();
        let entry = Entry {
            queue: queue.clone(),
            call,
            lease_ms,
            lease: None,
            leased: leased.clone(),
            answer: sender,
        };
        self.tasks.insert(id, entry);
        let queue = self.queues.entry(queue).or_default();
        queue.waiting.push_back(id);
        queue.bell.notify_one();
        Ok(Offered { answer, leased })
    }

    /// Gives the oldest tasks of a queue to a worker.
    pub fn hand_out(
        &mut self,
        queue: &str,
        limit: usize,
        token: &dyn Fn() -> String,
        now_us: u64,
        now_ms: i64,
    ) -> Vec<Task> {
        let Some(queue) = self.queues.get_mut(queue) else { return Vec::new() };
        let mut tasks = Vec::new();
        while tasks.len() < limit
            && let Some(id) = queue.waiting.pop_front()
        {
            let Some(entry) = self.tasks.get_mut(&id) else { continue };
            let token = token();
            entry.lease = Some(Lease::new(token.clone(), now_us, entry.lease_ms));
            entry.leased.notify_one();
            entry.call.heartbeat.beat();
            tasks.push(Task {
                id,
                lease_token: token,
                call: entry.call.clone(),
                lease_ms: entry.lease_ms,
                deadline_ms: now_ms.saturating_add_unsigned(entry.lease_ms),
            });
        }
        if !queue.waiting.is_empty() {
            // One ring may stand for several tasks: pass it on.
            queue.bell.notify_one();
        }
        tasks
    }

    /// Ends a task for whoever holds its lease. What it gives fires once that is on record.
    pub fn finish(
        &mut self,
        id: Uuid,
        token: &str,
        now_us: u64,
        answer: Result<Answer, Fault>,
    ) -> Result<CancellationToken, Fault> {
        self.check(id, token, now_us)?;
        let entry = self.tasks.remove(&id).ok_or_else(|| lease::unknown(id))?;
        entry.answer.send(answer).map_err(|_| lease::unknown(id))?;
        Ok(entry.call.recorded.clone())
    }

    /// Lengthens a lease; true when the task is not wanted any more.
    pub fn beat(&mut self, id: Uuid, token: &str, now_us: u64) -> Result<bool, Fault> {
        if self.ended.was_held_with(id, token) {
            return Ok(true);
        }
        self.check(id, token, now_us)?;
        if let Some(entry) = self.tasks.get_mut(&id)
            && let Some(lease) = &mut entry.lease
        {
            lease.ends_us = lease::ends_us(now_us, entry.lease_ms);
            entry.call.heartbeat.beat();
        }
        Ok(false)
    }

    /// When the lease of a task ends; none while it waits in its queue. A lease that has lapsed is taken back here.
    pub fn lease_end_us(&mut self, id: Uuid, now_us: u64) -> Option<u64> {
        let lease = self.tasks.get(&id)?.lease.as_ref()?;
        if !lease.has_lapsed(now_us) {
            return Some(lease.ends_us);
        }
        self.take_back(id);
        None
    }

    /// Forgets a task nobody waits for; its worker can still learn that it was cancelled.
    pub fn withdraw(&mut self, id: Uuid) {
        let Some(entry) = self.tasks.remove(&id) else { return };
        match entry.lease {
            Some(lease) => self.ended.remember(id, lease.into_token()),
            None => {
                if let Some(queue) = self.queues.get_mut(&entry.queue) {
                    queue.waiting.retain(|waiting| *waiting != id);
                }
            }
        }
        self.tidy(&entry.queue);
    }

    /// Lets somebody wait at a queue.
    pub fn sit(&mut self, queue: &Arc<str>) -> Result<Arc<Notify>, Fault> {
        if self.polls >= WORKER_POLLS {
            return Err(Fault::new(
                Code::ResourceExhausted,
                format!("{WORKER_POLLS} workers wait for tasks"),
            ));
        }
        self.polls += 1;
        let queue = self.queues.entry(queue.clone()).or_default();
        queue.polls += 1;
        Ok(queue.bell.clone())
    }

    pub fn rise(&mut self, queue: &Arc<str>) {
        self.polls -= 1;
        if let Some(queue) = self.queues.get_mut(queue) {
            queue.polls -= 1;
        }
        self.tidy(queue);
    }

    pub fn depth(&self) -> (usize, usize) {
        let waiting = self.queues.values().map(|queue| queue.waiting.len()).sum();
        (waiting, self.tasks.len() - waiting)
    }

    fn check(&mut self, id: Uuid, token: &str, now_us: u64) -> Result<(), Fault> {
        let entry = self.tasks.get(&id).ok_or_else(|| lease::unknown(id))?;
        let Some(lease) = entry.lease.as_ref().filter(|lease| lease.is_for(token)) else {
            return Err(lease::lost(id));
        };
        if lease.has_lapsed(now_us) {
            self.take_back(id);
            return Err(lease::lost(id));
        }
        Ok(())
    }

    /// Back to the head of its queue: it has waited before.
    fn take_back(&mut self, id: Uuid) {
        let Some(entry) = self.tasks.get_mut(&id) else { return };
        entry.lease = None;
        let queue = self.queues.entry(entry.queue.clone()).or_default();
        queue.waiting.push_front(id);
        queue.bell.notify_one();
    }

    /// Drops a queue that nobody uses.
    fn tidy(&mut self, queue: &Arc<str>) {
        if self.queues.get(queue).is_some_and(|queue| queue.polls == 0 && queue.waiting.is_empty()) {
            self.queues.remove(queue);
        }
    }
}

/// The last tasks that were withdrawn from a worker, with the tokens that prove whose they were.
#[derive(Default)]
struct Ended(VecDeque<(Uuid, String)>);

impl Ended {
    fn remember(&mut self, id: Uuid, token: String) {
        if self.0.len() >= ENDED_TASKS_KEPT {
            self.0.pop_front();
        }
        self.0.push_back((id, token));
    }

    fn was_held_with(&self, id: Uuid, token: &str) -> bool {
        self.0.iter().any(|(ended, held)| *ended == id && lease::is_same(held, token))
    }
}
