//! The shapes of this face on the wire: responses and events, as clients of protocol 1.0.0 read them (SES-5, SES-6).

use axum::extract::ws::Utf8Bytes;
use serde::Serialize;
use serde_json::Value;

/// What `server_ready` announces (SES-14).
pub const PROTOCOL_VERSION: &str = "1.0.0";

/// One message to a client, made once and shared by all who get it.
pub type Frame = Utf8Bytes;

/// The text of a message. Our shapes have only names and JSON in them, so writing them cannot fail; were it to, the
/// client gets a message that says nothing rather than none.
pub fn frame(message: &impl Serialize) -> Frame {
    serde_json::to_string(message).map_or_else(|_| Frame::from_static("{}"), Frame::from)
}

/// The answer to one command.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Response<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub command: &'a str,
    pub success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_version: Option<u64>,
    #[serde(skip_serializing_if = "is_false")]
    pub replayed: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub timed_out: bool,
}

impl<'a> Response<'a> {
    pub fn new(id: Option<&'a str>, command: &'a str) -> Self {
        Self {
            id,
            kind: "response",
            command,
            success: true,
            error: None,
            error_code: None,
            data: None,
            session_version: None,
            replayed: false,
            timed_out: false,
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives references")]
fn is_false(value: &bool) -> bool {
    !value
}

/// What every lifecycle event tells of its command (SES-6.2).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Told<'a> {
    pub command_id: &'a str,
    pub command_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<&'a str>,
    pub depends_on: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_session_version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<&'a str>,
}

/// What the last lifecycle event adds.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finish<'a> {
    pub success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_version: Option<u64>,
    #[serde(skip_serializing_if = "is_false")]
    pub replayed: bool,
}

/// The members that the lifecycle events of one command share, written once.
pub struct Lifecycle(String);

impl Lifecycle {
    pub fn of(told: &Told<'_>) -> Self {
        let mut text = serde_json::to_string(told).unwrap_or_default();
        // Open again, so that the last event can add its members.
        text.pop();
        Self(text)
    }

    pub fn accepted(&self) -> Frame {
        self.event("command_accepted", "")
    }

    pub fn started(&self) -> Frame {
        self.event("command_started", "")
    }

    pub fn finished(&self, finish: &Finish<'_>) -> Frame {
        let more = serde_json::to_string(finish).unwrap_or_default();
        self.event("command_finished", more.trim_start_matches('{').trim_end_matches('}'))
    }

    fn event(&self, kind: &str, more: &str) -> Frame {
        let mut text = String::with_capacity(self.0.len() + more.len() + kind.len() + 24);
        text.push_str("{\"type\":\"");
        text.push_str(kind);
        text.push_str("\",\"data\":");
        text.push_str(&self.0);
        if !more.is_empty() {
            text.push(',');
            text.push_str(more);
        }
        text.push_str("}}");
        text.into()
    }
}

/// Any event that is only its data.
#[derive(Serialize)]
pub struct Event<D> {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub data: D,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ready<'a> {
    pub server_version: &'a str,
    pub protocol_version: &'static str,
    pub transports: &'a [String],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shutdown<'a> {
    pub reason: &'a str,
    pub timeout_ms: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionCreated<'a> {
    pub session_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_info: Option<&'a Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionDeleted<'a> {
    pub session_id: &'a str,
}

/// An event of one session, for those who follow it (SES-6.1).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionEvent<'a> {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub session_id: &'a str,
    pub seq: u64,
    pub event: &'a Value,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lifecycle_events_are_json_whatever_is_in_them() {
        let depends_on = vec![String::from("a\"}")];
        let told = Told {
            command_id: "c\"1}",
            command_type: "prompt",
            session_id: Some("s"),
            depends_on: &depends_on,
            if_session_version: Some(3),
            idempotency_key: None,
        };
        let lifecycle = Lifecycle::of(&told);
        let read = |frame: Frame| serde_json::from_str::<Value>(&frame).unwrap();
        let data = json!({"commandId": "c\"1}", "commandType": "prompt", "sessionId": "s", "dependsOn": ["a\"}"], "ifSessionVersion": 3});
        assert_eq!(read(lifecycle.accepted()), json!({"type": "command_accepted", "data": data}));
        let finish = Finish { success: false, error: Some("{x}"), session_version: None, replayed: true };
        let finished = read(lifecycle.finished(&finish));
        assert_eq!(finished["data"]["error"], "{x}");
        assert_eq!(finished["data"]["replayed"], true);
    }
}
