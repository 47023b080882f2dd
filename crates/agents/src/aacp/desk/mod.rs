//! The desk decides what becomes of each message, without waiting and without a store: what it knows is handed to it, and what
//! it decides is handed back as changes to be written in one commit.

mod accept;
mod copies;
mod follow;
mod requests;

use std::collections::{BTreeMap, HashMap};

use orchestr8_contract::Fault;
use orchestr8_contract::id::{AgentId, MessageId, RequestId, Tenant};
use uuid::Uuid;

use super::audit::{Actor, AuditRecord};
use super::envelope::Envelope;
use super::ledger::{Entry, Moment, RetryPolicy};
use super::record::{Address, Held, Known, Pair, Placed, Write};
use super::window::Receiving;

/// How far one pair of agents has come.
#[derive(Debug, Clone, Default)]
pub struct PairState {
    pub receiving: Receiving,
    /// The target has acknowledged everything up to here.
    pub acked: u64,
    /// What waits behind a gap.
    pub held: BTreeMap<u64, HeldMessage>,
    changed: bool,
}

impl PairState {
    pub fn restore(received: u64, acked: u64, held: BTreeMap<u64, HeldMessage>) -> Self {
        let receiving = Receiving::restore(received, held.keys().copied());
        Self { receiving, acked, held, changed: false }
    }
}

/// A message that waits behind a gap.
#[derive(Debug, Clone)]
pub struct HeldMessage {
    pub message: MessageId,
    /// Which request it brings.
    pub request: Option<RequestId>,
    pub held: Held,
    pub expires_ms: i64,
}

/// What one agent has not acknowledged yet.
#[derive(Debug, Clone, Default)]
pub struct Inbox {
    /// The last place that was given.
    pub last: u64,
    pub waiting: BTreeMap<u64, Waiting>,
    changed: bool,
}

impl Inbox {
    pub fn restore(last: u64, waiting: BTreeMap<u64, Waiting>) -> Self {
        Self { last, waiting, changed: false }
    }

    fn place(&mut self, waiting: Waiting) -> u64 {
        self.last += 1;
        self.waiting.insert(self.last, waiting);
        self.last
    }
}

#[derive(Debug, Clone)]
pub struct Waiting {
    pub source: AgentId,
    pub seq: u64,
    pub message: MessageId,
    /// Which request it brings.
    pub request: Option<RequestId>,
    pub reposted: bool,
    pub expires_ms: i64,
}

impl Inbox {
    /// The requests among what an acknowledgement covers.
    pub fn requests(&self, covers: impl Fn(u64, &Waiting) -> bool) -> impl Iterator<Item = RequestId> {
        let covered = self.waiting.iter().filter(move |(position, waiting)| covers(**position, waiting));
        covered.filter_map(|(_, waiting)| waiting.request.clone())
    }
}

/// Everything the desk knows. The rest is in the store, and is handed in before it matters.
#[derive(Default)]
pub struct Desk {
    pub pairs: HashMap<Pair, PairState>,
    pub inboxes: HashMap<Address, Inbox>,
    pub requests: HashMap<(Tenant, RequestId), Entry>,
    /// What was looked up for this group of messages.
    pub looked: Option<Looked>,
    pub writes: Vec<Write>,
    pub told: Vec<Told>,
    /// Those that have changed since the last commit, each once.
    changed_pairs: Vec<Pair>,
    changed_inboxes: Vec<Address>,
}

/// Messages that were looked for in the store; what is not here is not there.
#[derive(Default)]
pub struct Looked {
    pub messages: HashMap<(Tenant, MessageId), Known>,
    pub places: HashMap<(Pair, u64), Known>,
}

/// What others are told once everything is on record.
#[derive(Debug, Clone)]
pub enum Told {
    /// There is something to read or to do for this agent, at this place of its inbox; without it, in the store only.
    Arrived(Address, u64, Option<Box<Placed>>),
    /// Something is to be done about a request at this moment.
    Asked { due_ms: i64 },
    /// A request has come to its end.
    Settled(Tenant, Box<Entry>),
    /// A message that is no request has come to its end.
    Ended(Tenant, MessageId, Option<Fault>),
}

/// What is wished for.
#[derive(Debug, Clone)]
pub enum Wish {
    Send {
        tenant: Tenant,
        envelope: Box<Envelope>,
        to: Recipients,
        by: Actor,
    },
    Acknowledge {
        tenant: Tenant,
        agent: AgentId,
        what: Ack,
        by: Actor,
    },
    /// The work on a request broke off.
    Broke {
        tenant: Tenant,
        request: RequestId,
        fault: Fault,
        /// How often it was sent to its target.
        transmissions: u32,
    },
    /// The target was handed these requests.
    HandedOver {
        tenant: Tenant,
        requests: Vec<RequestId>,
        how: HandOver,
    },
    /// A message goes to its target once more, in its place, under another id of transmission (AACP-1).
    Retransmit {
        address: Address,
        position: u64,
        sent_as: MessageId,
    },
    /// The moment of a request has come.
    Due {
        tenant: Tenant,
        request: RequestId,
    },
    /// A message could not be brought to its target, and nobody tries any more.
    GiveUp {
        address: Address,
        position: u64,
        fault: Fault,
    },
    /// Everything that was granted before is to be found in the tables.
    File,
    /// These have expired, and are gone from the store.
    Forget {
        messages: Vec<(Address, u64)>,
        requests: Vec<(Tenant, RequestId)>,
    },
}

