//! Envelope v2.2 (KNO-2): read whole, with every mistake named at once.

use std::borrow::Cow;

use jiff::Timestamp;
use orchestr8_contract::id::{CorrelationId, Key, Tenant};
use orchestr8_contract::{Fault, TraceParent};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::failure::Failure;
use crate::from_wire;
use crate::limits;
use crate::versions;

/// Whether a text is an envelope; for whoever is about to sign one. An error says everything that is wrong with it.
pub fn check(text: &[u8]) -> Result<(), Fault> {
    Envelope::read(text, None).map(|_| ()).map_err(Failure::into_fault)
}

/// One wish of one agent, as it was sent. Its values are well formed; whether they are true is another question.
#[derive(Debug)]
pub(crate) struct Envelope {
    pub request_id: String,
    pub correlation: Option<CorrelationId>,
    /// As it was written, to be found again in answers.
    pub trace_id: Option<String>,
    pub trace: Option<TraceParent>,
    pub tenant: Tenant,
    pub sub: String,
    pub roles: Vec<String>,
    pub timestamp_ms: i64,
    pub ttl_ms: Option<i64>,
    pub key: Option<Key>,
    pub seq: Option<i64>,
    pub action: String,
    pub action_version: String,
    pub context_id: Option<String>,
    /// Where the answer to a published envelope goes.
    pub reply_to: Option<String>,
    pub args: Map<String, Value>,
}

impl Envelope {
    /// Reads an envelope. The address may name the action; then the envelope need not, and must not name another.
    pub fn read(text: &[u8], addressed: Option<&str>) -> Result<Self, Failure> {
        let members = from_wire::object(text)
            .map_err(|wrong| Failure::invalid("/", format!("the envelope: {}", wrong.0)))?;
        let mut reader = Reader { mistakes: Vec::new() };
        // Whatever else is wrong, its sender finds the answer under the trace it belongs to (KNO-4).
        let trace =
            members.get("trace_id").and_then(Value::as_str).filter(|text| fits(text)).map(str::to_owned);
        match (reader.envelope(members, addressed), trace) {
            (Some(envelope), _) if reader.mistakes.is_empty() => Ok(envelope),
            (Some(_) | None, Some(trace)) => Err(reader.failure().traced(&trace)),
            (Some(_) | None, None) => Err(reader.failure()),
        }
    }

    /// Whether it came in time (KNO-9). The clock of the sender may be off by a little, in either direction.
    pub fn check_time(&self, now_ms: i64) -> Result<(), Failure> {
        if self.timestamp_ms > now_ms.saturating_add(limits::SKEW_MS) {
            return Err(Failure::invalid("/timestamp", "it is in the future; set the sender's clock"));
        }
        let Some(ttl_ms) = self.ttl_ms else { return Ok(()) };
        let end_ms = self.timestamp_ms.saturating_add(ttl_ms).saturating_add(limits::SKEW_MS);
        match now_ms > end_ms {
            true => Err(Failure::expired("ttl_sec has passed since timestamp")
                .with("timestamp_ms", self.timestamp_ms)
                .with("ttl_sec", ttl_ms / 1000)),
            false => Ok(()),
        }
    }

    /// What the numbers of its sender are counted within: the context, or else the document it is about (KNO-9).
    pub fn subject(&self) -> &str {
        let document = || self.args.get("document_id").and_then(Value::as_str);
        let short = |text: &&str| text.len() <= limits::NAME_BYTES;
        self.context_id.as_deref().or_else(document).filter(short).unwrap_or_default()
    }
}

