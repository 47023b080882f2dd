//! A request in the ledger: how its record begins, and what a repeat and a response must agree with.

use orchestr8_contract::id::{MessageId, RequestId, Tenant};
use orchestr8_contract::{Code, Fault};

use super::{Around, Desk, Stop};
use crate::aacp::envelope::{Envelope, Target};
use crate::aacp::ledger::{Entry, Status};

impl Desk {
    /// A request id stands for one payload (AACP-2): the answer to another one would be the wrong answer.
    pub(super) fn check_payload(
        &self,
        tenant: &Tenant,
        entry: &Entry,
        envelope: &Envelope,
    ) -> Result<(), Stop> {
        let Some(looked) = &self.looked else { return Err(Stop::LookFirst) };
        let first = looked.messages.get(&(tenant.clone(), entry.message.clone()));
        if first.is_none_or(|first| *first.payload == envelope.payload) {
            return Ok(());
        }
        let text = format!("/requestId: '{}' was used for a request with another payload", entry.request);
        Err(Fault::new(Code::IdConflict, text)
            .with("path", "/requestId")
            .with("requestId", entry.request.as_str())
            .into())
    }

    pub(super) fn opened(
        &self,
        request: &RequestId,
        envelope: &Envelope,
        message: &MessageId,
        seq: u64,
        around: &Around<'_>,
    ) -> Entry {
        let target = match &envelope.target {
            Target::Agent(agent) => agent.clone(),
            Target::Topic(_) | Target::Everyone => envelope.source.clone(),
        };
        let (now_ms, timeout_ms) = (around.at.now_ms, envelope.timeout_ms.unwrap_or(around.timeout_ms));
        let expires_ms = kept_until(envelope, around);
        let due_ms = now_ms.saturating_add(timeout_ms);
        Entry {
            request: request.clone(),
            source: envelope.source.clone(),
            target,
            message: message.clone(),
            seq,
            status: Status::Pending,
            attempts: 0,
            timeout_ms,
            due_ms: Some(due_ms).filter(|due_ms| *due_ms < expires_ms),
            asked_ms: now_ms,
            ended_ms: None,
            expires_ms,
            late: false,
            answer: None,
            is_handed_over: false,
        }
    }
}

/// Until when the record of a message is kept. What it says of that was checked when it came in.
pub(super) fn kept_until(envelope: &Envelope, around: &Around<'_>) -> i64 {
    let by_ttl = || around.at.now_ms.saturating_add(envelope.ttl_ms.unwrap_or(around.ttl_ms));
    envelope.expires_ms.unwrap_or_else(by_ttl)
}

pub(super) fn check_parties(entry: &Entry, envelope: &Envelope) -> Result<(), Fault> {
    let for_it = matches!(&envelope.target, Target::Agent(target) if *target == entry.source);
    if entry.target == envelope.source && for_it {
        return Ok(());
    }
    let text = format!("the request '{}' is between other agents", entry.request);
    Err(Fault::new(Code::Unauthorized, text).with("requestId", entry.request.as_str()))
}
