//! Reads the members of an envelope, each with its type and its limit; what is wrong is named with its path.

use orchestr8_contract::Fault;
use orchestr8_contract::error::StoredFault;
use orchestr8_contract::id::{AgentId, Invalid};
use orchestr8_kernel::ports::clock::parse_iso;
use serde_json::{Map, Value};

use super::envelope::{EVERYONE, Kind, Target, named, told, wrong};
use crate::limits;

pub const SEQ_MAX: u64 = 1 << 53;
const MOMENT_LETTERS: usize = 64;

pub struct Members<'m>(pub &'m Map<String, Value>);

impl Members<'_> {
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub fn text(&self, name: &str, letters: usize) -> Result<Option<String>, Fault> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let fit = |text: &&str| {
            (1..=letters).contains(&text.chars().count()) && !text.chars().any(char::is_control)
        };
        match value.as_str().filter(fit) {
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(wrong(&format!("/{name}"), &format!("must be 1 to {letters} printable characters"))),
        }
    }

    pub fn id<T>(&self, name: &str, parse: fn(&str) -> Result<T, Invalid>) -> Result<Option<T>, Fault> {
        let path = format!("/{name}");
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => parse(text).map(Some).map_err(|why| named(&path, &why)),
            Some(_) => Err(wrong(&path, "must be a text")),
        }
    }

    pub fn number(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>, Fault> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.as_u64().filter(|number| (least..=most).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(wrong(&format!("/{name}"), &format!("must be a whole number, at least {least}"))),
        }
    }

    /// A moment: as it is written, and in milliseconds since 1970.
    pub fn moment(&self, name: &str) -> Result<Option<(String, i64)>, Fault> {
        let Some(text) = self.text(name, MOMENT_LETTERS)? else { return Ok(None) };
        match parse_iso(&text) {
            Some(ms) => Ok(Some((text, ms))),
            None => {
                Err(wrong(&format!("/{name}"), "must be a moment in ISO 8601, such as 2026-01-01T00:00:00Z"))
            }
        }
    }

    /// A length of time in milliseconds.
    pub fn span(&self, name: &str, most_ms: i64) -> Result<Option<i64>, Fault> {
        let most = most_ms.unsigned_abs();
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.as_u64().filter(|ms| (1..=most).contains(ms)).and_then(|ms| i64::try_from(ms).ok()) {
            Some(ms) => Ok(Some(ms)),
            None => Err(wrong(&format!("/{name}"), &format!("must be milliseconds from 1 to {most}"))),
        }
    }

    pub fn kind(&self, later: bool) -> Result<Kind, Fault> {
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

    pub fn source(&self, later: bool) -> Result<AgentId, Fault> {
        let (path, value) = match (later, self.get("source")) {
            (true, Some(Value::Object(source))) => ("/source/id", source.get("id").cloned()),
            (true, other) => ("/source", other.cloned()),
            (false, _) => ("/sourceAgentId", self.get("sourceAgentId").cloned()),
        };
        agent(path, value.as_ref())
    }

    pub fn target(&self, later: bool) -> Result<Target, Fault> {
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

    pub fn error(&self) -> Result<Option<StoredFault>, Fault> {
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

fn agent(path: &str, value: Option<&Value>) -> Result<AgentId, Fault> {
    match value {
        Some(Value::String(text)) => AgentId::parse(text).map_err(|why| named(path, &why)),
        Some(_) => Err(wrong(path, "must be the id of an agent")),
        None => Err(wrong(path, "is missing")),
    }
}
