//! The broker that needs nothing but the store: queue, leases, dead letters and replies are rows, and every answer is durable.

mod keep;
mod rows;
mod take;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::audit::StateChange;
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::store::{Batch, Error, Link, Store};
use orchestr8_kernel::ports::{Clock, Random};
use orchestr8_kernel::resilience::retry::{Jitter, delay_ms};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::{Notify, watch};

use crate::lines::Lines;
use crate::port::{
    Broker, DeadLetter, Delivery, Ended, Message, Page, Receipt, Redriven, Reply, Reported, Taken, Verdict,
};
use crate::settings::Settings;
use crate::subject::Subject;
use crate::{limits, tables};

/// A broker on the store of this process, which is the only one that writes to it. Clones share it.
#[derive(Clone)]
pub struct Embedded(Arc<Shared>);

struct Shared {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    settings: Settings,
    lines: Mutex<Lines>,
    /// Somebody published, or a place became free.
    stirred: Notify,
    /// Counts replies, for whoever waits for one.
    replied: watch::Sender<u64>,
}

impl Embedded {
    /// Takes up what an earlier process left. What that one had in hand is due at once, with its attempts counted.
    pub async fn open(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        settings: Settings,
    ) -> Result<Self, Fault> {
        if !store.query(tables::leased()).await.map_err(store_fault)?.is_empty() {
            let mut batch = Batch::new();
            batch.then(tables::free_all(clock.now_ms()));
            store.commit(batch).await.map_err(store_fault)?;
        }
        let mut lines = Lines::default();
        for row in store.query(tables::counts()).await.map_err(store_fault)? {
            let (tenant, queued, bytes) = rows::count(&row).map_err(store_fault)?;
            lines.known(tenant, queued, bytes);
        }
        let (lines, stirred, replied) = (Mutex::new(lines), Notify::new(), watch::Sender::new(0));
        Ok(Self(Arc::new(Shared { store, clock, random, settings, lines, stirred, replied })))
    }
}

impl Shared {
    fn until_ms(&self, wait_ms: u64) -> i64 {
        self.clock.now_ms().saturating_add(i64::try_from(wait_ms).unwrap_or(i64::MAX))
    }

    /// Somewhere between at once and the ceiling of this attempt, so that what failed together does not come back together.
    fn wait_ms(&self, attempt: u32) -> u64 {
        let doublings = attempt.saturating_sub(1);
        let factor = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX);
        let ceiling_ms = self.settings.base_delay_ms.saturating_mul(factor).min(self.settings.max_delay_ms);
        delay_ms(Jitter::Full, ceiling_ms, self.random.unit())
    }

    async fn publish(&self, message: Message) -> Result<(), Fault> {
        let bytes = message.body.len();
        if bytes > limits::MESSAGE_BYTES {
            let limit = limits::MESSAGE_BYTES;
            let what = format!("the message has {bytes} bytes; the limit is {limit}");
            return Err(Fault::new(Code::PayloadTooLarge, what));
        }
        self.lines.lock().admit(&message.tenant, bytes, &self.settings)?;
        let mut batch = Batch::new();
        batch.then_one(tables::publish(&message, self.clock.now_ms()));
        match self.store.commit(batch).await {
            Ok(()) => {
                self.stir(&message.tenant);
                Ok(())
            }
            Err(error) => {
                self.lines.lock().leave(&message.tenant, bytes);
                Err(store_fault(error))
            }
        }
    }

    /// There is something new to take. Said after it is in the store, so that whoever has just looked looks again.
    fn stir(&self, tenant: &Tenant) {
        self.lines.lock().due_at(tenant, 0);
        self.stirred.notify_one();
    }

    async fn settle(&self, delivery: Delivery, verdict: Verdict) -> Result<Ended, Fault> {
        let (receipt, message) = (&delivery.receipt, &delivery.message);
        let last = receipt.attempt >= self.settings.attempts;
        let mut batch = Batch::new();
        let (ended, reply) = match verdict {
            Verdict::Done { reply } => {
                batch.then_one(tables::remove(receipt));
                (Ended::Gone, reply)
            }
            Verdict::Again { why, reply } if last => {
                self.bury(&mut batch, receipt, &why);
                (Ended::Dead, reply)
            }
            Verdict::Dead { why, reply } => {
                self.bury(&mut batch, receipt, &why);
                (Ended::Dead, reply)
            }
            Verdict::Again { .. } => {
                let wait_ms = self.wait_ms(receipt.attempt);
                batch.then_one(tables::again(receipt, self.until_ms(wait_ms)));
                (Ended::Again { wait_ms }, None)
            }
            Verdict::Returned => {
                batch.then_one(tables::give_back(receipt, self.clock.now_ms()));
                (Ended::Again { wait_ms: 0 }, None)
            }
        };
        if matches!(ended, Ended::Dead) {
            batch.link(given_up(message).link(self.clock.now_ms()));
        }
        let gone = matches!(ended, Ended::Gone | Ended::Dead);
        if gone {
            self.move_up(&mut batch, message);
        }
        let replies = reply.is_some_and(|body| self.write_reply(&mut batch, message, body));
        match self.store.commit(batch).await {
            Ok(()) => {}
            Err(Error::Conflict { .. }) => return Ok(Ended::Late),
            Err(error) => return Err(store_fault(error)),
        }
        self.let_go(receipt, gone.then_some(message));
        if replies {
            self.replied.send_modify(|count| *count += 1);
        }
        Ok(ended)
    }

    fn bury(&self, batch: &mut Batch, receipt: &Receipt, why: &str) {
        let why: String = why.chars().take(limits::WHY_CHARS).collect();
        batch.then_one(tables::bury(receipt, &why, self.clock.now_ms()));
        batch.then_one(tables::remove(receipt));
    }

    fn move_up(&self, batch: &mut Batch, message: &Message) {
        if let Some(lane) = &message.lane {
            batch.then(tables::move_up(message.tenant.as_str(), lane, self.clock.now_ms()));
        }
    }

    /// Whether anybody wants to be answered.
    fn write_reply(&self, batch: &mut Batch, message: &Message, body: Bytes) -> bool {
        let Some(to) = &message.reply_to else { return false };
        let (tenant, now_ms) = (message.tenant.as_str(), self.clock.now_ms());
        batch.then_one(tables::reply(tenant, to.as_str(), &message.principal, body.to_vec(), now_ms));
        true
    }

    /// Gives the place of a lease to others; a message that is gone takes its room in the line along.
    fn let_go(&self, receipt: &Receipt, gone: Option<&Message>) {
        let mut lines = self.lines.lock();
        lines.release(receipt.seq, receipt.attempt);
        if let Some(message) = gone {
            lines.leave(&message.tenant, message.body.len());
        }
        drop(lines);
        self.stirred.notify_one();
    }

    async fn extend(&self, receipt: Receipt) -> Result<bool, Fault> {
        let until_ms = self.until_ms(self.settings.ack_deadline_ms);
        let mut batch = Batch::new();
        batch.then_one(tables::extend(&receipt, until_ms));
        match self.store.commit(batch).await {
            Ok(()) => {
                self.lines.lock().extend(receipt.seq, receipt.attempt, until_ms);
                Ok(true)
            }
            Err(Error::Conflict { .. }) => Ok(false),
            Err(error) => Err(store_fault(error)),
        }
    }

    async fn answer(&self, message: Message, body: Bytes) -> Result<(), Fault> {
        let mut batch = Batch::new();
        if self.write_reply(&mut batch, &message, body) {
            self.store.commit(batch).await.map_err(store_fault)?;
            self.replied.send_modify(|count| *count += 1);
        }
        Ok(())
    }
}

