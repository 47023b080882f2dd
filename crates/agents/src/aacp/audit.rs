//! The audit records of messages: who sent, who acknowledged, what the server gave up.
//!
//! A record is decided with the change it is about and is durable in the same commit, as a part of the row in the tail. When the
//! tail is filed, all records of a tenant become one entry of the audit chain, so that a message costs no row and no page of its
//! own (ADR 37).

use std::borrow::Cow;
use std::sync::Arc;

use orchestr8_contract::Code;
use orchestr8_contract::id::{AgentId, MessageId, RequestId, Tenant};
use orchestr8_kernel::audit::CHAIN;
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::store::Link;
use orchestr8_kernel::{Context, Source, Transport};
use serde::{Deserialize, Serialize, Serializer};

use super::ledger::Status;
use crate::limits;

/// What the entry of many records is called.
pub const ACTION: &str = "aacp.messages";

/// The principal of what the server does by itself.
const SERVER: &str = "server";

/// The principal that causes a change, and from where it asks.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Actor {
    pub principal: Arc<str>,
    pub transport: Cow<'static, str>,
    pub face: Cow<'static, str>,
    pub source: Cow<'static, str>,
}

impl Actor {
    pub fn new(principal: Arc<str>, transport: Transport, source: Source) -> Self {
        Self {
            principal,
            transport: transport.as_str().into(),
            face: source.face.into(),
            source: source.origin.to_string().into(),
        }
    }

    pub fn of(context: &Context) -> Self {
        Self::new(context.principal.name.clone(), context.transport, context.source)
    }

    /// The server: it delivers, counts time and deletes.
    pub fn server() -> Self {
        Self {
            principal: SERVER.into(),
            transport: Transport::Internal.as_str().into(),
            face: Source::SERVER.face.into(),
            source: SERVER.into(),
        }
    }
}

/// As the other records of the tail, without the names of its fields.
impl Serialize for Actor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&self.principal, &self.transport, &self.face, &self.source).serialize(serializer)
    }
}

/// What happened to messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MessageEvent {
    Sent,
    Acknowledged,
    /// A request was not answered in time, or the work on it broke off.
    Unanswered,
    /// A request is handed to its target once more.
    Redelivered,
    /// It could not be delivered, and is not tried again.
    GivenUp,
    /// It was deleted for its age.
    Expired,
}

impl MessageEvent {
    fn action(self) -> &'static str {
        match self {
            MessageEvent::Sent => "aacp.send",
            MessageEvent::Acknowledged => "aacp.ack",
            MessageEvent::Unanswered => "aacp.unanswered",
            MessageEvent::Redelivered => "aacp.redeliver",
            MessageEvent::GivenUp => "aacp.give_up",
            MessageEvent::Expired => "aacp.expire",
        }
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct AuditRecord {
    pub at_ms: i64,
    pub event: MessageEvent,
    pub tenant: Tenant,
    pub by: Actor,
    /// The agent in whose name it was done.
    pub agent: Option<AgentId>,
    /// The messages it is about; of an answer also the request's.
    pub objects: Vec<MessageId>,
    pub request: Option<RequestId>,
    /// How the request stands after it.
    pub outcome: Option<Status>,
    pub error: Option<Code>,
}

impl AuditRecord {
    pub fn new(event: MessageEvent, tenant: &Tenant, by: &Actor, at_ms: i64) -> Self {
        Self {
            at_ms,
            event,
            tenant: tenant.clone(),
            by: by.clone(),
            agent: None,
            objects: Vec::new(),
            request: None,
            outcome: None,
            error: None,
        }
    }

    /// Names a message, once.
    pub fn name(&mut self, message: MessageId) {
        if !self.objects.contains(&message) {
            self.objects.push(message);
        }
    }
}

impl Serialize for AuditRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { at_ms, event, tenant, by, agent, objects, request, outcome, error } = self;
        (at_ms, event, tenant, by, agent, objects, request, outcome, error).serialize(serializer)
    }
}

/// A record as it stands in an entry, its members in the order of canonical JSON.
#[derive(Serialize)]
struct RecordJson<'a> {
    action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a AgentId>,
    end: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<Code>,
    face: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<&'a MessageId>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    objects: &'a [MessageId],
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Status>,
    principal: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<&'a RequestId>,
    source: &'a str,
    tenant: &'a Tenant,
    timestamp: String,
    transport: &'a str,
}

impl<'a> RecordJson<'a> {
    fn of(record: &'a AuditRecord, objects: &'a [MessageId]) -> Self {
        Self {
            action: record.event.action(),
            agent: record.agent.as_ref(),
            end: if record.error.is_some() { "tool_error" } else { "success" },
            error_code: record.error,
            face: &record.by.face,
            object: objects.first(),
            // One that stands alone needs no list.
            objects: if objects.len() > 1 { objects } else { &[] },
            outcome: record.outcome,
            principal: &record.by.principal,
            request: record.request.as_ref(),
            source: &record.by.source,
            tenant: &record.tenant,
            timestamp: iso(record.at_ms),
            transport: &record.by.transport,
        }
    }
}

