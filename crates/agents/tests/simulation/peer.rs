//! An agent elsewhere: what it remembers over its crashes, and what it makes of what it reads.

use std::collections::{BTreeMap, BTreeSet};

use orchestr8_agents::aacp::{Arrival, Receiving, Sending};
use serde_json::{Value, json};

/// What the agent has written down.
#[derive(Clone, Default)]
pub struct Memory {
    /// Its numbering, for each other agent.
    sending: BTreeMap<String, Sending>,
    /// What it has not been told is at the server, by target and number.
    outbox: BTreeMap<(String, u64), Value>,
    /// The answers to requests it has worked on: none is worked on twice.
    answered: BTreeMap<String, Value>,
    /// What has arrived, for each other agent.
    received: BTreeMap<String, Receiving>,
    /// Outcomes of its own requests.
    pub outcomes: BTreeMap<String, Value>,
    /// How far it has read its inbox.
    pub read: u64,
    pub acked: u64,
}

pub struct Peer {
    pub name: String,
    pub memory: Memory,
    /// How often the work of a request was done, in the world outside.
    pub executed: BTreeMap<String, usize>,
    /// The places at which it read each request: every one is an attempt.
    pub read_at: BTreeMap<String, BTreeSet<u64>>,
    /// Numbers that the network ever brought to the server, by target.
    pub reached: BTreeMap<String, BTreeSet<u64>>,
    /// It cannot be reached for so many turns.
    pub parted: u32,
    pub broken: Vec<String>,
}

impl Peer {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            memory: Memory::default(),
            executed: BTreeMap::new(),
            read_at: BTreeMap::new(),
            reached: BTreeMap::new(),
            parted: 0,
            broken: Vec::new(),
        }
    }

    /// Writes down a message, with its number, to be sent until the server has it.
    pub fn post(&mut self, target: &str, mut envelope: Value) {
        let seq = self.memory.sending.entry(target.to_owned()).or_default().take();
        envelope["sourceAgentId"] = self.name.as_str().into();
        envelope["targetAgentId"] = target.into();
        envelope["seq"] = seq.into();
        self.memory.outbox.insert((target.to_owned(), seq), envelope);
    }

    /// What is still to be sent.
    pub fn unsent(&self) -> Vec<(String, u64)> {
        self.memory.outbox.keys().cloned().collect()
    }

    /// A transmission: the same number and request, sometimes under another message id (AACP-RETRY).
    pub fn transmission(&self, key: &(String, u64), id: Option<String>) -> Option<Value> {
        let mut envelope = self.memory.outbox.get(key)?.clone();
        if let Some(id) = id {
            envelope["messageId"] = id.into();
        }
        Some(envelope)
    }

    pub fn brought(&mut self, (target, seq): &(String, u64)) {
        self.reached.entry(target.clone()).or_default().insert(*seq);
    }

    /// The server says how far it has everything.
    pub fn acknowledged(&mut self, target: &str, ack: u64) {
        let empty = BTreeSet::new();
        let reached = self.reached.get(target).unwrap_or(&empty);
        let prefix = (1..).take_while(|seq| reached.contains(seq)).last().unwrap_or(0);
        if ack > prefix {
            self.broken.push(format!(
                "{} -> {target}: ack {ack} passes the gap at {}",
                self.name,
                prefix + 1
            ));
        }
        self.memory.sending.entry(target.to_owned()).or_default().acknowledge(ack);
        self.memory.outbox.retain(|(to, seq), _| to != target || *seq > ack);
    }

    /// Reads one message of its inbox and does what it asks. All of it is written down at once, or nothing.
    pub fn take(&mut self, position: u64, envelope: &Value, swallows: impl Fn(&str) -> bool) {
        let text = |name: &str| envelope[name].as_str().unwrap_or_default().to_owned();
        let (source, seq) = (text("sourceAgentId"), envelope["seq"].as_u64().unwrap_or(0));
        match self.memory.received.entry(source.clone()).or_default().receive(seq, u64::MAX) {
            Arrival::InOrder { .. } | Arrival::Duplicate => {}
            Arrival::BeyondGap | Arrival::TooFar => {
                self.broken.push(format!("{source} -> {}: {seq} came before what precedes it", self.name));
            }
        }
        self.memory.read = self.memory.read.max(position);
        let request = text("requestId");
        if text("messageType") == "REQUEST" {
            self.read_at.entry(request.clone()).or_default().insert(position);
        }
        match text("messageType").as_str() {
            "REQUEST" if swallows(&request) => {}
            "REQUEST" => self.work(&source, &request, &envelope["payload"]),
            "RESPONSE" => {
                let first = self
                    .memory
                    .outcomes
                    .entry(request.clone())
                    .or_insert_with(|| envelope["payload"].clone());
                if *first != envelope["payload"] {
                    self.broken.push(format!("{request} has two answers"));
                }
            }
            _ => {}
        }
    }

    /// The receiver looks for the request first, and works only on what it does not know (AACP-6).
    fn work(&mut self, source: &str, request: &str, payload: &Value) {
        if self.memory.answered.contains_key(request) {
            return;
        }
        *self.executed.entry(request.to_owned()).or_default() += 1;
        let answer = json!({"done": payload});
        self.memory.answered.insert(request.to_owned(), answer.clone());
        self.post(source, json!({"messageType": "RESPONSE", "requestId": request, "payload": answer}));
    }
}
