//! JSON-RPC 2.0 on the wire: messages in, answers out.

mod members;
#[cfg(test)]
mod properties;
mod scan;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use memchr::memchr2_iter;
use orchestr8_contract::id::CorrelationId;
use orchestr8_contract::limits;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

pub use members::{Members, Raw, Shape};

pub const PARSE_ERROR: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;
pub const METHOD_NOT_FOUND: i64 = -32601;
pub const INVALID_PARAMS: i64 = -32602;
pub const INTERNAL: i64 = -32603;
/// Said before RUNNING (MCP-INIT-5); the legacy era also says it of an unknown resource.
pub const NOT_INITIALIZED: i64 = -32002;
pub const RESOURCE_NOT_FOUND: i64 = -32002;
pub const HEADER_MISMATCH: i64 = -32020;
pub const CAPABILITY_MISSING: i64 = -32021;
pub const VERSION_UNSUPPORTED: i64 = -32022;

/// An id longer than this is refused: it is kept in memory while its request is in flight.
pub const ID_BYTES: usize = 1024;

/// A batch may hold this many messages (2025-03-26 only).
pub const BATCH: usize = 100;

/// What a message needs around its arguments: the rest of the envelope, `_meta`, and white space.
pub const ENVELOPE_BYTES: usize = 65_536;

/// The id of a request as JSON text: a string, a number as it was written, or null.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Id(Arc<str>);

impl Id {
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// None: not a string, a number or null, or too long.
    pub fn read(raw: &str) -> Option<Self> {
        if raw.len() > ID_BYTES {
            return None;
        }
        match raw.as_bytes().first()? {
            // Two spellings of one string are one id.
            b'"' if raw.contains('\\') => {
                let text: String = serde_json::from_str(raw).ok()?;
                Some(Self(serde_json::to_string(&text).ok()?.into()))
            }
            b'"' | b'-' | b'0'..=b'9' | b'n' => Some(Self(raw.into())),
            _ => None,
        }
    }
}

/// One message.
#[derive(Debug)]
pub enum Message<'a> {
    Request {
        id: Id,
        method: Cow<'a, str>,
        params: Option<Raw<'a>>,
    },
    Notification {
        method: Cow<'a, str>,
        params: Option<Raw<'a>>,
    },
    /// An answer to a question of ours; never answered itself.
    Response {
        id: Option<Id>,
        result: Option<Raw<'a>>,
        error: Option<Raw<'a>>,
    },
    Batch(Vec<&'a RawValue>),
}

/// A message that cannot be taken. Its id is kept whenever it is readable.
#[derive(Debug)]
pub struct Refused {
    pub id: Option<Id>,
    pub error: Error,
}

/// Reads one message or a batch.
pub fn read(bytes: &[u8]) -> Result<Message<'_>, Refused> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(Refused { id: None, error: Error::new(PARSE_ERROR, "Parse error: not UTF-8") });
    };
    let parse_error = |error: serde_json::Error| Refused {
        id: None,
        error: Error::new(PARSE_ERROR, format!("Parse error: {error}")),
    };
    let deep = too_deep(bytes);
    match text.trim_ascii_start().as_bytes().first() {
        Some(b'{') => read_object(text, deep),
        Some(b'[') => {
            let messages: Vec<&RawValue> = serde_json::from_str(text).map_err(parse_error)?;
            match deep {
                true => Err(Refused { id: None, error: Error::too_deep() }),
                false => Ok(Message::Batch(messages)),
            }
        }
        Some(_) | None => {
            let _: &RawValue = serde_json::from_str(text).map_err(parse_error)?;
            Err(Refused { id: None, error: Error::new(INVALID_REQUEST, "Invalid Request: not an object") })
        }
    }
}

