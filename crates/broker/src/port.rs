//! The port every broker stands behind, and what goes through it.

use bytes::Bytes;
use futures::future::BoxFuture;
use orchestr8_contract::Fault;
use orchestr8_contract::id::Tenant;
use orchestr8_kernel::ports::store::Link;
use tokio::sync::watch;

use crate::subject::Subject;

/// What somebody wants done, on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub tenant: Tenant,
    pub subject: Subject,
    /// What its sender calls it, to be found again.
    pub id: String,
    /// Who sent it; its replies are for them.
    pub principal: String,
    /// What the sender proved when it was published, in words of whoever receives it. A proof cannot be shown twice.
    pub sender: String,
    pub reply_to: Option<Subject>,
    /// Messages of one lane are delivered one after the other, in the order they were published.
    pub lane: Option<String>,
    pub body: Bytes,
}

/// Proves who has a message, for as long as the lease lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    pub tenant: Tenant,
    pub seq: i64,
    pub attempt: u32,
}

/// A message in the hands of a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub receipt: Receipt,
    pub message: Message,
    /// How often it was tried to an end that was not final. A try after one is a new one, not a repeat of it.
    pub round: u32,
    pub published_ms: i64,
}

/// What there was to take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    pub deliveries: Vec<Delivery>,
    /// Nobody settled these in time, once too often: they are dead letters now.
    pub died: Vec<Message>,
}

/// What the receiver of a message makes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is done with, and this is the answer.
    Done { reply: Option<Bytes> },
    /// It may work another time; after the last attempt it is a dead letter, and this is what its sender is told.
    Again { why: String, reply: Option<Bytes> },
    /// It will never work.
    Dead { why: String, reply: Option<Bytes> },
    /// Nobody looked at it: it counts as not delivered.
    Returned,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Gone,
    Again {
        wait_ms: u64,
    },
    Dead,
    /// The lease was over: somebody else has it, or had it.
    Late,
}

/// An answer in its inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Grows with each reply of the broker; read on after it.
    pub seq: i64,
    pub at_ms: i64,
    pub body: Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub more: bool,
}

/// A message that was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    pub seq: i64,
    pub message: Message,
    pub attempts: u32,
    pub why: String,
    pub published_ms: i64,
    pub dead_ms: i64,
    /// How often somebody sent it on its way again.
    pub redrives: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redriven {
    /// It is on its way with all attempts before it.
    OnItsWay,
    Unknown,
}

/// How much of one tenant there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    pub tenant: Tenant,
    pub queued: usize,
    pub in_flight: usize,
    pub dead: usize,
}

/// Messages that survive whoever carries them. Cheap to share; every method may be called from anywhere.
pub trait Broker: Send + Sync + 'static {
    /// Durable when it returns. RESOURCE_EXHAUSTED: the tenant has too many waiting.
    fn publish(&self, message: Message) -> BoxFuture<'static, Result<(), Fault>>;

    /// Waits until there is a message, then takes up to so many: in fair turns between tenants, each under a lease.
    fn take(&self, most: usize) -> BoxFuture<'static, Result<Taken, Fault>>;

    /// Ends a lease. Durable when it returns; the reply is in its inbox together with it.
    fn settle(&self, delivery: Delivery, verdict: Verdict) -> BoxFuture<'static, Result<Ended, Fault>>;

    /// A whole ack deadline from now. False: the lease was over.
    fn extend(&self, receipt: Receipt) -> BoxFuture<'static, Result<bool, Fault>>;

    /// Answers a message that nobody holds any more, if it wants to be answered.
    fn answer(&self, message: Message, body: Bytes) -> BoxFuture<'static, Result<(), Fault>>;

    /// The answers in an inbox after one of them: those for this principal, or all of them.
    fn replies(
        &self,
        tenant: Tenant,
        inbox: Subject,
        principal: Option<String>,
        after: i64,
        most: usize,
    ) -> BoxFuture<'static, Result<Page<Reply>, Fault>>;

    /// Changes when there is a new reply to anybody.
    fn news(&self) -> watch::Receiver<u64>;

    /// Dead letters, the oldest first, after one of them; of one tenant, or of all for whoever runs the server.
    fn dead(
        &self,
        tenant: Option<Tenant>,
        after: i64,
        most: usize,
    ) -> BoxFuture<'static, Result<Page<DeadLetter>, Fault>>;

    fn find_dead(
        &self,
        tenant: Option<Tenant>,
        seq: i64,
    ) -> BoxFuture<'static, Result<Option<DeadLetter>, Fault>>;

    /// Sends a dead letter on its way again. The audit entry is written with it.
    fn redrive(
        &self,
        tenant: Option<Tenant>,
        seq: i64,
        audit: Link,
    ) -> BoxFuture<'static, Result<Redriven, Fault>>;

    /// Forgets a dead letter; whether there was one. The audit entry is written with it.
    fn discard(
        &self,
        tenant: Option<Tenant>,
        seq: i64,
        audit: Link,
    ) -> BoxFuture<'static, Result<bool, Fault>>;

    /// What there is, tenant by tenant.
    fn report(&self) -> BoxFuture<'static, Result<Vec<Reported>, Fault>>;

    /// Forgets replies and dead letters that are too old or too many.
    fn sweep(&self) -> BoxFuture<'static, Result<(), Fault>>;
}
