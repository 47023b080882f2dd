//! What follows later: acknowledgements, outcomes, attempts that are due, messages nobody could be given.

use std::sync::Arc;

use orchestr8_contract::Fault;
use orchestr8_contract::error::StoredFault;
use orchestr8_contract::id::{AgentId, MessageId, RequestId, Tenant};
use serde_json::Value;

use super::{Ack, Around, Desk, Done, HandOver, Told, Waiting};
use crate::aacp::audit::{AuditRecord, MessageEvent};
use crate::aacp::envelope::wrong;
use crate::aacp::ledger::{self, Act, Entry, Fact, Status};
use crate::aacp::record::{Address, Known, Pair, Row, Write};

impl Desk {
    pub(super) fn check_ack(&self, pair: &Pair, ack: Option<u64>) -> Result<(), Fault> {
        let Some(ack) = ack else { return Ok(()) };
        let sent = self.state(&pair.back()).receiving.ack();
        match ack <= sent {
            true => Ok(()),
            false => {
                Err(wrong("/ack", &format!("{ack} was never sent; the last is {sent}")).with("lastSeq", sent))
            }
        }
    }

    pub(super) fn acknowledge(
        &mut self,
        tenant: &Tenant,
        agent: &AgentId,
        what: &Ack,
        around: &Around<'_>,
    ) -> Result<Done, Fault> {
        let address = Address { tenant: tenant.clone(), agent: agent.clone() };
        let pair =
            |source: &AgentId| Pair { tenant: tenant.clone(), source: source.clone(), target: agent.clone() };
        match what {
            Ack::Of { source, seq } => {
                let pair = pair(source);
                let sent = self.state(&pair).receiving.ack();
                if *seq > sent {
                    let what = format!("{seq} was never sent; the last is {sent}");
                    return Err(wrong("/seq", &what).with("lastSeq", sent));
                }
                self.acknowledge_audited(&pair, *seq, around);
            }
            Ack::UpTo(position) => {
                let inbox = self.inboxes.entry(address.clone()).or_default();
                if *position > inbox.last {
                    let what = format!("{position} was never given; the last is {}", inbox.last);
                    return Err(wrong("/inboxSeq", &what).with("lastInboxSeq", inbox.last));
                }
                let mut reached: Vec<(AgentId, u64)> = Vec::new();
                for waiting in inbox.waiting.range(..=*position).map(|(_, waiting)| waiting) {
                    match reached.iter_mut().find(|(source, _)| *source == waiting.source) {
                        Some((_, seq)) => *seq = waiting.seq.max(*seq),
                        None => reached.push((waiting.source.clone(), waiting.seq)),
                    }
                }
                for (source, seq) in reached {
                    self.acknowledge_audited(&pair(&source), seq, around);
                }
            }
        }
        let now_ms = around.at.now_ms;
        let is_kept = |waiting: &&Waiting| waiting.expires_ms > now_ms;
        let inbox = self.inboxes.get(&address);
        let waiting = inbox.map_or(0, |inbox| inbox.waiting.values().filter(is_kept).count());
        Ok(Done::Acknowledged { waiting })
    }

    /// Notes an acknowledgement and puts it on record, unless it changes nothing.
    pub(super) fn acknowledge_audited(&mut self, pair: &Pair, ack: u64, around: &Around<'_>) {
        let acked = self.state(pair).acked;
        let objects = self.acknowledge_pair(pair, ack, around);
        if objects.is_empty() && self.state(pair).acked == acked {
            return;
        }
        let mut record =
            AuditRecord::new(MessageEvent::Acknowledged, &pair.tenant, around.by, around.at.now_ms);
        record.agent = Some(pair.target.clone());
        record.objects = objects;
        self.audit(record);
    }

