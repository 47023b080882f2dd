//! News for others: what is to be told of a change is on record in the commit of the change, and told until it is heard.

mod deliver;
pub mod tables;

pub use orchestr8_outbound::delivery::{DELIVERY, EVENT};

use orchestr8_kernel::ports::clock::iso;
use serde_json::json;
use uuid::Uuid;

use crate::record::{Document, Op};

/// What webhooks may be told of.
pub const EVENTS: [&str; 4] = ["document.created", "document.updated", "document.deleted", "document.moved"];

/// Stands in the place of a secret that is in the vault.
pub const IN_VAULT: &str = "vault:v1";

/// The event of a change. A document that is back counts as new to those who were told that it is gone.
pub fn event_of(op: Op) -> &'static str {
    match op {
        Op::Create | Op::Restore => EVENTS[0],
        Op::Update => EVENTS[1],
        Op::Delete => EVENTS[2],
        Op::Move => EVENTS[3],
    }
}

/// One change, for others to know.
pub struct News<'a> {
    pub tenant: &'a str,
    pub author: &'a str,
    pub id: Uuid,
    pub document: &'a Document,
    pub op: Op,
}

impl News<'_> {
    pub fn event(&self) -> &'static str {
        event_of(self.op)
    }

    pub fn body(&self) -> String {
        json!({"id": self.id, "event": self.event(), "tenant_id": self.tenant, "document_id": self.document.id,
               "revision": self.document.revision, "parent_id": self.document.parent, "title": self.document.title,
               "op": self.op.as_str(), "by": self.author, "at": iso(self.document.updated_ms)})
        .to_string()
    }
}
