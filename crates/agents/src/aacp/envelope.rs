//! The envelope of a message between agents, in both shapes it comes in; one shape goes out.
//!
//! The seed's shape names `messageId`, `sourceAgentId` and `targetAgentId`. The later one names `id`, `source.id` and
//! `destination`, which may also be a topic or everybody. Whatever a message came as, it is handed on as the seed has it.

use orchestr8_contract::Fault;
use orchestr8_contract::error::StoredFault;
use orchestr8_contract::id::{AgentId, Invalid, MessageId, RequestId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::{Uuid, Variant, Version};

use super::members::{Members, SEQ_MAX};
use crate::limits;

/// What sort of message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Kind {
    Request,
    Response,
    Event,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Request, Kind::Response, Kind::Event];

    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Request => "REQUEST",
            Kind::Response => "RESPONSE",
            Kind::Event => "EVENT",
        }
    }
}

/// Whom a message is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Agent(AgentId),
    /// Every agent that listens to the topic.
    Topic(String),
    /// Every agent but the sender.
    Everyone,
}

/// A message as its sender gave it.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    /// None: one is made.
    pub message: Option<MessageId>,
    pub request: Option<RequestId>,
    pub source: AgentId,
    pub target: Target,
    /// None: the sender does not number its messages, and gets the next number.
    pub seq: Option<u64>,
    pub ack: Option<u64>,
    pub kind: Kind,
    pub payload: Value,
    /// In a response: why there is no payload.
    pub error: Option<StoredFault>,
    pub ttl_ms: Option<i64>,
    /// The moment until which it is kept; it goes before `ttl_ms`.
    pub expires_ms: Option<i64>,
    pub timeout_ms: Option<i64>,
    /// In the response of an agent that was called: how often its request was sent to it.
    pub transmissions: u32,
    pub more: More,
}

/// What is handed on as it came.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct More {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub causation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Value>,
}

/// Every member that a message may have.
pub const MEMBERS: [&str; 23] = [
    "messageId",
    "requestId",
    "sourceAgentId",
    "targetAgentId",
    "topic",
    "seq",
    "ack",
    "messageType",
    "timestamp",
    "payload",
    "outcome",
    "error",
    "timeoutMs",
    "ttlMs",
    "expiresAt",
    "id",
    "type",
    "source",
    "destination",
    "correlationId",
    "causationId",
    "ttl",
    "priority",
];

/// What the seed's shape and the later one call the same.
const SHAPES: [(&str, &str); 5] = [
    ("messageId", "id"),
    ("sourceAgentId", "source"),
    ("targetAgentId", "destination"),
    ("topic", "destination"),
    ("ttlMs", "ttl"),
];

/// The name that stands for every agent.
pub const EVERYONE: &str = "*";

impl Envelope {
    /// Reads either shape; what is wrong is named with its path.
    pub fn read(mut map: Map<String, Value>) -> Result<Self, Fault> {
        if let Some(name) = map.keys().find(|name| !MEMBERS.contains(&name.as_str())) {
            let shown: String = name.chars().take(64).collect();
            return Err(wrong(&format!("/{shown}"), "there is no such member in a message"));
        }
        let payload = map.remove("payload").unwrap_or_default();
        let members = Members(&map);
        let later = ["id", "source", "destination"].iter().any(|name| map.contains_key(*name));
        if let Some((name, later_name)) = SHAPES.iter().find(|(name, _)| later && map.contains_key(*name)) {
            return Err(wrong(&format!("/{name}"), &format!("the later shape calls it {later_name}")));
        }
        let message: Option<MessageId> =
            members.id(if later { "id" } else { "messageId" }, MessageId::parse)?;
        let kind = members.kind(later)?;
        let causation = members.text("causationId", CHAIN_LETTERS)?;
        let correlation = members.text("correlationId", CHAIN_LETTERS)?;
        let mut request = members.id("requestId", RequestId::parse)?;
        if later && request.is_none() {
            let stands_in = match kind {
                Kind::Request => message.as_ref().map(|id| id.as_str().to_owned()),
                Kind::Response => causation.clone().or_else(|| correlation.clone()),
                Kind::Event => None,
            };
            request = stands_in
                .map(|id| RequestId::parse(&id).map_err(|why| named("/requestId", &why)))
                .transpose()?;
        }
        let envelope = Self {
            message,
            request,
            source: members.source(later)?,
            target: members.target(later)?,
            seq: members.number("seq", 1, SEQ_MAX)?,
            ack: members.number("ack", 0, SEQ_MAX)?,
            kind,
            payload,
            error: members.error()?,
            ttl_ms: members.span(if later { "ttl" } else { "ttlMs" }, limits::TTL_MAX_MS)?,
            expires_ms: members.moment("expiresAt")?.map(|(_, ms)| ms),
            timeout_ms: members.span("timeoutMs", limits::REQUEST_TIMEOUT_MAX_MS)?,
            transmissions: 0,
            more: More {
                timestamp: members.moment("timestamp")?.map(|(text, _)| text),
                correlation_id: correlation,
                causation_id: causation,
                priority: map.get("priority").filter(|value| !value.is_null()).cloned(),
            },
        };
        envelope.check()?;
        Ok(envelope)
    }