impl Broker for Embedded {
    fn publish(&self, message: Message) -> BoxFuture<'static, Result<(), Fault>> {
        let shared = self.0.clone();
        async move { shared.publish(message).await }.boxed()
    }

    fn take(&self, most: usize) -> BoxFuture<'static, Result<Taken, Fault>> {
        let shared = self.0.clone();
        async move { shared.take(most).await }.boxed()
    }

    fn settle(&self, delivery: Delivery, verdict: Verdict) -> BoxFuture<'static, Result<Ended, Fault>> {
        let shared = self.0.clone();
        async move { shared.settle(delivery, verdict).await }.boxed()
    }

    fn extend(&self, receipt: Receipt) -> BoxFuture<'static, Result<bool, Fault>> {
        let shared = self.0.clone();
        async move { shared.extend(receipt).await }.boxed()
    }

    fn answer(&self, message: Message, body: Bytes) -> BoxFuture<'static, Result<(), Fault>> {
        let shared = self.0.clone();
        async move { shared.answer(message, body).await }.boxed()
    }

    fn replies(
        &self,
        tenant: Tenant,
        inbox: Subject,
        principal: Option<String>,
        after: i64,
        most: usize,
    ) -> BoxFuture<'static, Result<Page<Reply>, Fault>> {
        let shared = self.0.clone();
        async move { shared.replies(&tenant, &inbox, principal, (after, most)).await }.boxed()
    }

    fn news(&self) -> watch::Receiver<u64> {
        self.0.replied.subscribe()
    }

    fn dead(
        &self,
        tenant: Option<Tenant>,
        after: i64,
        most: usize,
    ) -> BoxFuture<'static, Result<Page<DeadLetter>, Fault>> {
        let shared = self.0.clone();
        async move { shared.dead(tenant.as_ref(), after, most).await }.boxed()
    }

    fn find_dead(
        &self,
        tenant: Option<Tenant>,
        seq: i64,
    ) -> BoxFuture<'static, Result<Option<DeadLetter>, Fault>> {
        let shared = self.0.clone();
        async move { shared.find_dead(tenant.as_ref(), seq).await }.boxed()
    }

    fn redrive(
        &self,
        tenant: Option<Tenant>,
        seq: i64,
        audit: Link,
    ) -> BoxFuture<'static, Result<Redriven, Fault>> {
        let shared = self.0.clone();
        async move { shared.redrive(tenant.as_ref(), seq, audit).await }.boxed()
    }

    fn discard(
        &self,
        tenant: Option<Tenant>,
        seq: i64,
        audit: Link,
    ) -> BoxFuture<'static, Result<bool, Fault>> {
        let shared = self.0.clone();
        async move { shared.discard(tenant.as_ref(), seq, audit).await }.boxed()
    }

    fn report(&self) -> BoxFuture<'static, Result<Vec<Reported>, Fault>> {
        let shared = self.0.clone();
        async move { shared.report().await }.boxed()
    }

    fn sweep(&self) -> BoxFuture<'static, Result<(), Fault>> {
        let shared = self.0.clone();
        async move { shared.sweep().await }.boxed()
    }
}

/// The audit entry of a message that becomes a dead letter.
fn given_up(message: &Message) -> StateChange<'_> {
    StateChange {
        code: Some(Code::Unavailable),
        detail: json!({"principal": message.principal, "subject": message.subject.as_str()}),
        ..StateChange::by_server("broker.give_up", message.tenant.as_str(), Some(&message.id))
    }
}
