//! The ledger of requests: what became of each, and what is to be done about it next. Pure, and the same live and at recovery.
//!
//! ```text
//! PENDING --answer--> COMPLETED | FAILED        UNKNOWN --late answer--> COMPLETED | FAILED (late)
//! PENDING --silence--> UNKNOWN --wait--> sent again --silence--> UNKNOWN ... until the attempts are used up
//! ```

use std::sync::Arc;

use orchestr8_contract::Fault;
use orchestr8_contract::error::StoredFault;
use orchestr8_contract::id::{AgentId, MessageId, RequestId, Tenant};
use orchestr8_kernel::resilience::retry::{Jitter, delay_ms, may_retry};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::record::Pair;
use crate::limits;

/// How it stands with a request, or with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    /// Accepted; nothing is known of its end yet.
    Pending,
    Completed,
    Failed,
    /// Nobody knows whether it was done: it timed out, or the way was cut (AACP-UNKNOWN).
    Unknown,
}

impl Status {
    pub const ALL: [Status; 4] = [Status::Pending, Status::Completed, Status::Failed, Status::Unknown];

    pub fn as_str(self) -> &'static str {
        match self {
            Status::Pending => "PENDING",
            Status::Completed => "COMPLETED",
            Status::Failed => "FAILED",
            Status::Unknown => "UNKNOWN",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// Whether the first outcome stands and nothing changes it.
    pub fn is_final(self) -> bool {
        match self {
            Status::Completed | Status::Failed => true,
            Status::Pending | Status::Unknown => false,
        }
    }
}

/// One request as it is recorded.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Entry {
    pub request: RequestId,
    pub source: AgentId,
    pub target: AgentId,
    /// The message that brought it first.
    pub message: MessageId,
    /// Its number between source and target.
    pub seq: u64,
    pub status: Status,
    /// How often it was handed to the target: read from its inbox, sent to its callback, or worked on in this process.
    pub attempts: u32,
    /// How long one attempt may stay without an answer.
    pub timeout_ms: i64,
    /// When something is to be done about it: it has timed out, or its next attempt is due.
    pub due_ms: Option<i64>,
    pub asked_ms: i64,
    pub ended_ms: Option<i64>,
    pub expires_ms: i64,
    /// The outcome came after its time was over (AACP-LATE).
    pub late: bool,
    pub answer: Option<Answer>,
    /// Whether the target was handed the last transmission; until then it lies in an inbox or behind a gap.
    #[serde(default = "counted_at_once")]
    pub is_handed_over: bool,
}

/// Earlier versions counted a transmission when it was placed.
fn counted_at_once() -> bool {
    true
}

/// As the other records of the tail, without the names of its fields.
impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { request, source, target, message, seq, status, attempts, .. } = self;
        let Self { timeout_ms, due_ms, asked_ms, ended_ms, expires_ms, late, answer, is_handed_over, .. } =
            self;
        (
            request,
            source,
            target,
            message,
            seq,
            status,
            attempts,
            timeout_ms,
            due_ms,
            asked_ms,
            ended_ms,
            expires_ms,
            late,
            answer,
            is_handed_over,
        )
            .serialize(serializer)
    }
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    Payload(Arc<Value>),
    Error(StoredFault),
}

/// What happened to a request.
#[derive(Debug, Clone)]
pub enum Fact {
    /// The target, or whoever works for it, says how it ended.
    Answered(Answer),
    /// The work broke off. Where another attempt may help, nobody knows how far it came, and the outcome stays unknown.
    Broke(Fault),
    /// The target has read it from its inbox.
    Read,
    /// It was sent to the target so many times, one after the other.
    Transmitted(u32),
    /// The moment it was due at has come.
    Due,
    /// The source asks again, under the same id.
    AskedAgain,
}

/// What follows from a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Nothing,
    /// Hand it to the target once more.
    Redeliver,
    /// It has come to its end: tell whoever waits.
    Settle,
}

/// How often and how patiently a request is tried. The hooks of the contract: `shouldRetry`, `getBackoffDelay`, `getMaxAttempts`.
pub trait RetryPolicy: Send + Sync + 'static {
    fn max_attempts(&self) -> u32;

    /// How long to wait after this many attempts; `unit` is uniform in [0, 1).
    fn backoff_ms(&self, attempts: u32, unit: f64) -> i64;

    fn should_retry(&self, entry: &Entry, fault: &Fault) -> bool;
}

/// Waits that double up to a cap, with full jitter.
#[derive(Debug, Clone)]
pub struct Backoff {
    pub max_attempts: u32,
    pub base_delay_ms: u64,
    pub max_delay_ms: u64,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            max_attempts: limits::REQUEST_ATTEMPTS,
            base_delay_ms: limits::BACKOFF_BASE_MS,
            max_delay_ms: limits::BACKOFF_CAP_MS,
        }
    }
}

impl RetryPolicy for Backoff {
    fn max_attempts(&self) -> u32 {
        self.max_attempts
    }

