//! What a group of wishes needs to know before the desk can decide: pairs, inboxes, requests and messages to read.

use orchestr8_contract::id::{AgentId, MessageId, RequestId, Tenant};

use super::desk::{Ack, Desk, Recipients, Waiting, Wish};
use super::envelope::{Kind, Target};
use super::record::{Address, Pair};

/// What a group of wishes needs to know before the desk can decide.
#[derive(Default)]
pub struct Needs {
    pub pairs: Vec<Pair>,
    pub inboxes: Vec<Address>,
    pub requests: Vec<(Tenant, RequestId)>,
    pub messages: Vec<(Tenant, MessageId)>,
    pub places: Vec<(Pair, u64)>,
}

impl Needs {
    pub fn of(&mut self, wish: &Wish, look: bool) {
        match wish {
            Wish::Send { tenant, envelope, to, .. } => {
                let from = Address { tenant: tenant.clone(), agent: envelope.source.clone() };
                let pair = |target| Pair { tenant: tenant.clone(), source: envelope.source.clone(), target };
                let targets = match (&envelope.target, to) {
                    (Target::Agent(agent), _) => vec![agent.clone()],
                    (Target::Topic(_) | Target::Everyone, Recipients::Copies(agents)) => agents.clone(),
                    (Target::Topic(_) | Target::Everyone, Recipients::One { .. }) => Vec::new(),
                };
                for target in targets {
                    let pair = pair(target);
                    self.inboxes.push(pair.to());
                    if envelope.ack.is_some() {
                        self.pairs.push(pair.back());
                    }
                    self.pairs.push(pair);
                }
                if envelope.ack.is_some() || envelope.kind == Kind::Response {
                    self.inboxes.push(from);
                }
                if let Some(request) = &envelope.request
                    && (look || envelope.kind == Kind::Response)
                {
                    self.requests.push((tenant.clone(), request.clone()));
                }
                if let (Some(id), true) = (&envelope.message, look) {
                    self.messages.push((tenant.clone(), id.clone()));
                }
            }
            Wish::Acknowledge { tenant, agent, what, .. } => {
                self.inboxes.push(Address { tenant: tenant.clone(), agent: agent.clone() });
                if let Ack::Of { source, .. } = what {
                    let (tenant, source, target) = (tenant.clone(), source.clone(), agent.clone());
                    self.pairs.push(Pair { tenant, source, target });
                }
            }
            Wish::Broke { tenant, request, .. } | Wish::Due { tenant, request } => {
                self.requests.push((tenant.clone(), request.clone()));
            }
            Wish::HandedOver { tenant, requests, .. } => {
                self.requests.extend(requests.iter().map(|request| (tenant.clone(), request.clone())));
            }
            Wish::GiveUp { address, .. } | Wish::Retransmit { address, .. } => {
                self.inboxes.push(address.clone());
            }
            Wish::Forget { .. } | Wish::File => {}
        }
    }

    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty() && self.inboxes.is_empty() && self.requests.is_empty()
    }

    /// Leaves what must be read, each once.
    pub fn drop_known(&mut self, desk: &Desk) {
        let mut seen = std::collections::HashSet::new();
        self.pairs.retain(|pair| !desk.pairs.contains_key(pair) && seen.insert(pair.clone()));
        let mut seen = std::collections::HashSet::new();
        self.inboxes.retain(|address| !desk.inboxes.contains_key(address) && seen.insert(address.clone()));
        let mut seen = std::collections::HashSet::new();
        self.requests.retain(|key| !desk.requests.contains_key(key) && seen.insert(key.clone()));
    }
}

/// What of an inbox a wish acknowledges.
pub fn acknowledged(wish: &Wish) -> Option<(Address, Covers<'_>)> {
    match wish {
        Wish::Send { tenant, envelope, .. } => {
            let (Some(ack), Target::Agent(other)) = (envelope.ack, &envelope.target) else { return None };
            let address = Address { tenant: tenant.clone(), agent: envelope.source.clone() };
            Some((address, Covers::Of(other, ack)))
        }
        Wish::Acknowledge { tenant, agent, what, .. } => {
            let covers = match what {
                Ack::Of { source, seq } => Covers::Of(source, *seq),
                Ack::UpTo(position) => Covers::UpTo(*position),
            };
            Some((Address { tenant: tenant.clone(), agent: agent.clone() }, covers))
        }
        Wish::Broke { .. }
        | Wish::HandedOver { .. }
        | Wish::Retransmit { .. }
        | Wish::Due { .. }
        | Wish::GiveUp { .. }
        | Wish::Forget { .. }
        | Wish::File => None,
    }
}

pub enum Covers<'w> {
    Of(&'w AgentId, u64),
    UpTo(u64),
}

impl Covers<'_> {
    pub fn holds(&self, position: u64, waiting: &Waiting) -> bool {
        match self {
            Covers::Of(source, seq) => waiting.source == **source && waiting.seq <= *seq,
            Covers::UpTo(last) => position <= *last,
        }
    }
}

pub fn requested(wish: &Wish) -> Option<(&Tenant, &RequestId)> {
    match wish {
        Wish::Send { tenant, envelope, .. } => Some((tenant, envelope.request.as_ref()?)),
        Wish::Broke { tenant, request, .. } | Wish::Due { tenant, request } => Some((tenant, request)),
        Wish::Acknowledge { .. }
        | Wish::HandedOver { .. }
        | Wish::Retransmit { .. }
        | Wish::GiveUp { .. }
        | Wish::Forget { .. }
        | Wish::File => None,
    }
}

pub fn numbered(wish: &Wish) -> Option<(Pair, u64)> {
    let Wish::Send { tenant, envelope, .. } = wish else { return None };
    let Target::Agent(target) = &envelope.target else { return None };
    let pair = Pair { tenant: tenant.clone(), source: envelope.source.clone(), target: target.clone() };
    Some((pair, envelope.seq?))
}

pub fn placed(wish: &Wish) -> Option<Address> {
    match wish {
        Wish::Acknowledge { tenant, agent, what: Ack::UpTo(_), .. } => {
            Some(Address { tenant: tenant.clone(), agent: agent.clone() })
        }
        Wish::Acknowledge { .. }
        | Wish::Send { .. }
        | Wish::Broke { .. }
        | Wish::HandedOver { .. }
        | Wish::Retransmit { .. }
        | Wish::Due { .. }
        | Wish::GiveUp { .. }
        | Wish::Forget { .. }
        | Wish::File => None,
    }
}
