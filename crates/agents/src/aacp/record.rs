//! What the store is told: each change as data, decided by the desk and written in one commit.

use std::sync::Arc;

use orchestr8_contract::error::StoredFault;
use orchestr8_contract::id::{AgentId, MessageId, RequestId, Tenant};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::audit::AuditRecord;
use super::envelope::Kind;
use super::ledger::{Entry, Status};

/// One agent of one tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
pub struct Address {
    pub tenant: Tenant,
    pub agent: AgentId,
}

/// Two agents of one tenant, in the direction of their messages.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
pub struct Pair {
    pub tenant: Tenant,
    pub source: AgentId,
    pub target: AgentId,
}

impl Pair {
    pub fn back(&self) -> Pair {
        Pair { tenant: self.tenant.clone(), source: self.target.clone(), target: self.source.clone() }
    }

    pub fn from(&self) -> Address {
        Address { tenant: self.tenant.clone(), agent: self.source.clone() }
    }

    pub fn to(&self) -> Address {
        Address { tenant: self.tenant.clone(), agent: self.target.clone() }
    }
}

/// Whether a message waits behind a gap, and for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Held {
    No,
    /// To be handed on once the gap is filled.
    ToPlace,
    /// To be counted only.
    ToCount,
}

impl Held {
    pub fn as_int(self) -> i64 {
        match self {
            Held::No => 0,
            Held::ToPlace => 1,
            Held::ToCount => 2,
        }
    }
}

/// One message as it is stored.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Row {
    pub tenant: Tenant,
    pub message: MessageId,
    pub source: AgentId,
    pub target: String,
    pub seq: u64,
    pub kind: Kind,
    pub request: Option<RequestId>,
    /// The envelope as it is handed on.
    pub text: String,
    /// Its place in the inbox of the target, if it is to be read there.
    pub position: Option<u64>,
    pub held: Held,
    pub created_ms: i64,
    pub expires_ms: i64,
}

/// What waits in the tail is written without the names of its fields, in their order: it is written for every message, and read
/// only after a crash. With the names, as it was once written, it is read too.
impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&self.tenant, &self.agent).serialize(serializer)
    }
}

impl Serialize for Pair {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&self.tenant, &self.source, &self.target).serialize(serializer)
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { tenant, message, source, target, seq, kind, request, text, .. } = self;
        let Self { position, held, created_ms, expires_ms, .. } = self;
        (tenant, message, source, target, seq, kind, request, text, position, held, created_ms, expires_ms)
            .serialize(serializer)
    }
}

/// One change. What was not filed yet is stored in this shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Write {
    Message(Box<Row>),
    /// A message waits no longer behind a gap.
    Release {
        tenant: Tenant,
        message: MessageId,
        position: Option<u64>,
    },
    /// A message that was acknowledged is handed to the target once more, under a new id of transmission (AACP-1).
    Repost {
        tenant: Tenant,
        message: MessageId,
        position: u64,
        sent_as: MessageId,
    },
    /// The end of a single message, whatever was acknowledged before it.
    Ended {
        tenant: Tenant,
        message: MessageId,
        status: Status,
        error: Option<StoredFault>,
    },
    Request {
        tenant: Tenant,
        entry: Entry,
        is_new: bool,
    },
    Pair {
        pair: Pair,
        received: u64,
        acked: u64,
    },
    Inbox {
        address: Address,
        last: u64,
        /// Everything up to here was acknowledged.
        floor: u64,
    },
    /// Who did it, for the audit chain.
    Audit(Box<AuditRecord>),
}

/// What is known of a message that came before, to tell a repeat from another message.
#[derive(Debug, Clone)]
pub struct Known {
    pub message: MessageId,
    pub source: AgentId,
    pub target: String,
    pub kind: Kind,
    pub request: Option<RequestId>,
    pub seq: u64,
    pub payload: Arc<Value>,
}

/// A message that has just got its place in an inbox.
#[derive(Debug, Clone)]
pub struct Placed {
    pub source: AgentId,
    pub seq: u64,
    pub kind: Kind,
    pub request: Option<RequestId>,
    pub expires_ms: i64,
    /// The envelope as it is handed on.
    pub text: String,
}

impl Placed {
    pub fn of(row: &Row) -> Self {
        Self {
            source: row.source.clone(),
            seq: row.seq,
            kind: row.kind,
            request: row.request.clone(),
            expires_ms: row.expires_ms,
            text: row.text.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What an earlier version left in the tail.
    #[test]
    fn changes_are_read_with_and_without_the_names_of_their_fields() {
        let named = json!([
            {"request": {"tenant": "local", "entry": {
                "request": "r-1", "source": "asker", "target": "worker", "message": "m-1", "seq": 39, "status": "COMPLETED",
                "attempts": 1, "timeout_ms": 30000, "due_ms": null, "asked_ms": 5, "ended_ms": 7, "expires_ms": 9, "late": false,
                "answer": {"payload": {"done": true}}}, "is_new": false}},
            {"message": {
                "tenant": "local", "message": "m-2", "source": "worker", "target": "asker", "seq": 40, "kind": "RESPONSE",
                "request": "r-1", "text": "{\"a\":1}", "position": null, "held": "no", "created_ms": 1, "expires_ms": 2}},
            {"pair": {"pair": {"tenant": "local", "source": "worker", "target": "asker"}, "received": 40, "acked": 0}},
            {"inbox": {"address": {"tenant": "local", "agent": "worker"}, "last": 3, "floor": 1}},
        ]);
        let writes: Vec<Write> = serde_json::from_value(named).unwrap();
        let written = serde_json::to_string(&writes).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Write>>(&written).unwrap(), writes);
        assert!(!written.contains("asked_ms") && written.contains("r-1"), "{written}");
    }
}