    /// The target of the pair has everything up to this number, and nothing beyond a gap. Gives the messages that leave its inbox.
    pub(super) fn acknowledge_pair(&mut self, pair: &Pair, ack: u64, around: &Around<'_>) -> Vec<MessageId> {
        let state = self.state(pair);
        let acked = ack.min(state.receiving.ack());
        if acked > state.acked {
            self.changing_pair(pair).acked = acked;
        }
        let address = pair.to();
        let covers = |waiting: &Waiting| waiting.source == pair.source && waiting.seq <= ack;
        if !self.inboxes.get(&address).is_some_and(|inbox| inbox.waiting.values().any(covers)) {
            return Vec::new();
        }
        let (mut again, mut left, mut requests) = (Vec::new(), Vec::new(), Vec::new());
        self.changing_inbox(&address).waiting.retain(|_, waiting| {
            let covered = covers(waiting);
            if covered {
                left.push(waiting.message.clone());
                requests.extend(waiting.request.take());
            }
            if covered && waiting.reposted {
                again.push(ended(&pair.tenant, &waiting.message, Status::Completed, None));
            }
            !covered
        });
        self.writes.extend(again);
        // What is acknowledged was handed over, however the target came to it.
        for request in requests {
            self.handed_over(&pair.tenant, &request, HandOver::Read, around);
        }
        left
    }

    /// Records what the ledger says, and does what follows from it.
    pub(super) fn follow(
        &mut self,
        tenant: &Tenant,
        entry: Entry,
        act: Act,
        is_new: bool,
        around: &Around<'_>,
    ) {
        let key = (tenant.clone(), entry.request.clone());
        match act {
            Act::Nothing => {}
            Act::Redeliver => self.repost(tenant, &entry, around),
            Act::Settle => {
                self.take_out(tenant, &entry);
                self.told.push(Told::Settled(tenant.clone(), Box::new(entry.clone())));
            }
        }
        if is_new || self.requests.get(&key) != Some(&entry) {
            self.told.extend(entry.due_ms.map(|due_ms| Told::Asked { due_ms }));
            self.writes.push(Write::Request { tenant: tenant.clone(), entry: entry.clone(), is_new });
        }
        self.requests.insert(key, entry);
    }

    pub(super) fn broke(&mut self, tenant: &Tenant, request: &RequestId, fault: Fault, around: &Around<'_>) {
        self.apply(tenant, request, Fact::Broke(fault), around);
    }

    pub(super) fn handed_over(
        &mut self,
        tenant: &Tenant,
        request: &RequestId,
        how: HandOver,
        around: &Around<'_>,
    ) {
        let fact = match how {
            HandOver::Read => Fact::Read,
            HandOver::Transmitted(times) => Fact::Transmitted(times),
        };
        self.apply(tenant, request, fact, around);
    }

    pub(super) fn retransmit(
        &mut self,
        address: &Address,
        position: u64,
        sent_as: MessageId,
        around: &Around<'_>,
    ) {
        let Some(inbox) = self.inboxes.get_mut(address) else { return };
        let Some(waiting) = inbox.waiting.get_mut(&position) else { return };
        waiting.reposted = true;
        let (tenant, message) = (address.tenant.clone(), waiting.message.clone());
        let mut record = AuditRecord::new(MessageEvent::Redelivered, &tenant, around.by, around.at.now_ms);
        record.agent = Some(address.agent.clone());
        record.objects.push(message.clone());
        self.audit(record);
        self.writes.push(Write::Repost { tenant, message, position, sent_as });
    }

    pub(super) fn due(&mut self, tenant: &Tenant, request: &RequestId, around: &Around<'_>) {
        self.apply(tenant, request, Fact::Due, around);
    }

    fn apply(&mut self, tenant: &Tenant, request: &RequestId, fact: Fact, around: &Around<'_>) {
        let Some(entry) = self.requests.get(&(tenant.clone(), request.clone())) else { return };
        let error = match &fact {
            Fact::Broke(fault) => Some(fault.code),
            Fact::Answered(_) | Fact::Read | Fact::Transmitted(_) | Fact::Due | Fact::AskedAgain => None,
        };
        let before = entry.status;
        let (entry, act) = ledger::next(entry, fact, around.policy, around.at);
        if entry.status != before {
            let mut record = request_record(MessageEvent::Unanswered, tenant, &entry, around);
            record.error = error;
            self.audit(record);
        }
        self.follow(tenant, entry, act, false, around);
    }

