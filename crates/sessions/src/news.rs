//! What happens in a session, as its subscribers are told. What is stored refers to entries by place; what is sent has them whole.

use orchestr8_models::Message;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::record::{self, Place};

/// The name of session events on the bus; the subject is the session's id.
pub const EVENT: &str = "session.event";
/// A session has come into being or is gone; the subject is the tenant.
pub const CREATED: &str = "session.created";
pub const DELETED: &str = "session.deleted";

/// One thing that happened and that a client may ask for later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum News {
    AgentStart,
    AgentEnd {
        entries: Vec<Place>,
    },
    TurnStart,
    TurnEnd {
        entry: Place,
        results: Vec<Place>,
    },
    MessageStart {
        entry: Place,
    },
    MessageEnd {
        entry: Place,
    },
    ToolExecutionStart {
        tool_call_id: String,
        tool_name: String,
        args: Map<String, Value>,
    },
    ToolExecutionEnd {
        tool_call_id: String,
        tool_name: String,
        entry: Place,
        is_error: bool,
    },
    AutoCompactionStart {
        reason: String,
    },
    AutoCompactionEnd {
        aborted: bool,
        will_retry: bool,
        error_message: Option<String>,
        result: Option<Value>,
    },
    AutoRetryStart {
        attempt: u32,
        max_attempts: u32,
        delay_ms: u64,
        error_message: String,
    },
    AutoRetryEnd {
        success: bool,
        attempt: u32,
        final_error: Option<String>,
    },
}

impl News {
    /// As it is sent, with the messages it refers to.
    pub fn told<'a>(&self, message: impl Fn(Place) -> Option<&'a Message>) -> Value {
        let whole = |place: &Place| message(*place).map_or(Value::Null, record::json);
        let all = |places: &[Place]| places.iter().map(whole).collect::<Vec<_>>();
        match self {
            News::AgentStart => json!({"type": "agent_start"}),
            News::AgentEnd { entries } => json!({"type": "agent_end", "messages": all(entries)}),
            News::TurnStart => json!({"type": "turn_start"}),
            News::TurnEnd { entry, results } => {
                json!({"type": "turn_end", "message": whole(entry), "toolResults": all(results)})
            }
            News::MessageStart { entry } => json!({"type": "message_start", "message": whole(entry)}),
            News::MessageEnd { entry } => json!({"type": "message_end", "message": whole(entry)}),
            News::ToolExecutionEnd { tool_call_id, tool_name, entry, is_error } => {
                let content = whole(entry)["content"].take();
                json!({"type": "tool_execution_end", "toolCallId": tool_call_id, "toolName": tool_name,
                       "result": {"content": content}, "isError": is_error})
            }
            News::ToolExecutionStart { .. }
            | News::AutoCompactionStart { .. }
            | News::AutoCompactionEnd { .. }
            | News::AutoRetryStart { .. }
            | News::AutoRetryEnd { .. } => without_nulls(serde_json::to_value(self).unwrap_or(Value::Null)),
        }
    }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(map.into_iter().filter(|(_, value)| !value.is_null()).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestr8_models::User;

    #[test]
    fn what_is_stored_is_small_and_what_is_told_is_whole() {
        let hello = Message::User(User::text("hello", 7));
        let news = News::MessageEnd { entry: 3 };
        assert_eq!(record::text(&news), r#"{"type":"message_end","entry":3}"#);
        let told = news.told(|place| (place == 3).then_some(&hello));
        assert_eq!(told["message"]["content"][0]["text"], "hello");
        let retry = News::AutoRetryEnd { success: true, attempt: 2, final_error: None };
        assert_eq!(
            retry.told(|_| None),
            json!({"type": "auto_retry_end", "success": true, "attempt": 2}),
            "what is not there is left out"
        );
    }
}