    fn backoff_ms(&self, attempts: u32, unit: f64) -> i64 {
        let factor = 1_u64.checked_shl(attempts.saturating_sub(1)).unwrap_or(u64::MAX);
        let ceiling_ms = self.base_delay_ms.saturating_mul(factor).min(self.max_delay_ms);
        i64::try_from(delay_ms(Jitter::Full, ceiling_ms, unit)).unwrap_or(i64::MAX)
    }

    fn should_retry(&self, _: &Entry, fault: &Fault) -> bool {
        may_retry(fault)
    }
}

/// The moment of a fact, and the randomness for it.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    pub now_ms: i64,
    pub unit: f64,
}

/// What the ledger says after a fact, and what is to be done. The first outcome stands.
pub fn next(entry: &Entry, fact: Fact, policy: &dyn RetryPolicy, at: Moment) -> (Entry, Act) {
    let mut after = entry.clone();
    if entry.status.is_final() {
        return (after, Act::Nothing);
    }
    if entry.has_expired(at.now_ms) {
        after.due_ms = None;
        return (after, Act::Nothing);
    }
    let act = match fact {
        Fact::Answered(answer) => {
            // An agent that answers has it, however it was read.
            after.attempts = after.attempts.saturating_add(u32::from(!after.is_handed_over));
            after.is_handed_over = true;
            after.settle(answer, at.now_ms)
        }
        Fact::Broke(fault) => {
            if policy.should_retry(entry, &fault) {
                after.status = Status::Unknown;
                let more = entry.attempts < policy.max_attempts();
                let wait_ms = policy.backoff_ms(entry.attempts, at.unit);
                after.due_ms = more.then(|| at.now_ms.saturating_add(wait_ms));
                after.end_before_expiry();
                Act::Nothing
            } else {
                after.settle(Answer::Error(StoredFault::from(&fault)), at.now_ms)
            }
        }
        Fact::Read if entry.is_handed_over => Act::Nothing,
        Fact::Read => after.hand_over(1, policy, at),
        Fact::Transmitted(times) => after.hand_over(times, policy, at),
        Fact::Due => due(&mut after, policy, at),
        // No further attempt is planned, and the source still wants it. What lies unread is not sent again.
        Fact::AskedAgain
            if entry.status == Status::Unknown && entry.due_ms.is_none() && entry.is_handed_over =>
        {
            after.transmit()
        }
        Fact::AskedAgain => Act::Nothing,
    };
    (after, act)
}

fn due(after: &mut Entry, policy: &dyn RetryPolicy, at: Moment) -> Act {
    if after.due_ms.is_none_or(|due_ms| due_ms > at.now_ms) {
        return Act::Nothing;
    }
    match after.status {
        Status::Pending => {
            after.status = Status::Unknown;
            // What lies unread is there already: the next attempt counts from the moment it is read.
            let more = after.is_handed_over && after.attempts < policy.max_attempts();
            let wait_ms = policy.backoff_ms(after.attempts, at.unit);
            after.due_ms = more.then(|| at.now_ms.saturating_add(wait_ms));
            after.end_before_expiry();
            Act::Nothing
        }
        Status::Unknown if after.is_handed_over && after.attempts < policy.max_attempts() => after.transmit(),
        Status::Unknown => {
            after.due_ms = None;
            Act::Nothing
        }
        Status::Completed | Status::Failed => Act::Nothing,
    }
}

impl Entry {
    /// Between whom it goes, in the direction of the request.
    pub fn pair(&self, tenant: &Tenant) -> Pair {
        Pair { tenant: tenant.clone(), source: self.source.clone(), target: self.target.clone() }
    }

    fn settle(&mut self, answer: Answer, now_ms: i64) -> Act {
        self.late = self.status == Status::Unknown || now_ms > self.asked_ms.saturating_add(self.timeout_ms);
        self.status = match &answer {
            Answer::Payload(_) => Status::Completed,
            Answer::Error(_) => Status::Failed,
        };
        self.answer = Some(answer);
        self.due_ms = None;
        self.ended_ms = Some(now_ms);
        Act::Settle
    }

    /// Whether its record is to be deleted, and counts as deleted.
    pub fn has_expired(&self, now_ms: i64) -> bool {
        self.expires_ms <= now_ms
    }

    /// Another transmission; its time begins once it is handed over.
    fn transmit(&mut self) -> Act {
        self.is_handed_over = false;
        self.due_ms = None;
        Act::Redeliver
    }

    fn hand_over(&mut self, times: u32, policy: &dyn RetryPolicy, at: Moment) -> Act {
        self.attempts = self.attempts.saturating_add(times);
        self.is_handed_over = true;
        if self.status == Status::Unknown {
            // Silence and the wait after it are one span from here on: what is unknown stays unknown.
            let wait_ms = policy.backoff_ms(self.attempts, at.unit);
            self.due_ms = Some(at.now_ms.saturating_add(self.timeout_ms).saturating_add(wait_ms));
            self.end_before_expiry();
        }
        Act::Nothing
    }

    /// Nothing is planned for a moment at which the record is gone.
    fn end_before_expiry(&mut self) {
        self.due_ms = self.due_ms.filter(|due_ms| *due_ms < self.expires_ms);
    }

    /// Whether somebody still tries to bring it to its end.
    pub fn is_tried(&self) -> bool {
        !self.status.is_final() && self.due_ms.is_some()
    }
}