/// Collects what is wrong.
struct Reader {
    mistakes: Vec<(String, Cow<'static, str>)>,
}

const REQUIRED: &str = "it is required";

impl Reader {
    fn envelope(&mut self, mut members: Map<String, Value>, addressed: Option<&str>) -> Option<Envelope> {
        self.version(&members);
        let request_id = self.required(&members, "request_id").and_then(|text| self.uuid(text));
        let correlation = self
            .optional(&members, "correlation_id")
            .and_then(|text| self.parsed("/correlation_id", CorrelationId::parse(text)));
        let trace_id = self.bounded(&members, "trace_id");
        let tenant = self
            .required(&members, "tenant_id")
            .and_then(|text| self.parsed("/tenant_id", Tenant::parse(text)));
        let principal = self.principal(&members);
        let timestamp_ms = self.required(&members, "timestamp").and_then(|text| self.time(text));
        let limit = i64::try_from(limits::TTL_LIMIT_S).unwrap_or(i64::MAX);
        let ttl_ms = self.number(&members, "ttl_sec", 1, limit).map(|seconds| seconds * 1000);
        let key = self
            .optional(&members, "idempotency_key")
            .and_then(|text| self.parsed("/idempotency_key", Key::parse(text)));
        let seq = self.number(&members, "seq", 0, i64::MAX);
        let action = self.action(&members, addressed);
        let action_version = self.required(&members, "action_version").map(str::to_owned);
        let context_id = self.bounded(&members, "context_id");
        let reply_to = self.bounded(&members, "reply_to");
        self.links(&members);
        let args = self.args(&mut members);
        let (sub, roles) = principal?;
        Some(Envelope {
            request_id: request_id?,
            correlation,
            trace: trace_id.as_deref().and_then(TraceParent::parse),
            trace_id,
            tenant: tenant?,
            sub,
            roles,
            timestamp_ms: timestamp_ms?,
            ttl_ms,
            key,
            seq,
            action: action?,
            action_version: action_version?,
            context_id,
            reply_to,
            args: args?,
        })
    }

    fn wrong(&mut self, path: &str, message: impl Into<Cow<'static, str>>) {
        self.mistakes.push((path.to_owned(), message.into()));
    }

    fn failure(self) -> Failure {
        let unsupported = self.mistakes.iter().any(|(path, _)| path == "/envelope_version");
        let failure = Failure::mistakes(self.mistakes);
        match unsupported {
            true => failure.with("supported_envelope_versions", versions::ENVELOPES.to_vec()),
            false => failure,
        }
    }

