//! What is wrong with a definition: everything at once, each with its place and what to do (ADR-002).

use std::fmt;

use orchestr8_contract::{Code, Fault};
use serde_json::{Value, json};

/// A report lists at most this many mistakes; more help nobody.
pub const LISTED: usize = 100;

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// A JSON path such as `$.steps[2].input.url`.
    pub path: String,
    pub message: String,
    /// What to do about it.
    pub hint: String,
    pub code: Code,
}

impl Problem {
    pub fn new(
        path: impl fmt::Display,
        code: Code,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { path: path.to_string(), message: message.into(), hint: hint.into(), code }
    }

    /// As programs read it.
    pub fn to_value(&self) -> Value {
        json!({"path": self.path, "message": self.message, "hint": self.hint, "code": self.code.as_str()})
    }
}

/// Every mistake of one definition, in the order of the document as far as it is known. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    pub fn to_value(&self) -> Value {
        Value::Array(self.0.iter().take(LISTED).map(Problem::to_value).collect())
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.0.first() else { return out.write_str("the workflow is not valid") };
        write!(out, "the workflow is not valid: {}: {}", first.path, first.message)?;
        match self.0.len() - 1 {
            0 => Ok(()),
            more => write!(out, " (and {more} more)"),
        }
    }
}

impl std::error::Error for Problems {}

impl From<Problems> for Fault {
    fn from(problems: Problems) -> Self {
        let message = problems.to_string();
        Fault::new(Code::InvalidWorkflow, message).with("problems", problems.to_value())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_lists_all_problems() {
        let one = Problem::new("$.id", Code::InvalidWorkflow, "the id is missing", "Add an id.");
        let fault = Fault::from(Problems(vec![one.clone(), one]));
        assert_eq!(fault.code, Code::InvalidWorkflow);
        assert_eq!(fault.message, "the workflow is not valid: $.id: the id is missing (and 1 more)");
        let details = fault.details.unwrap();
        assert_eq!(
            details["problems"][1],
            json!({"path":"$.id","message":"the id is missing","hint":"Add an id.","code":"INVALID_WORKFLOW"})
        );
    }
}
