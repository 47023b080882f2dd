//! The envelope of a message between agents, in both shapes it comes in; one shape goes out.
//!
//! The seed's shape names `messageId`, `sourceAgentId` and `targetAgentId`. The later one names `id`, `source.id` and
//! `destination`, which may also be a topic or everybody. Whatever a message came as, it is handed on as the seed has it.

use orchestr8_contract::Fault;
use orchestr8_contract::error::StoredFault;
use orchestr8_contract::id::{AgentId, Invalid, MessageId, RequestId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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
    pub timeout_ms: Option<i64>,
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
pub const MEMBERS: [&str; 22] = [
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
            timeout_ms: members.span("timeoutMs", limits::REQUEST_TIMEOUT_MAX_MS)?,
            more: More {
                timestamp: members.text("timestamp", 64)?,
                correlation_id: correlation,
                causation_id: causation,
                priority: map.get("priority").filter(|value| !value.is_null()).cloned(),
            },
        };
        envelope.check()?;
        Ok(envelope)
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

const SEQ_MAX: u64 = 1 << 53;
const CHAIN_LETTERS: usize = 256;

struct Members<'m>(&'m Map<String, Value>);

impl Members<'_> {
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn text(&self, name: &str, letters: usize) -> Result<Option<String>, Fault> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let fit = |text: &&str| {
            (1..=letters).contains(&text.chars().count()) && !text.chars().any(char::is_control)
        };
        match value.as_str().filter(fit) {
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(wrong(&format!("/{name}"), &format!("must be 1 to {letters} printable characters"))),
        }
    }

    fn id<T>(&self, name: &str, parse: fn(&str) -> Result<T, Invalid>) -> Result<Option<T>, Fault> {
        let path = format!("/{name}");
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => parse(text).map(Some).map_err(|why| named(&path, &why)),
            Some(_) => Err(wrong(&path, "must be a text")),
        }
    }

    fn number(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>, Fault> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.as_u64().filter(|number| (least..=most).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(wrong(&format!("/{name}"), &format!("must be a whole number, at least {least}"))),
        }
    }

    /// A length of time in milliseconds.
    fn span(&self, name: &str, most_ms: i64) -> Result<Option<i64>, Fault> {
        let most = most_ms.unsigned_abs();
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.as_u64().filter(|ms| (1..=most).contains(ms)).and_then(|ms| i64::try_from(ms).ok()) {
            Some(ms) => Ok(Some(ms)),
            None => Err(wrong(&format!("/{name}"), &format!("must be milliseconds from 1 to {most}"))),
        }
    }

    fn kind(&self, later: bool) -> Result<Kind, Fault> {
        let name = if later && self.get("messageType").is_none() { "type" } else { "messageType" };
        let word = match self.get(name) {
            None if later => return Ok(Kind::Event),
            None => return Err(wrong("/messageType", "is missing: REQUEST, RESPONSE or EVENT")),
            Some(value) => value.as_str().unwrap_or_default(),
        };
        let known = Kind::ALL.into_iter().find(|kind| match later {
            true => kind.as_str().eq_ignore_ascii_case(word),
            false => kind.as_str() == word,
        });
        known.ok_or_else(|| wrong(&format!("/{name}"), "must be REQUEST, RESPONSE or EVENT"))
    }

    fn source(&self, later: bool) -> Result<AgentId, Fault> {
        let (path, value) = match (later, self.get("source")) {
            (true, Some(Value::Object(source))) => ("/source/id", source.get("id").cloned()),
            (true, other) => ("/source", other.cloned()),
            (false, _) => ("/sourceAgentId", self.get("sourceAgentId").cloned()),
        };
        agent(path, value.as_ref())
    }

    fn target(&self, later: bool) -> Result<Target, Fault> {
        if !later {
            return match (self.get("targetAgentId"), self.text("topic", limits::TOPIC_LETTERS)?) {
                (Some(_), Some(_)) => Err(wrong("/topic", "give targetAgentId or topic, not both")),
                (None, Some(topic)) => Ok(Target::Topic(topic)),
                (Some(Value::String(name)), None) if name == EVERYONE => Ok(Target::Everyone),
                (value, None) => agent("/targetAgentId", value).map(Target::Agent),
            };
        }
        let Some(Value::Object(destination)) = self.get("destination") else {
            return agent("/destination", self.get("destination")).map(Target::Agent);
        };
        let inner = Members(destination);
        match inner.get("type").and_then(Value::as_str).unwrap_or("agent") {
            "agent" => agent("/destination/agentId", inner.get("agentId")).map(Target::Agent),
            "topic" => match inner.text("topic", limits::TOPIC_LETTERS)? {
                Some(topic) => Ok(Target::Topic(topic)),
                None => Err(wrong("/destination/topic", "is missing")),
            },
            "broadcast" => Ok(Target::Everyone),
            _ => Err(wrong("/destination/type", "must be agent, topic or broadcast")),
        }
    }

    fn error(&self) -> Result<Option<StoredFault>, Fault> {
        let failed = match self.get("outcome").map(|value| value.as_str().unwrap_or_default()) {
            None => self.get("error").is_some(),
            Some("COMPLETED") => false,
            Some("FAILED") => true,
            Some(_) => return Err(wrong("/outcome", "must be COMPLETED or FAILED")),
        };
        match (failed, self.get("error")) {
            (false, None) => Ok(None),
            (false, Some(_)) => Err(wrong("/error", "what is COMPLETED has none")),
            (true, error) => Ok(Some(told(error))),
        }
    }
}

/// The error another agent tells of: with a code of ours if it has one, else as a failure of its own.
pub fn told(error: Option<&Value>) -> StoredFault {
    use orchestr8_contract::Code;
    let text = |name: &str| error.and_then(|error| error.get(name)).and_then(Value::as_str);
    let code = text("code").and_then(|name| Code::ALL.iter().find(|code| code.as_str() == name)).copied();
    let message = text("message").or_else(|| error.and_then(Value::as_str)).unwrap_or("the agent failed");
    let details = error.and_then(|error| error.get("details")).and_then(Value::as_object).cloned();
    StoredFault {
        code: code.unwrap_or(Code::AgentFailed),
        message: message.to_owned(),
        details,
        envelope: None,
        category: None,
    }
}

fn agent(path: &str, value: Option<&Value>) -> Result<AgentId, Fault> {
    match value {
        Some(Value::String(text)) => AgentId::parse(text).map_err(|why| named(path, &why)),
        Some(_) => Err(wrong(path, "must be the id of an agent")),
        None => Err(wrong(path, "is missing")),
    }
}

fn named(path: &str, why: &Invalid) -> Fault {
    wrong(path, &why.to_string())
}

/// What is wrong with a message, with its path.
pub fn wrong(path: &str, what: &str) -> Fault {
    Fault::invalid(format!("{path}: {what}")).with("path", path)
}
