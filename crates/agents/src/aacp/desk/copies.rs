//! A message for several agents, and the limits of mailboxes and windows.

use orchestr8_contract::id::{AgentId, MessageId, Tenant};
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::resilience::retry::RETRY_AFTER_MS;

use super::accept::target_name;
use super::{Around, Desk, Sent, Stop, Waiting};
use crate::aacp::audit::{AuditRecord, MessageEvent};
use crate::aacp::envelope::Envelope;
use crate::aacp::record::Pair;
use crate::limits;

impl Desk {
    /// One copy for each agent, numbered for each; whose mailbox is full gets none, and the sender is told.
    pub(super) fn copy(
        &mut self,
        tenant: &Tenant,
        envelope: &Envelope,
        agents: Vec<AgentId>,
        around: &Around<'_>,
    ) -> Result<Sent, Stop> {
        let message = envelope.message.clone().unwrap_or_else(|| MessageId::from_uuid((around.fresh)()));
        let mut sent = Sent { message: Some(message.clone()), ..Sent::default() };
        let mut more = envelope.more.clone();
        more.causation_id.get_or_insert_with(|| message.as_str().to_owned());
        for agent in agents {
            let copy = Envelope { message: None, more: more.clone(), ..envelope.clone() };
            let pair =
                Pair { tenant: tenant.clone(), source: envelope.source.clone(), target: agent.clone() };
            if self.check_room(&pair, around).is_err() {
                sent.skipped.push(agent);
                continue;
            }
            let seq = self.state(&pair).receiving.highest() + 1;
            let arrival = self.state(&pair).receiving.judge(seq, limits::WINDOW_REACH);
            let id = MessageId::from_uuid((around.fresh)());
            let row = self.row(&pair, &copy, &id, seq, around);
            self.take_in(&pair, row, true, arrival);
            sent.copies.push((agent, id));
        }
        let mut record = AuditRecord::new(MessageEvent::Sent, tenant, around.by, around.at.now_ms);
        record.agent = Some(envelope.source.clone());
        record.objects.push(message.clone());
        record.objects.extend(sent.copies.iter().map(|(_, copy)| copy.clone()));
        self.audit(record);
        // The message itself is recorded too, so that a repeat of its id is recognised.
        let own =
            Pair { tenant: tenant.clone(), source: envelope.source.clone(), target: envelope.source.clone() };
        let mut row = self.row(&own, envelope, &message, 0, around);
        row.target = target_name(&envelope.target);
        self.note(row);
        Ok(sent)
    }

    pub(super) fn check_room(&self, pair: &Pair, around: &Around<'_>) -> Result<(), Fault> {
        let (inbox, max) = (self.inboxes.get(&pair.to()), around.inbox_messages);
        if inbox.is_none_or(|inbox| inbox.waiting.len() < max) {
            return Ok(());
        }
        // What has expired takes no room, whether it was swept yet or not.
        let is_kept = |waiting: &&Waiting| waiting.expires_ms > around.at.now_ms;
        let waiting = inbox.map_or(0, |inbox| inbox.waiting.values().filter(is_kept).count());
        if waiting < max {
            return Ok(());
        }
        let text = format!("{waiting} messages wait for the agent '{}' already", pair.target);
        Err(Fault::new(Code::ResourceExhausted, text)
            .with("reason", "mailbox_full")
            .with("agentId", pair.target.as_str())
            .with("maxMessages", max)
            .with(RETRY_AFTER_MS, 1000))
    }

    pub(super) fn too_far(&self, pair: &Pair, seq: u64) -> Fault {
        let state = self.state(pair);
        let missing = state.receiving.ack() + 1;
        Fault::new(
            Code::ResourceExhausted,
            format!("/seq: {seq} is too far beyond {missing}, which is missing"),
        )
        .with("reason", "window_exceeded")
        .with("missingSeq", missing)
        .with(RETRY_AFTER_MS, 1000)
    }
}