    pub(super) fn give_up(&mut self, address: &Address, position: u64, fault: Fault, around: &Around<'_>) {
        if !self.inboxes.contains_key(address) {
            return;
        }
        let Some(waiting) = self.changing_inbox(address).waiting.remove(&position) else { return };
        let mut record =
            AuditRecord::new(MessageEvent::GivenUp, &address.tenant, around.by, around.at.now_ms);
        record.agent = Some(address.agent.clone());
        record.objects.push(waiting.message.clone());
        record.error = Some(fault.code);
        self.audit(record);
        let error = Some(StoredFault::from(&fault));
        self.writes.push(ended(&address.tenant, &waiting.message, Status::Failed, error));
        self.told.push(Told::Ended(address.tenant.clone(), waiting.message, Some(fault)));
    }

    /// Hands a request to its target once more. What it has not acknowledged it still gets as it is, and what waits behind a gap
    /// still gets its turn.
    fn repost(&mut self, tenant: &Tenant, entry: &Entry, around: &Around<'_>) {
        if self.state(&entry.pair(tenant)).held.contains_key(&entry.seq) {
            return;
        }
        let address = Address { tenant: tenant.clone(), agent: entry.target.clone() };
        let inbox = self.changing_inbox(&address);
        let known = inbox.waiting.iter().rev().find(|(_, waiting)| waiting.message == entry.message);
        let mut place = known.map_or(0, |(position, _)| *position);
        if place == 0 {
            let message = entry.message.clone();
            let position = inbox.place(Waiting {
                source: entry.source.clone(),
                seq: entry.seq,
                message: message.clone(),
                request: Some(entry.request.clone()),
                reposted: true,
                expires_ms: entry.expires_ms,
            });
            let sent_as = MessageId::from_uuid((around.fresh)());
            self.writes.push(Write::Repost { tenant: tenant.clone(), message, position, sent_as });
            self.audit(request_record(MessageEvent::Redelivered, tenant, entry, around));
            place = position;
        }
        self.told.push(Told::Arrived(address, place, None));
    }

    /// What is answered need not be read any more.
    fn take_out(&mut self, tenant: &Tenant, entry: &Entry) {
        let address = Address { tenant: tenant.clone(), agent: entry.target.clone() };
        let Some(inbox) = self.inboxes.get(&address) else { return };
        let found = inbox.waiting.iter().rev().find(|(_, waiting)| waiting.message == entry.message);
        let Some(position) = found.map(|(position, _)| *position) else { return };
        self.changing_inbox(&address).waiting.remove(&position);
        self.writes.push(ended(tenant, &entry.message, entry.status, None));
    }
}

/// The audit record of a change of a request.
fn request_record(event: MessageEvent, tenant: &Tenant, entry: &Entry, around: &Around<'_>) -> AuditRecord {
    let mut record = AuditRecord::new(event, tenant, around.by, around.at.now_ms);
    record.agent = Some(entry.target.clone());
    record.objects.push(entry.message.clone());
    record.request = Some(entry.request.clone());
    record.outcome = Some(entry.status);
    record
}

fn ended(tenant: &Tenant, message: &MessageId, status: Status, error: Option<StoredFault>) -> Write {
    Write::Ended { tenant: tenant.clone(), message: message.clone(), status, error }
}

/// What a row says that a repeat is compared with.
pub(super) fn known(row: &Row) -> Known {
    let mut envelope: Value = serde_json::from_str(&row.text).unwrap_or_default();
    Known {
        message: row.message.clone(),
        source: row.source.clone(),
        target: row.target.clone(),
        kind: row.kind,
        request: row.request.clone(),
        seq: row.seq,
        payload: Arc::new(envelope.get_mut("payload").map(Value::take).unwrap_or_default()),
    }
}
