//! A message comes in: is it new, is it its turn, whom is it for?

use std::sync::Arc;

use orchestr8_contract::id::{AgentId, MessageId, RequestId, Tenant};
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ports::clock::iso;

use super::requests::{check_parties, kept_until};
use super::{Around, Desk, HeldMessage, PairState, Recipients, Sent, Stop, Told, Waiting};
use crate::aacp::audit::{AuditRecord, MessageEvent};
use crate::aacp::envelope::{Envelope, Kind, More, Target, Written, wrong};
use crate::aacp::ledger::{self, Act, Answer, Entry, Fact, Status};
use crate::aacp::record::{Held, Known, Pair, Placed, Row, Write};
use crate::aacp::window::Arrival;
use crate::limits;

/// What the ledger makes of a message.
struct Judged {
    /// Whether the target gets to see it.
    place: bool,
    entry: Option<(Entry, Act)>,
    is_new: bool,
}

impl Desk {
    pub(super) fn send(
        &mut self,
        tenant: &Tenant,
        envelope: Envelope,
        to: Recipients,
        around: &Around<'_>,
    ) -> Result<Sent, Stop> {
        if let (Some(id), Some(looked)) = (&envelope.message, &self.looked)
            && let Some(known) = looked.messages.get(&(tenant.clone(), id.clone()))
        {
            return Ok(self.repeated(tenant, &envelope, &known.clone())?);
        }
        match to {
            Recipients::One { has_inbox } => self.send_to(tenant, envelope, has_inbox, around),
            Recipients::Copies(agents) => self.copy(tenant, &envelope, agents, around),
        }
    }

    /// A message id that was seen before is ignored (AACP-6); it cannot stand for another message.
    fn repeated(&self, tenant: &Tenant, envelope: &Envelope, known: &Known) -> Result<Sent, Fault> {
        let same = envelope.source == known.source
            && envelope.kind == known.kind
            && (envelope.request.is_none() || envelope.request == known.request)
            && envelope.payload == *known.payload
            && target_name(&envelope.target) == known.target;
        if !same {
            let what = match envelope.seq {
                Some(seq) if envelope.message.as_ref() != Some(&known.message) => {
                    let pair = pair_of(tenant, envelope);
                    let next = pair.map_or(1, |pair| self.state(&pair).receiving.highest() + 1);
                    return Err(Fault::new(
                        Code::StateConflict,
                        format!("/seq: {seq} was used for another message to this agent; the next is {next}"),
                    )
                    .with("path", "/seq")
                    .with("nextSeq", next));
                }
                Some(_) | None => format!("/messageId: '{}' was used for another message", known.message),
            };
            return Err(Fault::new(Code::IdConflict, what).with("path", "/messageId"));
        }
        let mut sent =
            Sent { message: Some(known.message.clone()), duplicate: true, seq: known.seq, ..Sent::default() };
        sent.request.clone_from(&known.request);
        if let Some(pair) = pair_of(tenant, envelope) {
            self.answer_window(&mut sent, &pair);
        }
        if let Some(request) = &known.request {
            sent.entry = self.requests.get(&(tenant.clone(), request.clone())).cloned();
        }
        Ok(sent)
    }

    fn send_to(
        &mut self,
        tenant: &Tenant,
        mut envelope: Envelope,
        has_inbox: bool,
        around: &Around<'_>,
    ) -> Result<Sent, Stop> {
        let Some(pair) = pair_of(tenant, &envelope) else {
            return Err(Fault::internal("a message to one agent names none").into());
        };
        self.check_ack(&pair, envelope.ack)?;
        let state = self.state(&pair);
        let seq = envelope.seq.unwrap_or_else(|| state.receiving.highest() + 1);
        let arrival = state.receiving.judge(seq, limits::WINDOW_REACH);
        match arrival {
            Arrival::Duplicate => return self.repeated_place(tenant, &pair, seq, &envelope),
            Arrival::TooFar => return Err(self.too_far(&pair, seq).into()),
            Arrival::InOrder { .. } | Arrival::BeyondGap => {}
        }
        let message = envelope.message.take().unwrap_or_else(|| MessageId::from_uuid((around.fresh)()));
        if envelope.kind == Kind::Request && envelope.request.is_none() {
            envelope.request = Some(RequestId::from_uuid((around.fresh)()));
        }
        let judged = self.judge(tenant, &envelope, &message, seq, has_inbox, around)?;
        // A response is always taken: there are no more of them than there are requests of its reader.
        if judged.place && envelope.kind != Kind::Response {
            self.check_room(&pair, around)?;
        }
        let mut record = sent_record(tenant, &envelope, &message, &judged, around);
        if let Some(ack) = envelope.ack {
            // What it acknowledges on the way is named in its own record.
            let acknowledged = self.acknowledge_pair(&pair.back(), ack, around);
            acknowledged.into_iter().for_each(|id| record.name(id));
        }
        self.audit(record);
        let place = judged.place;
        let entry = self.record_request(tenant, judged, around);
        let row = self.row(&pair, &envelope, &message, seq, around);
        self.take_in(&pair, row, place, arrival);
        let mut sent =
            Sent { message: Some(message), request: envelope.request, seq, entry, ..Sent::default() };
        sent.held = arrival == Arrival::BeyondGap;
        self.answer_window(&mut sent, &pair);
        Ok(sent)
    }

