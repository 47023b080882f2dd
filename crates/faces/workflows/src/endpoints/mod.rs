//! One file per endpoint or small group of endpoints; each translates to one action.

pub(crate) mod approval_page;
pub(crate) mod approvals;
pub(crate) mod audit;
pub(crate) mod bulk;
pub(crate) mod control;
pub(crate) mod execute;
pub(crate) mod execution;
pub(crate) mod hooks;
pub(crate) mod journal;
pub(crate) mod journal_lines;
pub(crate) mod limits;
pub(crate) mod lists;
pub(crate) mod plans;
pub(crate) mod program;
pub(crate) mod schedules;
pub(crate) mod secrets;
pub(crate) mod servers;
pub(crate) mod tokens;
pub(crate) mod triggers;
pub(crate) mod witness;
pub(crate) mod workers;
pub(crate) mod workflows;

use serde_json::{Map, Value};

/// The arguments of an action, put together.
#[derive(Default)]
pub(crate) struct Arguments(Map<String, Value>);

impl Arguments {
    pub fn of(name: &str, value: impl Into<Value>) -> Self {
        Self::default().with(name, value)
    }

    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    pub fn maybe(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    pub fn into_map(self) -> Map<String, Value> {
        self.0
    }
}

/// The text at a name, or nothing where there is none.
pub(crate) fn text<'a>(map: &'a Map<String, Value>, name: &str) -> &'a str {
    map.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The words of an execution that has ended for good.
pub(crate) fn is_final(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "cancelled" | "compensated")
}
