//! What happened, told to whoever listens. An event is news, not a record: the journal keeps records.

use std::sync::Arc;

use serde_json::Value;

/// Critical events may use the reserved part of a queue and are dropped last (WF-19.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Priority {
    Critical,
    Normal,
}

impl Priority {
    pub fn as_str(self) -> &'static str {
        match self {
            Priority::Critical => "critical",
            Priority::Normal => "normal",
        }
    }
}

/// One piece of news. Cloning is cheap: the data is shared.
#[derive(Debug, Clone)]
pub struct Event {
    /// What kind of news, for example `action.finished`.
    pub name: &'static str,
    /// What it is about, for example a resource address or a session id; listeners filter on it.
    pub subject: Arc<str>,
    pub priority: Priority,
    pub at_ms: i64,
    pub data: Arc<Value>,
}