    /// The number was there before: the same message, or a mistake.
    fn repeated_place(
        &self,
        tenant: &Tenant,
        pair: &Pair,
        seq: u64,
        envelope: &Envelope,
    ) -> Result<Sent, Stop> {
        let Some(looked) = &self.looked else { return Err(Stop::LookFirst) };
        match looked.places.get(&(pair.clone(), seq)) {
            Some(known) => Ok(self.repeated(tenant, envelope, known)?),
            None => {
                let next = self.state(pair).receiving.highest() + 1;
                let text = format!("/seq: {seq} was used before and is forgotten; the next is {next}");
                Err(Fault::new(Code::StateConflict, text).with("path", "/seq").with("nextSeq", next).into())
            }
        }
    }

    /// What the ledger says to it (AACP-6): a request that is known is not worked on again.
    fn judge(
        &self,
        tenant: &Tenant,
        envelope: &Envelope,
        message: &MessageId,
        seq: u64,
        has_inbox: bool,
        around: &Around<'_>,
    ) -> Result<Judged, Stop> {
        let Some(request) = &envelope.request else {
            return Ok(Judged { place: has_inbox, entry: None, is_new: false });
        };
        let known = self.requests.get(&(tenant.clone(), request.clone()));
        // What has expired counts as deleted, whether it was swept yet or not.
        let known = known.filter(|entry| !entry.has_expired(around.at.now_ms));
        match (envelope.kind, known) {
            (Kind::Request, None) => {
                let entry = self.opened(request, envelope, message, seq, around);
                Ok(Judged { place: has_inbox, entry: Some((entry, Act::Nothing)), is_new: true })
            }
            (Kind::Request, Some(entry)) => {
                let target = pair_of(tenant, envelope).map(|pair| pair.target);
                if entry.source != envelope.source || Some(&entry.target) != target.as_ref() {
                    let text = format!("/requestId: '{request}' was used between other agents");
                    return Err(Fault::new(Code::IdConflict, text).with("path", "/requestId").into());
                }
                self.check_payload(tenant, entry, envelope)?;
                let next = ledger::next(entry, Fact::AskedAgain, around.policy, around.at);
                Ok(Judged { place: false, entry: Some(next), is_new: false })
            }
            (Kind::Response, None) => {
                let text = format!("/requestId: there is no request '{request}'");
                Err(Fault::new(Code::NotFound, text).with("path", "/requestId").into())
            }
            (Kind::Response, Some(entry)) => {
                check_parties(entry, envelope)?;
                let answer = match &envelope.error {
                    Some(error) => Answer::Error(error.clone()),
                    None => Answer::Payload(Arc::new(envelope.payload.clone())),
                };
                let sent = Fact::Transmitted(envelope.transmissions);
                let entry = match envelope.transmissions {
                    0 => entry.clone(),
                    _ => ledger::next(entry, sent, around.policy, around.at).0,
                };
                let (entry, act) = ledger::next(&entry, Fact::Answered(answer), around.policy, around.at);
                let place = has_inbox && act == Act::Settle;
                Ok(Judged { place, entry: Some((entry, act)), is_new: false })
            }
            (Kind::Event, _) => Err(wrong("/requestId", "an EVENT has none").into()),
        }
    }

    fn record_request(&mut self, tenant: &Tenant, judged: Judged, around: &Around<'_>) -> Option<Entry> {
        let (entry, act) = judged.entry?;
        self.follow(tenant, entry.clone(), act, judged.is_new, around);
        Some(entry)
    }

    pub(super) fn row(
        &self,
        pair: &Pair,
        envelope: &Envelope,
        message: &MessageId,
        seq: u64,
        around: &Around<'_>,
    ) -> Row {
        let now_ms = around.at.now_ms;
        let more = envelope.more.clone();
        let now = if more.timestamp.is_none() { iso(now_ms) } else { String::new() };
        let topic = match &envelope.target {
            Target::Agent(_) => None,
            Target::Topic(topic) => Some(topic.as_str()),
            Target::Everyone => Some(crate::aacp::EVERYONE),
        };
        let outcome = (envelope.kind == Kind::Response).then_some(match envelope.error {
            Some(_) => Status::Failed.as_str(),
            None => Status::Completed.as_str(),
        });
        let written = Written {
            message_id: message,
            request_id: envelope.request.as_ref(),
            source_agent_id: &pair.source,
            target_agent_id: &pair.target,
            topic,
            seq,
            ack: envelope.ack,
            message_type: envelope.kind,
            timestamp: envelope.more.timestamp.as_deref().unwrap_or(&now),
            payload: &envelope.payload,
            outcome,
            error: envelope.error.as_ref(),
            more: More { timestamp: None, ..more },
        };
        Row {
            tenant: pair.tenant.clone(),
            message: message.clone(),
            source: pair.source.clone(),
            target: pair.target.as_str().to_owned(),
            seq,
            kind: envelope.kind,
            request: envelope.request.clone(),
            // Values of JSON always serialize.
            text: serde_json::to_string(&written).unwrap_or_default(),
            position: None,
            held: Held::No,
            created_ms: now_ms,
            expires_ms: kept_until(envelope, around),
        }
    }