/// Who gets a message.
#[derive(Debug, Clone)]
pub enum Recipients {
    /// The target, and whether it has an inbox.
    One {
        has_inbox: bool,
    },
    Copies(Vec<AgentId>),
}

/// How a target was handed a request.
#[derive(Debug, Clone, Copy)]
pub enum HandOver {
    /// It read it from its inbox.
    Read,
    /// It was sent so many times.
    Transmitted(u32),
}

/// What an agent says it has.
#[derive(Debug, Clone)]
pub enum Ack {
    /// Everything of one sender, up to a number (AACP-5).
    Of { source: AgentId, seq: u64 },
    /// Everything in its inbox, up to a place.
    UpTo(u64),
}

/// What whoever wished is told.
#[derive(Debug, Clone)]
pub enum Done {
    Sent(Box<Sent>),
    Acknowledged { waiting: usize },
    Noted,
}

/// What became of a message.
#[derive(Debug, Clone, Default)]
pub struct Sent {
    pub message: Option<MessageId>,
    pub request: Option<RequestId>,
    pub seq: u64,
    pub ack: u64,
    pub gaps: Vec<(u64, u64)>,
    pub duplicate: bool,
    pub held: bool,
    pub entry: Option<Entry>,
    pub copies: Vec<(AgentId, MessageId)>,
    /// Those whose mailboxes are full.
    pub skipped: Vec<AgentId>,
}

/// Why a wish was not granted.
#[derive(Debug, Clone)]
pub enum Stop {
    Fault(Fault),
    /// It may be a repeat: look into the store first.
    LookFirst,
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Stop::Fault(fault)
    }
}

/// What decisions need from around them.
pub struct Around<'a> {
    pub at: Moment,
    /// Who causes it.
    pub by: &'a Actor,
    pub policy: &'a dyn RetryPolicy,
    pub fresh: &'a dyn Fn() -> Uuid,
    pub ttl_ms: i64,
    pub timeout_ms: i64,
    pub inbox_messages: usize,
}

impl Desk {
    pub fn decide(&mut self, wish: Wish, around: &Around<'_>) -> Result<Done, Stop> {
        match wish {
            Wish::Send { tenant, envelope, to, by } => {
                let around = &Around { by: &by, ..*around };
                self.send(&tenant, *envelope, to, around).map(|sent| Done::Sent(Box::new(sent)))
            }
            Wish::Acknowledge { tenant, agent, what, by } => {
                let around = &Around { by: &by, ..*around };
                Ok(self.acknowledge(&tenant, &agent, &what, around)?)
            }
            Wish::Broke { tenant, request, fault, transmissions } => {
                self.handed_over(&tenant, &request, HandOver::Transmitted(transmissions), around);
                self.broke(&tenant, &request, fault, around);
                Ok(Done::Noted)
            }
            Wish::HandedOver { tenant, requests, how } => {
                for request in requests {
                    self.handed_over(&tenant, &request, how, around);
                }
                Ok(Done::Noted)
            }
            Wish::Retransmit { address, position, sent_as } => {
                self.retransmit(&address, position, sent_as, around);
                Ok(Done::Noted)
            }
            Wish::Due { tenant, request } => {
                self.due(&tenant, &request, around);
                Ok(Done::Noted)
            }
            Wish::GiveUp { address, position, fault } => {
                self.give_up(&address, position, fault, around);
                Ok(Done::Noted)
            }
            Wish::File => Ok(Done::Noted),
            Wish::Forget { messages, requests } => {
                for (address, position) in messages {
                    if self.inboxes.contains_key(&address) {
                        self.changing_inbox(&address).waiting.remove(&position);
                    }
                }
                for key in requests {
                    self.requests.remove(&key);
                }
                Ok(Done::Noted)
            }
        }
    }

    /// Adds what has changed of pairs and inboxes, once for all messages of the group.
    pub fn finish(&mut self) -> (Vec<Write>, Vec<Told>) {
        let mut writes = std::mem::take(&mut self.writes);
        for pair in std::mem::take(&mut self.changed_pairs) {
            let Some(state) = self.pairs.get_mut(&pair) else { continue };
            state.changed = false;
            writes.push(Write::Pair { received: state.receiving.ack(), acked: state.acked, pair });
        }
        for address in std::mem::take(&mut self.changed_inboxes) {
            let Some(inbox) = self.inboxes.get_mut(&address) else { continue };
            inbox.changed = false;
            let floor = inbox.waiting.first_key_value().map_or(inbox.last, |(position, _)| position - 1);
            writes.push(Write::Inbox { last: inbox.last, floor, address });
        }
        self.looked = None;
        (writes, std::mem::take(&mut self.told))
    }

    /// Puts a change on record.
    fn audit(&mut self, record: AuditRecord) {
        self.writes.push(Write::Audit(Box::new(record)));
    }

    /// The state of a pair that is about to change.
    fn changing_pair(&mut self, pair: &Pair) -> &mut PairState {
        let state = self.pairs.entry(pair.clone()).or_default();
        if !std::mem::replace(&mut state.changed, true) {
            self.changed_pairs.push(pair.clone());
        }
        state
    }

    /// An inbox that is about to change.
    fn changing_inbox(&mut self, address: &Address) -> &mut Inbox {
        let inbox = self.inboxes.entry(address.clone()).or_default();
        if !std::mem::replace(&mut inbox.changed, true) {
            self.changed_inboxes.push(address.clone());
        }
        inbox
    }

    /// Forgets everything: after a failed commit the store knows better, and what is too much is read anew when it matters.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}