    /// What is null is not there.
    fn optional<'a>(&mut self, members: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
        match members.get(name) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text),
            Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                self.wrong(&format!("/{name}"), "it must be a text");
                None
            }
        }
    }

    fn required<'a>(&mut self, members: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
        if matches!(members.get(name), None | Some(Value::Null)) {
            self.wrong(&format!("/{name}"), REQUIRED);
        }
        self.optional(members, name)
    }

    fn bounded(&mut self, members: &Map<String, Value>, name: &str) -> Option<String> {
        let text = self.optional(members, name)?;
        if !fits(text) {
            let limit = limits::NAME_BYTES;
            self.wrong(&format!("/{name}"), format!("it must be 1 to {limit} printable characters"));
            return None;
        }
        Some(text.to_owned())
    }

    fn parsed<T, E: std::fmt::Display>(&mut self, path: &str, parsed: Result<T, E>) -> Option<T> {
        parsed.map_err(|error| self.wrong(path, error.to_string())).ok()
    }

    fn uuid(&mut self, text: &str) -> Option<String> {
        match Uuid::try_parse(text) {
            Ok(id) => Some(id.to_string()),
            Err(_) => {
                self.wrong("/request_id", "it must be a UUID");
                None
            }
        }
    }

    fn time(&mut self, text: &str) -> Option<i64> {
        match text.parse::<Timestamp>() {
            Ok(timestamp) => Some(timestamp.as_millisecond()),
            Err(_) => {
                self.wrong("/timestamp", "it must be a time of RFC 3339, such as 2026-01-01T00:00:00Z");
                None
            }
        }
    }

    fn number(&mut self, members: &Map<String, Value>, name: &str, from: i64, to: i64) -> Option<i64> {
        let value = members.get(name).filter(|value| !value.is_null())?;
        match value.as_i64() {
            Some(number) if (from..=to).contains(&number) => Some(number),
            Some(_) | None => {
                self.wrong(&format!("/{name}"), format!("it must be a whole number from {from} to {to}"));
                None
            }
        }
    }

    fn version(&mut self, members: &Map<String, Value>) {
        let Some(version) = self.required(members, "envelope_version") else { return };
        if !versions::ENVELOPES.contains(&version) {
            let known = versions::ENVELOPES.join(", ");
            self.wrong("/envelope_version", format!("this version is not supported; supported: {known}"));
        }
    }

    fn principal(&mut self, members: &Map<String, Value>) -> Option<(String, Vec<String>)> {
        let principal = match members.get("principal") {
            Some(Value::Object(principal)) => principal,
            None | Some(Value::Null) => {
                self.wrong("/principal", REQUIRED);
                return None;
            }
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                self.wrong("/principal", "it must be an object");
                return None;
            }
        };
        let sub = principal.get("sub").and_then(Value::as_str).filter(|sub| fits(sub)).map(str::to_owned);
        if sub.is_none() {
            let wrong = match principal.contains_key("sub") {
                true => format!("it must be 1 to {} printable characters", limits::NAME_BYTES),
                false => REQUIRED.to_owned(),
            };
            self.wrong("/principal/sub", wrong);
        }
        let roles = match principal.get("roles") {
            None | Some(Value::Null) => Some(Vec::new()),
            Some(roles) => texts(roles, limits::ROLES),
        };
        if roles.is_none() {
            self.wrong("/principal/roles", format!("it must be at most {} texts", limits::ROLES));
        }
        Some((sub?, roles?))
    }

    fn action(&mut self, members: &Map<String, Value>, addressed: Option<&str>) -> Option<String> {
        let Some(addressed) = addressed else { return self.required(members, "action").map(str::to_owned) };
        match self.optional(members, "action") {
            Some(action) if action != addressed => {
                self.wrong("/action", format!("the address names {addressed}"));
                None
            }
            Some(_) | None => Some(addressed.to_owned()),
        }
    }

    fn links(&mut self, members: &Map<String, Value>) {
        let limit = limits::RESOURCE_LINKS;
        match members.get("resource_links") {
            None | Some(Value::Null) => {}
            Some(Value::Array(links)) if links.len() <= limit => {}
            Some(_) => self.wrong("/resource_links", format!("it must be a list of at most {limit}")),
        }
    }

    fn args(&mut self, members: &mut Map<String, Value>) -> Option<Map<String, Value>> {
        let mut payload = match members.remove("payload") {
            Some(Value::Object(payload)) => payload,
            None | Some(Value::Null) => {
                self.wrong("/payload", REQUIRED);
                return None;
            }
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                self.wrong("/payload", "it must be an object");
                return None;
            }
        };
        match payload.get("schema_version") {
            None | Some(Value::Null) => {}
            Some(Value::String(version)) if versions::SCHEMAS.contains(&version.as_str()) => {}
            Some(_) => {
                let known = versions::SCHEMAS.join(", ");
                self.wrong("/payload/schema_version", format!("it is not supported; supported: {known}"));
            }
        }
        match payload.remove("args") {
            Some(Value::Object(args)) => Some(args),
            None | Some(Value::Null) => {
                self.wrong("/payload/args", REQUIRED);
                None
            }
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                self.wrong("/payload/args", "it must be an object");
                None
            }
        }
    }
}

/// Whether it is short enough for a name, and can be printed.
fn fits(text: &str) -> bool {
    (1..=limits::NAME_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
}

fn texts(value: &Value, limit: usize) -> Option<Vec<String>> {
    let list = value.as_array().filter(|list| list.len() <= limit)?;
    list.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests;