/// An entry of many records, its members in the order of canonical JSON.
#[derive(Serialize)]
struct EntryJson<'a> {
    action: &'static str,
    end: &'static str,
    face: &'static str,
    principal: &'static str,
    records: &'a [RecordJson<'a>],
    result: &'static str,
    source: &'static str,
    tenant: &'a Tenant,
    timestamp: String,
    tool_name: &'static str,
    transport: &'static str,
}

/// The entries of some records: one for each tenant, or more where there are many.
pub fn links(records: &[AuditRecord], at_ms: i64) -> Vec<Link> {
    let mut tenants: Vec<&Tenant> = Vec::new();
    for record in records {
        if !tenants.contains(&&record.tenant) {
            tenants.push(&record.tenant);
        }
    }
    let mut links = Vec::new();
    for tenant in tenants {
        let own = records.iter().filter(|record| record.tenant == *tenant);
        let pieces: Vec<RecordJson<'_>> = own.flat_map(pieces).collect();
        links.extend(pieces.chunks(limits::AUDIT_RECORDS).map(|records| link(tenant, records, at_ms)));
    }
    links
}

/// A record about very many messages stands in pieces.
fn pieces(record: &AuditRecord) -> Vec<RecordJson<'_>> {
    match record.objects.len() <= limits::AUDIT_OBJECTS {
        true => vec![RecordJson::of(record, &record.objects)],
        false => record
            .objects
            .chunks(limits::AUDIT_OBJECTS)
            .map(|objects| RecordJson::of(record, objects))
            .collect(),
    }
}

fn link(tenant: &Tenant, records: &[RecordJson<'_>], at_ms: i64) -> Link {
    let entry = EntryJson {
        action: ACTION,
        end: "success",
        face: Source::SERVER.face,
        principal: SERVER,
        records,
        result: "success",
        source: SERVER,
        tenant,
        timestamp: iso(at_ms),
        tool_name: ACTION,
        transport: Transport::Internal.as_str(),
    };
    // Texts and numbers always serialize.
    Link { chain: CHAIN.into(), at_ms, body: serde_json::to_string(&entry).unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use orchestr8_contract::canonical;
    use serde_json::Value;

    use super::*;

    fn record(tenant: &str, objects: usize) -> AuditRecord {
        let by =
            Actor::new("ann".into(), Transport::Http, Source::request("messaging", "10.0.0.7".parse().ok()));
        let mut record = AuditRecord::new(MessageEvent::Sent, &Tenant::parse(tenant).unwrap(), &by, 1_000);
        record.agent = AgentId::parse("asker").ok();
        record.objects = (0..objects).map(|n| MessageId::parse(&format!("m-{n}")).unwrap()).collect();
        record
    }

    #[test]
    fn records_read_back_as_the_tail_has_them() {
        let mut full = record("local", 2);
        full.request = RequestId::parse("r-1").ok();
        (full.outcome, full.error) = (Some(Status::Failed), Some(Code::Unavailable));
        for record in [full, record("local", 0)] {
            let text = serde_json::to_string(&record).unwrap();
            assert_eq!(serde_json::from_str::<AuditRecord>(&text).unwrap(), record);
        }
    }

    #[test]
    fn entries_are_canonical_json_one_for_each_tenant() {
        let links = links(&[record("a", 1), record("b", 1), record("a", 3)], 2_000);
        assert_eq!(links.len(), 2);
        for link in &links {
            let value: Value = serde_json::from_str(&link.body).unwrap();
            assert_eq!(canonical::text(&value), link.body);
        }
        let first: Value = serde_json::from_str(&links[0].body).unwrap();
        assert_eq!(first["records"].as_array().unwrap().len(), 2);
        let sent = &first["records"][0];
        assert_eq!(
            (&sent["object"], &sent["principal"], &sent["source"]),
            (&"m-0".into(), &"ann".into(), &"10.0.0.7".into())
        );
        assert!(sent.get("objects").is_none());
        assert_eq!(first["records"][1]["objects"][2], "m-2");
    }

    #[test]
    fn no_record_and_no_entry_grows_without_a_limit() {
        let large = record("a", limits::AUDIT_OBJECTS * 2 + 1);
        let many: Vec<AuditRecord> =
            (0..limits::AUDIT_RECORDS).map(|_| record("a", 1)).chain([large]).collect();
        let sizes: Vec<usize> = links(&many, 0)
            .iter()
            .map(|link| {
                serde_json::from_str::<Value>(&link.body).unwrap()["records"].as_array().unwrap().len()
            })
            .collect();
        assert_eq!(sizes, [limits::AUDIT_RECORDS, 3]);
    }
}
