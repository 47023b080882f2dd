//! Ids are newtypes, parsed once where they enter; inside, a value of the type is a promise that it is well formed.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Why a text was refused as an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error("{what} must not be empty")]
    Empty { what: &'static str },
    #[error("{what} has {length} bytes; the limit is {limit}")]
    TooLong { what: &'static str, length: usize, limit: usize },
    #[error("{what} may only hold {allowed}; found {found:?} at byte {at}")]
    Character { what: &'static str, allowed: &'static str, found: char, at: usize },
}

/// Declares a bounded text id: its name, what people call it, its limit and the characters it may hold.
macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $limit:expr, $allowed:literal, $accepts:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            pub const LIMIT: usize = $limit;

            pub fn parse(text: &str) -> Result<Self, Invalid> {
                check(text, $what, $limit, $allowed, $accepts)?;
                Ok(Self(text.into()))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = Invalid;
            fn try_from(text: String) -> Result<Self, Invalid> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0.as_ref().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.0)
            }
        }
    };
}

fn check(
    text: &str,
    what: &'static str,
    limit: usize,
    allowed: &'static str,
    accepts: fn(char) -> bool,
) -> Result<(), Invalid> {
    if text.is_empty() {
        return Err(Invalid::Empty { what });
    }
    if text.len() > limit {
        return Err(Invalid::TooLong { what, length: text.len(), limit });
    }
    match text.char_indices().find(|(_, c)| !accepts(*c)) {
        Some((at, found)) => Err(Invalid::Character { what, allowed, found, at }),
        None => Ok(()),
    }
}

fn name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')
}

fn message_character(c: char) -> bool {
    name_character(c) || c == ':'
}

fn visible(c: char) -> bool {
    !c.is_control()
}

text_id!(
    /// The name of an action, as the MCP tool-name rule has it.
    ActionName, "an action name", 128, "A-Z a-z 0-9 _ . -", name_character
);
text_id!(
    /// Ties together everything that happened because of one request (MCP-CORR).
    CorrelationId, "a correlation id", 256, "printable characters", visible
);
text_id!(
    /// What a client calls one submission, so that others may depend on it and a repeat is recognised.
    SubmissionId, "an id", 256, "printable characters", visible
);
text_id!(
    /// Makes repeats of one intention recognisable.
    Key, "an idempotency key", 256, "printable characters", visible
);
text_id!(
    /// Work in one lane runs one at a time, in order of arrival.
    Lane, "a lane", 300, "printable characters", visible
);
text_id!(
    /// A customer whose data no other customer sees.
    Tenant, "a tenant", 128, "A-Z a-z 0-9 _ . -", name_character
);
text_id!(
    /// An agent that receives messages.
    AgentId, "an agent id", 256, "printable characters", visible
);
text_id!(
    /// One transmission of a message between agents (AACP-1).
    MessageId, "a message id", 128, "A-Z a-z 0-9 _ . : -", message_character
);
text_id!(
    /// One wish of one agent to another, the same over all its retries (AACP-2).
    RequestId, "a request id", 128, "A-Z a-z 0-9 _ . : -", message_character
);

impl MessageId {
    pub fn from_uuid(id: Uuid) -> Self {
        Self(hyphenated(id))
    }
}

impl RequestId {
    pub fn from_uuid(id: Uuid) -> Self {
        Self(hyphenated(id))
    }
}

fn hyphenated(id: Uuid) -> Arc<str> {
    let mut buffer = Uuid::encode_buffer();
    Arc::from(&*id.hyphenated().encode_lower(&mut buffer))
}

impl CorrelationId {
    pub fn from_uuid(id: Uuid) -> Self {
        Self(hyphenated(id))
    }
}

impl From<&SubmissionId> for Key {
    /// The rules for both are the same, so an id is always fit to be a key.
    fn from(id: &SubmissionId) -> Self {
        Self(id.0.clone())
    }
}

impl Tenant {
    /// The one tenant of an installation that has not been told of others.
    pub fn local() -> Self {
        Self("local".into())
    }
}

/// One run of one action. A retry inside a run keeps it; a new submission gets another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub Uuid);

impl fmt::Display for RunId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_bounded_and_say_what_is_wrong() {
        assert!(ActionName::parse("agent.sendMessage").is_ok());
        assert_eq!(ActionName::parse("").unwrap_err().to_string(), "an action name must not be empty");
        let long = "x".repeat(129);
        assert!(matches!(ActionName::parse(&long), Err(Invalid::TooLong { length: 129, limit: 128, .. })));
        assert!(matches!(ActionName::parse("a/b"), Err(Invalid::Character { found: '/', at: 1, .. })));
        assert!(CorrelationId::parse("line\nbreak").is_err());
    }

    #[test]
    fn ids_are_parsed_when_they_are_read_back() {
        assert!(serde_json::from_str::<ActionName>("\"ok\"").is_ok());
        assert!(serde_json::from_str::<ActionName>("\"not ok\"").is_err());
    }
}