    /// Until when a message that is accepted now is kept: until `expiresAt`, or for `ttlMs`, or for the usual time.
    pub fn expiry(&self, now_ms: i64, usual_ms: i64) -> Result<i64, Fault> {
        let by_ttl = now_ms.saturating_add(self.ttl_ms.unwrap_or(usual_ms));
        let Some(expires_ms) = self.expires_ms else { return Ok(by_ttl) };
        if expires_ms <= now_ms {
            return Err(wrong("/expiresAt", "is over already"));
        }
        if expires_ms.saturating_sub(now_ms) > limits::TTL_MAX_MS {
            let most = limits::TTL_MAX_MS;
            return Err(wrong("/expiresAt", &format!("must be at most {most} milliseconds from now")));
        }
        if self.ttl_ms.is_some() && by_ttl.abs_diff(expires_ms) > limits::EXPIRY_AGREES_MS {
            return Err(wrong("/expiresAt", "contradicts the TTL of the message; give one of them"));
        }
        Ok(expires_ms)
    }

    fn check(&self) -> Result<(), Fault> {
        match (self.kind, &self.request) {
            (Kind::Response, None) => {
                return Err(wrong("/requestId", "a RESPONSE names the request it answers (AACP-4)"));
            }
            (Kind::Event, Some(_)) => return Err(wrong("/requestId", "an EVENT has none")),
            (Kind::Request | Kind::Response, _) | (Kind::Event, None) => {}
        }
        if self.error.is_some() && self.kind != Kind::Response {
            return Err(wrong("/error", "only a RESPONSE has an outcome"));
        }
        match &self.target {
            Target::Agent(_) => Ok(()),
            Target::Topic(_) | Target::Everyone if self.kind != Kind::Event => {
                Err(wrong("/messageType", "only an EVENT can go to several agents"))
            }
            Target::Topic(_) | Target::Everyone if self.seq.is_some() || self.ack.is_some() => {
                Err(wrong("/seq", "a message to several agents is numbered for each of them by the server"))
            }
            Target::Topic(_) | Target::Everyone => Ok(()),
        }
    }
}

/// Checks that the ids which a client chooses are UUIDs of version 4 (AACP-1, AACP-2). The later shape has ids of its own, and a
/// RESPONSE names the request as that was named.
pub fn check_ids(map: &Map<String, Value>) -> Result<(), Fault> {
    if ["id", "source", "destination"].iter().any(|name| map.contains_key(*name)) {
        return Ok(());
    }
    let is_response = map.get("messageType").and_then(Value::as_str) == Some(Kind::Response.as_str());
    for name in ["messageId", "requestId"] {
        let Some(Value::String(id)) = map.get(name) else { continue };
        let is_chosen = name == "messageId" || !is_response;
        if is_chosen && !is_uuid_v4(id) {
            let what = "must be a UUID of version 4, such as 0f8fad5b-d9cb-469f-a165-70867728950e";
            return Err(wrong(&format!("/{name}"), what));
        }
    }
    Ok(())
}

/// In the usual form: 36 characters with hyphens.
fn is_uuid_v4(id: &str) -> bool {
    let is_usual = id.len() == 36 && id.as_bytes().get(8) == Some(&b'-');
    is_usual
        && Uuid::try_parse(id)
            .is_ok_and(|id| id.get_version() == Some(Version::Random) && id.get_variant() == Variant::RFC4122)
}

/// A message as it is recorded and handed on.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Written<'a> {
    pub message_id: &'a MessageId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<&'a RequestId>,
    pub source_agent_id: &'a AgentId,
    pub target_agent_id: &'a AgentId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<&'a str>,
    pub seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack: Option<u64>,
    pub message_type: Kind,
    pub timestamp: &'a str,
    pub payload: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a StoredFault>,
    #[serde(flatten)]
    pub more: More,
}

const CHAIN_LETTERS: usize = 256;
const AGENT_CODE_LETTERS: usize = 128;

/// The error another agent tells of: with a code of ours if it has one, else as a failure of its own.
pub fn told(error: Option<&Value>) -> StoredFault {
    use orchestr8_contract::Code;
    let text = |name: &str| error.and_then(|error| error.get(name)).and_then(Value::as_str);
    let code = text("code").and_then(|name| Code::ALL.iter().find(|code| code.as_str() == name)).copied();
    let message = text("message").or_else(|| error.and_then(Value::as_str)).unwrap_or("the agent failed");
    let mut details = error.and_then(|error| error.get("details")).and_then(Value::as_object).cloned();
    // A code that is not ours is kept beside ours, for the source to branch on.
    if let (None, Some(theirs)) = (code, text("code")) {
        let theirs: String = theirs.chars().filter(|c| !c.is_control()).take(AGENT_CODE_LETTERS).collect();
        details.get_or_insert_default().insert(String::from("agentCode"), theirs.into());
    }
    StoredFault {
        code: code.unwrap_or(Code::AgentFailed),
        message: message.to_owned(),
        details,
        envelope: None,
        category: None,
    }
}

pub(super) fn named(path: &str, why: &Invalid) -> Fault {
    wrong(path, &why.to_string())
}

/// What is wrong with a message, with its path.
pub fn wrong(path: &str, what: &str) -> Fault {
    Fault::invalid(format!("{path}: {what}")).with("path", path)
}
