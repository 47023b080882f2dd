//! An answer that shall be JSON of a schema: read, checked, and sent back with what is wrong.

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::schema::Schema;
use orchestr8_models::StopReason;
use serde_json::{Value, json};

use crate::limits;

/// What is wrong with an answer.
#[derive(Debug)]
pub struct Wrong {
    problems: Vec<Value>,
    /// An answer that was cut off would be cut off again.
    pub can_be_mended: bool,
}

/// The JSON in an answer, if it is there and as the schema wants it.
pub fn read(text: &str, stop_reason: StopReason, shape: &Schema) -> Result<Value, Wrong> {
    let value: Value = serde_json::from_str(bare(text)).map_err(|error| match stop_reason {
        StopReason::Length => Wrong::of("the answer was cut off: it is longer than maxTokens allows", false),
        StopReason::Stop | StopReason::ToolUse | StopReason::Error | StopReason::Aborted => {
            Wrong::of(&format!("the answer is not JSON: {error}"), true)
        }
    })?;
    match shape.check(&value) {
        Ok(()) => Ok(value),
        Err(fault) => {
            let errors = fault.details.and_then(|mut details| details.remove("errors"));
            let problems = match errors {
                Some(Value::Array(problems)) => problems,
                Some(_) | None => vec![problem(&fault.message)],
            };
            Err(Wrong { problems, can_be_mended: true })
        }
    }
}

fn problem(message: &str) -> Value {
    json!({"path": "/", "message": message})
}

/// Models like to put JSON into a fence.
fn bare(text: &str) -> &str {
    let text = text.trim();
    let fenced = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    fenced.and_then(|inner| inner.split_once('\n')).map_or(text, |(_, inner)| inner)
}

impl Wrong {
    fn of(message: &str, can_be_mended: bool) -> Self {
        Self { problems: vec![problem(message)], can_be_mended }
    }

    /// What the model is told.
    pub fn plea(&self) -> String {
        let mut plea = String::from("Your answer does not match the schema:\n");
        for problem in &self.problems {
            let (path, message) = (&problem["path"], &problem["message"]);
            plea.push_str(&format!("- at {}: {}\n", plain(path), plain(message)));
        }
        plea.push_str("Answer again, with the corrected JSON and nothing else.");
        plea
    }

    /// What the caller is told in the end.
    pub fn into_fault(self, text: &str, attempts: u64) -> Fault {
        let first = self.problems.first().map(|problem| format!(": {}", plain(&problem["message"])));
        let said: String = text.chars().take(limits::MISMATCH_CHARS).collect();
        Fault::new(
            Code::AgentFailed,
            format!("the model's answer does not match the schema{}", first.unwrap_or_default()),
        )
        .with("reason", "schema_mismatch")
        .with("problems", self.problems)
        .with("attempts", attempts)
        .with("text", said)
    }
}

fn plain(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Schema {
        Schema::compile(
            json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}),
        )
        .unwrap()
    }

    #[test]
    fn json_is_found_bare_and_in_a_fence() {
        for text in ["{\"n\": 1}", " {\"n\": 1}\n", "```json\n{\"n\": 1}\n```", "```\n{\"n\": 1}```"] {
            assert_eq!(read(text, StopReason::Stop, &shape()).unwrap(), json!({"n": 1}), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let wrong = read("{\"n\": \"x\"}", StopReason::Stop, &shape()).unwrap_err();
        assert!(wrong.can_be_mended && wrong.plea().contains("- at /n: "), "{}", wrong.plea());
        let fault = wrong.into_fault("{\"n\": \"x\"}", 3);
        let details = fault.details.unwrap();
        assert_eq!((&details["problems"][0]["path"], &details["attempts"]), (&json!("/n"), &json!(3)));
        for text in ["", "sorry", "```json\n```", "{} {}"] {
            assert!(read(text, StopReason::Stop, &shape()).unwrap_err().can_be_mended, "{text}");
        }
    }

    #[test]
    fn an_answer_that_was_cut_off_is_not_asked_for_again() {
        assert!(!read("{\"n\": ", StopReason::Length, &shape()).unwrap_err().can_be_mended);
        assert!(read("{\"n\": 1}", StopReason::Length, &shape()).is_ok());
    }
}
