//! What is said on a WebSocket, in both directions.

use orchestr8_edge::ask;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::to_wire::{Within, word};

/// What a client says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Ping,
    /// One execution, or everything; from an id on, if the client was here before.
    Subscribe {
        execution: Option<String>,
        after: Option<u64>,
    },
    /// One execution, or everything.
    Unsubscribe {
        execution: Option<String>,
    },
}

const MEMBERS: [&str; 3] = ["type", "executionId", "lastEventId"];

/// The longest id of an execution.
const ID_BYTES: usize = 256;

pub(crate) fn read(text: &str) -> Result<Said, Failure> {
    let members = ask::object(text.as_bytes(), &MEMBERS)?.members;
    let execution = match members.get("executionId") {
        None => None,
        Some(Value::String(id)) if (1..=ID_BYTES).contains(&id.len()) => Some(id.clone()),
        Some(_) => return Err(Failure::invalid("/executionId", "must be the id of an execution")),
    };
    let after = match members.get("lastEventId") {
        None => None,
        Some(id) => match id.as_u64() {
            Some(id) => Some(id),
            None => return Err(Failure::invalid("/lastEventId", "must be the id of an event")),
        },
    };
    match members.get("type").and_then(Value::as_str) {
        Some("ping") => Ok(Said::Ping),
        Some("subscribe") => Ok(Said::Subscribe { execution, after }),
        Some("unsubscribe") => Ok(Said::Unsubscribe { execution }),
        Some(_) | None => Err(Failure::invalid("/type", "must be ping, subscribe or unsubscribe")),
    }
}

pub(crate) fn pong(at: &str) -> String {
    json!({"type": "pong", "timestamp": at}).to_string()
}

pub(crate) fn metrics(at: &str, figures: Value) -> String {
    json!({"type": "metrics.update", "timestamp": at, "data": figures}).to_string()
}

/// The answer to a message that was not understood.
pub(crate) fn error(at: &str, failure: &Failure) -> String {
    let word = word(failure.code(), Within::Request);
    json!({
        "type": "error",
        "timestamp": at,
        "error": {
            "code": word.as_str(), "message": failure.message(), "isRetryable": false, "category": failure.category(), "attempts": 0,
        },
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_and_strange_ones_refused() {
        assert_eq!(read(r#"{"type":"ping"}"#).unwrap(), Said::Ping);
        let one = Said::Subscribe { execution: Some("e".into()), after: Some(7) };
        assert_eq!(read(r#"{"type":"subscribe","executionId":"e","lastEventId":7}"#).unwrap(), one);
        assert_eq!(read(r#"{"type":"unsubscribe"}"#).unwrap(), Said::Unsubscribe { execution: None });
        for wrong in [
            "",
            "[]",
            "{}",
            r#"{"type":"hello"}"#,
            r#"{"type":"subscribe","executionId":7}"#,
            r#"{"type":"subscribe","executionId":""}"#,
            r#"{"type":"subscribe","lastEventId":"x"}"#,
            r#"{"type":"ping","more":1}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