    /// Counts the message in, and hands it on with all that waited for it; or lets it wait.
    pub(super) fn take_in(&mut self, pair: &Pair, mut row: Row, place: bool, arrival: Arrival) {
        let seq = row.seq;
        let waits = HeldMessage {
            message: row.message.clone(),
            request: row.request.clone().filter(|_| row.kind == Kind::Request),
            held: if place { Held::ToPlace } else { Held::ToCount },
            expires_ms: row.expires_ms,
        };
        let state = self.changing_pair(pair);
        state.receiving.receive(seq, limits::WINDOW_REACH);
        let Arrival::InOrder { ack } = arrival else {
            row.held = waits.held;
            state.held.insert(seq, waits);
            self.note(row);
            return;
        };
        let follow: Vec<(u64, HeldMessage)> =
            (seq + 1..=ack).filter_map(|seq| Some((seq, state.held.remove(&seq)?))).collect();
        row.position = place.then(|| self.place(pair, seq, waits));
        if let Some(position) = row.position {
            self.told.push(Told::Arrived(pair.to(), position, Some(Box::new(Placed::of(&row)))));
        }
        self.note(row);
        for (seq, waits) in follow {
            let message = waits.message.clone();
            let position = (waits.held == Held::ToPlace).then(|| self.place(pair, seq, waits));
            self.told.extend(position.map(|position| Told::Arrived(pair.to(), position, None)));
            self.writes.push(Write::Release { tenant: pair.tenant.clone(), message, position });
        }
    }

    pub(super) fn note(&mut self, row: Row) {
        if let Some(looked) = &mut self.looked {
            let known = super::follow::known(&row);
            if let Ok(target) = AgentId::parse(&row.target) {
                let pair = Pair { tenant: row.tenant.clone(), source: row.source.clone(), target };
                looked.places.insert((pair, row.seq), known.clone());
            }
            looked.messages.insert((row.tenant.clone(), row.message.clone()), known);
        }
        self.writes.push(Write::Message(Box::new(row)));
    }

    fn place(&mut self, pair: &Pair, seq: u64, message: HeldMessage) -> u64 {
        let HeldMessage { message, request, expires_ms, .. } = message;
        let source = pair.source.clone();
        let waiting = Waiting { source, seq, message, request, reposted: false, expires_ms };
        self.changing_inbox(&pair.to()).place(waiting)
    }

    fn answer_window(&self, sent: &mut Sent, pair: &Pair) {
        let state = self.state(pair);
        sent.ack = state.receiving.ack();
        let gaps = state.receiving.gaps(limits::SHOWN_GAPS);
        sent.gaps = gaps.into_iter().map(|gap| (*gap.start(), *gap.end())).collect();
    }

    pub(super) fn state(&self, pair: &Pair) -> &PairState {
        static NONE: std::sync::LazyLock<PairState> = std::sync::LazyLock::new(PairState::default);
        self.pairs.get(pair).unwrap_or(&NONE)
    }
}

/// The audit record of a message; an answer that ends its request says so, and names the request's message too.
fn sent_record(
    tenant: &Tenant,
    envelope: &Envelope,
    message: &MessageId,
    judged: &Judged,
    around: &Around<'_>,
) -> AuditRecord {
    let mut record = AuditRecord::new(MessageEvent::Sent, tenant, around.by, around.at.now_ms);
    record.agent = Some(envelope.source.clone());
    record.objects.push(message.clone());
    record.request.clone_from(&envelope.request);
    if let Some((entry, Act::Settle)) = &judged.entry {
        record.outcome = Some(entry.status);
        record.objects.push(entry.message.clone());
    }
    record
}

fn pair_of(tenant: &Tenant, envelope: &Envelope) -> Option<Pair> {
    match &envelope.target {
        Target::Agent(target) => {
            Some(Pair { tenant: tenant.clone(), source: envelope.source.clone(), target: target.clone() })
        }
        Target::Topic(_) | Target::Everyone => None,
    }
}

/// How the target of a message is recorded.
pub(in crate::aacp) fn target_name(target: &Target) -> String {
    match target {
        Target::Agent(agent) => agent.as_str().to_owned(),
        Target::Topic(topic) => format!("topic:{topic}"),
        Target::Everyone => String::from(crate::aacp::EVERYONE),
    }
}
