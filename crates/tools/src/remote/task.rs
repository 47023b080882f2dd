//! A task of another server, as its answer tells it in the words of either revision.

use rmcp::model::{CallToolResult, ErrorData, InputRequests};
use serde_json::Value;

use super::limits::{POLL_DEFAULT_MS, POLL_MAX_MS, POLL_MIN_MS, STATUS_CHARACTERS, TASK_ID_BYTES};

/// Where a task stands, with what that status has to show.
#[derive(Debug, Clone, PartialEq)]
pub enum Status {
    Working,
    /// The questions are told in the current revision only; in the older one they come as requests.
    InputRequired(InputRequests),
    /// The result is told in the current revision only; in the older one it is to be fetched.
    Completed(Option<Box<CallToolResult>>),
    Failed(Option<ErrorData>),
    Cancelled,
}

/// A task as it was seen at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    pub id: String,
    pub status: Status,
    pub message: Option<String>,
    /// How long to wait before looking again, within limits.
    pub poll_ms: u64,
}

impl Seen {
    /// Reads a task, or says what is wrong with it.
    pub fn read(task: &Value) -> Result<Self, &'static str> {
        let text = |name: &str| task.get(name).and_then(Value::as_str);
        let id = text("taskId").unwrap_or_default();
        if id.is_empty() || id.len() > TASK_ID_BYTES {
            return Err("gave a task without an id that can be used");
        }
        let status = match text("status").unwrap_or_default() {
            "working" => Status::Working,
            "input_required" => Status::InputRequired(match task.get("inputRequests") {
                Some(asked) => {
                    part(asked).ok_or("gave a task that asks something which cannot be understood")?
                }
                None => InputRequests::new(),
            }),
            "completed" => Status::Completed(match task.get("result") {
                Some(result) => Some(part(result).ok_or("gave a task whose result is none of a tool")?),
                None => None,
            }),
            "failed" => Status::Failed(task.get("error").and_then(part)),
            "cancelled" => Status::Cancelled,
            _ => return Err("gave a task with a status that is not known"),
        };
        let poll = task.get("pollIntervalMs").or_else(|| task.get("pollInterval"));
        let poll_ms = poll.and_then(Value::as_u64).unwrap_or(POLL_DEFAULT_MS);
        Ok(Self {
            id: id.to_owned(),
            status,
            message: text("statusMessage").map(|message| message.chars().take(STATUS_CHARACTERS).collect()),
            poll_ms: poll_ms.clamp(POLL_MIN_MS, POLL_MAX_MS),
        })
    }
}

fn part<T: serde::de::DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_value(value.clone()).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_task_is_read_in_the_words_of_either_revision() {
        for poll in ["pollInterval", "pollIntervalMs"] {
            let seen =
                Seen::read(&json!({"taskId": "t", "status": "working", poll: 700, "statusMessage": "half"}))
                    .unwrap();
            let expected =
                Seen { id: "t".into(), status: Status::Working, message: Some("half".into()), poll_ms: 700 };
            assert_eq!(seen, expected);
        }
        let ended = json!({"taskId": "t", "status": "completed", "result": {"content": [], "resultType": "complete"}});
        assert!(matches!(Seen::read(&ended).unwrap().status, Status::Completed(Some(_))));
        let failed =
            json!({"taskId": "t", "status": "failed", "error": {"code": -32_603, "message": "broke"}});
        let Status::Failed(Some(error)) = Seen::read(&failed).unwrap().status else { panic!("failed") };
        assert_eq!(error.message, "broke");
    }

    #[test]
    fn waits_and_words_are_bounded_whatever_the_server_says() {
        let seen = |poll: Value| {
            let words = "x".repeat(100_000);
            Seen::read(
                &json!({"taskId": "t", "status": "working", "pollInterval": poll, "statusMessage": words}),
            )
        };
        let year_ms = 31_536_000_000_u64;
        for (poll, expected) in [
            (json!(0), POLL_MIN_MS),
            (json!(year_ms), POLL_MAX_MS),
            (json!(-5), POLL_DEFAULT_MS),
            (json!("soon"), POLL_DEFAULT_MS),
        ] {
            let seen = seen(poll.clone()).unwrap();
            assert_eq!((seen.poll_ms, seen.message.unwrap().len()), (expected, STATUS_CHARACTERS), "{poll}");
        }
    }

    #[test]
    fn nonsense_is_told_from_a_task() {
        for task in [
            json!({}),
            json!({"taskId": "", "status": "working"}),
            json!({"taskId": "x".repeat(TASK_ID_BYTES + 1), "status": "working"}),
            json!({"taskId": "t"}),
            json!({"taskId": "t", "status": "thinking"}),
            json!({"taskId": "t", "status": "completed", "result": 7}),
            json!({"taskId": "t", "status": "input_required", "inputRequests": [1]}),
        ] {
            assert!(Seen::read(&task).is_err(), "{task}");
        }
    }
}