fn read_object(text: &str, deep: bool) -> Result<Message<'_>, Refused> {
    let members = match Members::read(text) {
        Ok(members) => members,
        Err(Shape::Unreadable(message)) => {
            return Err(Refused {
                id: None,
                error: Error::new(PARSE_ERROR, format!("Parse error: {message}")),
            });
        }
        Err(shape) => {
            return Err(Refused {
                id: None,
                error: Error::new(INVALID_REQUEST, format!("Invalid Request: {shape}")),
            });
        }
    };
    let given_id = members.get("id");
    let id = given_id.and_then(|raw| Id::read(raw.get()));
    let refuse = |id: Option<Id>, message: String| {
        Err(Refused { id, error: Error::new(INVALID_REQUEST, format!("Invalid Request: {message}")) })
    };
    let Some(method) = members.get("method") else {
        let (result, error) = (members.get("result"), members.get("error"));
        if result.is_some() || error.is_some() {
            return Ok(Message::Response { id, result, error });
        }
        return refuse(id, "there is no method".into());
    };
    if let Some(name) = members.repeated() {
        // A repeated id is no id: which of the two was meant?
        return refuse(id.filter(|_| name != "id"), format!("{name} is given twice"));
    }
    if deep {
        return Err(Refused { id, error: Error::too_deep() });
    }
    if members.get("jsonrpc").map(Raw::get) != Some("\"2.0\"") {
        return refuse(id, "jsonrpc must be \"2.0\"".into());
    }
    let Some(method) = text_of(method) else { return refuse(id, "method must be a string".into()) };
    let params = members.get("params");
    match (given_id, id) {
        (None, _) => Ok(Message::Notification { method, params }),
        (Some(_), Some(id)) => Ok(Message::Request { id, method, params }),
        (Some(_), None) => {
            refuse(None, format!("id must be a string or a number of at most {ID_BYTES} bytes"))
        }
    }
}

/// The string a raw value holds, if it holds one that can be read.
pub fn text_of(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    let text = raw.get();
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    match inner.contains('\\') {
        false => Some(Cow::Borrowed(inner)),
        true => serde_json::from_str(text).ok().map(Cow::Owned),
    }
}

/// Whether it nests deeper than we follow. Raw values are kept unread, so nothing else would notice.
fn too_deep(bytes: &[u8]) -> bool {
    let openings = memchr2_iter(b'{', b'[', bytes).take(limits::JSON_DEPTH + 1).count();
    if openings <= limits::JSON_DEPTH {
        return false;
    }
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                if depth > limits::JSON_DEPTH {
                    return true;
                }
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// A protocol error: an answer without a result.
#[derive(Debug, Clone)]
pub struct Error {
    pub code: i64,
    pub message: Cow<'static, str>,
    pub data: Map<String, Value>,
    /// The HTTP status it has.
    pub status: u16,
}

impl Error {
    pub fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        let status = match code {
            PARSE_ERROR | INVALID_REQUEST | HEADER_MISMATCH | CAPABILITY_MISSING | VERSION_UNSUPPORTED => 400,
            _ => 200,
        };
        Self { code, message: message.into(), data: Map::new(), status }
    }

    pub fn params(message: impl fmt::Display) -> Self {
        Self::new(INVALID_PARAMS, format!("Invalid params: {message}"))
    }

    pub fn too_deep() -> Self {
        Self::new(PARSE_ERROR, format!("Parse error: nested deeper than {} levels", limits::JSON_DEPTH))
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.data.insert(name.to_owned(), value.into());
        self
    }

    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// The `error` member, with the id by which it is found in the log (MCP-CORR-4).
    pub fn to_json(&self, correlation: &CorrelationId) -> String {
        let mut data = self.data.clone();
        data.insert("correlationId".into(), correlation.as_str().into());
        let mut out = String::with_capacity(192);
        out.push_str("{\"code\":");
        out.push_str(itoa::Buffer::new().format(self.code));
        out.push_str(",\"message\":");
        push_string(&mut out, &self.message);
        out.push_str(",\"data\":");
        out.push_str(&Value::Object(data).to_string());
        out.push('}');
        out
    }
}

/// `{"jsonrpc":"2.0","id":…,"result":…}` or the same with `error`.
pub fn response(id: Option<&Id>, member: &str, body: &str) -> String {
    let mut out = begin_response(id, member, body.len());
    out.push_str(body);
    out.push('}');
    out
}

/// A response up to its body, which has about this many bytes.
pub fn begin_response(id: Option<&Id>, member: &str, bytes: usize) -> String {
    let id = id.map_or("null", Id::as_json);
    let mut out = String::with_capacity(bytes + id.len() + 40);
    out.push_str("{\"jsonrpc\":\"2.0\",\"id\":");
    out.push_str(id);
    out.push_str(",\"");
    out.push_str(member);
    out.push_str("\":");
    out
}

/// Writes a JSON string.
pub fn push_string(out: &mut String, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push('"');
    let mut done = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[done..at]);
        done = at + 1;
        if escape.is_empty() {
            out.push_str("\\u00");
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        } else {
            out.push_str(escape);
        }
    }
    out.push_str(&text[done..]);
    out.push('"');
}

#[cfg(test)]
mod tests;
