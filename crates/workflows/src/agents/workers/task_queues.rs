//! The task queues of worker agents, keyed by tenant and name: no tenant sees or takes the tasks of another. Everything here
//! is quick and behind one lock.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::super::{Answer, Call};
use super::Task;
use super::lease::{self, Lease};
use crate::limits::{ENDED_TASKS_KEPT, WORKER_POLLS, WORKER_TASKS};

/// A queue of one tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct QueueKey {
    pub tenant: Tenant,
    pub name: Arc<str>,
}

#[derive(Default)]
pub struct TaskQueues {
    queues: HashMap<QueueKey, Queue>,
    tasks: HashMap<Uuid, Entry>,
    usage: HashMap<Tenant, TenantUsage>,
    ended: Ended,
}

/// What one tenant holds; limits are per tenant, so that one does not shut out another.
#[derive(Default)]
struct TenantUsage {
    tasks: usize,
    polls: usize,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Uuid>,
    /// Calls one of those who poll.
    bell: Arc<Notify>,
    polls: usize,
}

struct Entry {
    queue: QueueKey,
    call: Arc<Call>,
    lease_ms: u64,
    lease: Option<Lease>,
    /// Rings when a lease is given: whoever made the task then watches over its end.
    leased: Arc<Notify>,
    answer: oneshot::Sender<Result<Answer, Fault>>,
}

/// What a worker shows to end a task or to renew its lease.
pub struct HeldTask<'a> {
    pub tenant: &'a Tenant,
    pub id: Uuid,
    pub token: &'a str,
}

/// A task on its way: its answer, and the bell that rings when a worker has taken it.
pub struct Offered {
    pub answer: oneshot::Receiver<Result<Answer, Fault>>,
    pub leased: Arc<Notify>,
}

impl TaskQueues {
    /// Puts a task at the end of its queue.
    pub fn offer(
        &mut self,
        id: Uuid,
        queue: QueueKey,
        call: Arc<Call>,
        lease_ms: u64,
    ) -> Result<Offered, Fault> {
        let usage = self.usage.entry(queue.tenant.clone()).or_default();
        if usage.tasks >= WORKER_TASKS {
            return Err(Fault::new(
                Code::ResourceExhausted,
                format!("{WORKER_TASKS} tasks of this tenant wait for workers or are with them"),
            ));
        }
        usage.tasks += 1;
        let (sender, answer) = oneshot::channel();
        let leased = Arc::new(Notify::new());
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
        queue: &QueueKey,
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

    /// Ends a task for the holder of its lease. The returned token fires once that is on record.
    pub fn finish(
        &mut self,
        held: &HeldTask<'_>,
        now_us: u64,
        answer: Result<Answer, Fault>,
    ) -> Result<CancellationToken, Fault> {
        let id = held.id;
        self.check(held, now_us)?;
        let entry = self.remove(id).ok_or_else(|| lease::unknown(id))?;
        entry.answer.send(answer).map_err(|_| lease::unknown(id))?;
        Ok(entry.call.recorded.clone())
    }

    /// Renews a lease. Returns true if the task was cancelled.
    pub fn renew(&mut self, held: &HeldTask<'_>, now_us: u64) -> Result<bool, Fault> {
        if self.ended.was_held(held) {
            return Ok(true);
        }
        self.check(held, now_us)?;
        if let Some(entry) = self.tasks.get_mut(&held.id)
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
        let Some(entry) = self.remove(id) else { return };
        match entry.lease {
            Some(lease) => self.ended.remember(id, entry.queue.tenant.clone(), lease.into_token()),
            None => {
                if let Some(queue) = self.queues.get_mut(&entry.queue) {
                    queue.waiting.retain(|waiting| *waiting != id);
                }
            }
        }
        self.tidy(&entry.queue);
    }

    /// Registers a poll that waits at a queue.
    pub fn enter_poll(&mut self, queue: &QueueKey) -> Result<Arc<Notify>, Fault> {
        let usage = self.usage.entry(queue.tenant.clone()).or_default();
        if usage.polls >= WORKER_POLLS {
            return Err(Fault::new(
                Code::ResourceExhausted,
                format!("{WORKER_POLLS} workers of this tenant wait for tasks"),
            ));
        }
        usage.polls += 1;
        let queue = self.queues.entry(queue.clone()).or_default();
        queue.polls += 1;
        Ok(queue.bell.clone())
    }

    pub fn leave_poll(&mut self, queue: &QueueKey) {
        self.release(&queue.tenant, |usage| usage.polls -= 1);
        if let Some(queue) = self.queues.get_mut(queue) {
            queue.polls -= 1;
        }
        self.tidy(queue);
    }

    fn remove(&mut self, id: Uuid) -> Option<Entry> {
        let entry = self.tasks.remove(&id)?;
        self.release(&entry.queue.tenant, |usage| usage.tasks -= 1);
        Some(entry)
    }

    /// Gives back a part of what a tenant holds, and forgets a tenant that holds nothing.
    fn release(&mut self, tenant: &Tenant, part: impl FnOnce(&mut TenantUsage)) {
        let Some(usage) = self.usage.get_mut(tenant) else { return };
        part(usage);
        if usage.tasks == 0 && usage.polls == 0 {
            self.usage.remove(tenant);
        }
    }

    pub fn depth(&self) -> (usize, usize) {
        let waiting = self.queues.values().map(|queue| queue.waiting.len()).sum();
        (waiting, self.tasks.len() - waiting)
    }

    /// A task of another tenant is as unknown as one that never was.
    fn check(&mut self, held: &HeldTask<'_>, now_us: u64) -> Result<(), Fault> {
        let id = held.id;
        let entry = self.tasks.get(&id).filter(|entry| entry.queue.tenant == *held.tenant);
        let entry = entry.ok_or_else(|| lease::unknown(id))?;
        let Some(lease) = entry.lease.as_ref().filter(|lease| lease.is_for(held.token)) else {
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
    fn tidy(&mut self, queue: &QueueKey) {
        if self.queues.get(queue).is_some_and(|queue| queue.polls == 0 && queue.waiting.is_empty()) {
            self.queues.remove(queue);
        }
    }
}

/// The last tasks that were withdrawn from a worker, with the tokens that prove whose they were.
#[derive(Default)]
struct Ended(VecDeque<(Uuid, Tenant, String)>);

impl Ended {
    fn remember(&mut self, id: Uuid, tenant: Tenant, token: String) {
        if self.0.len() >= ENDED_TASKS_KEPT {
            self.0.pop_front();
        }
        self.0.push_back((id, tenant, token));
    }

    fn was_held(&self, held: &HeldTask<'_>) -> bool {
        self.0.iter().any(|(id, tenant, token)| {
            *id == held.id && tenant == held.tenant && lease::is_same(token, held.token)
        })
    }
}
