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
    /// How often it was handed to the target.
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
}

/// As the other records of the tail, without the names of its fields.
impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { request, source, target, message, seq, status, attempts, .. } = self;
        let Self { timeout_ms, due_ms, asked_ms, ended_ms, expires_ms, late, answer, .. } = self;
        (
            request, source, target, message, seq, status, attempts, timeout_ms, due_ms, asked_ms, ended_ms,
            expires_ms, late, answer,
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
    let act = match fact {
        Fact::Answered(answer) => after.settle(answer, at.now_ms),
        Fact::Broke(fault) => {
            if policy.should_retry(entry, &fault) {
                after.status = Status::Unknown;
                let more = entry.attempts < policy.max_attempts();
                let wait_ms = policy.backoff_ms(entry.attempts, at.unit);
                after.due_ms = more.then(|| at.now_ms.saturating_add(wait_ms));
                Act::Nothing
            } else {
                after.settle(Answer::Error(StoredFault::from(&fault)), at.now_ms)
            }
        }
        Fact::Due => due(&mut after, policy, at),
        // Nobody tries any more, and the source still wants it: that is a wish for another attempt.
        Fact::AskedAgain if entry.status == Status::Unknown && entry.due_ms.is_none() => {
            after.attempt(at.now_ms, 0)
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
            let more = after.attempts < policy.max_attempts();
            let wait_ms = policy.backoff_ms(after.attempts, at.unit);
            after.due_ms = more.then(|| at.now_ms.saturating_add(wait_ms));
            Act::Nothing
        }
        Status::Unknown if after.attempts < policy.max_attempts() => {
            // Silence and the wait after it are one span from here on: what is unknown stays unknown.
            let wait_ms = policy.backoff_ms(after.attempts + 1, at.unit);
            after.attempt(at.now_ms, wait_ms)
        }
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

    fn attempt(&mut self, now_ms: i64, wait_ms: i64) -> Act {
        self.attempts = self.attempts.saturating_add(1);
        self.due_ms = Some(now_ms.saturating_add(self.timeout_ms).saturating_add(wait_ms));
        Act::Redeliver
    }

    /// Whether somebody still tries to bring it to its end.
    pub fn is_tried(&self) -> bool {
        !self.status.is_final() && self.due_ms.is_some()
    }
}
