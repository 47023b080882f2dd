//! Who an execution is, which never changes.

use std::sync::Arc;

use orchestr8_contract::id::CorrelationId;
use orchestr8_kernel::ports::clock::iso;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::definition::model::Workflow;

/// Who it is, which never changes.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The name of the principal that started it.
    pub started_by: Arc<str>,
    pub execution: Arc<str>,
    pub correlation: CorrelationId,
    pub workflow: Arc<Workflow>,
    /// The definition's variables with what the submitter gave over them.
    pub variables: Map<String, Value>,
    /// Overrides the definition's own limit.
    pub timeout_ms: Option<u64>,
    /// The moment of the schedule that started it.
    pub schedule: Option<ScheduledMoment>,
}

/// Which schedule started an execution, and for which moment: later than that moment if it was made up for or waited for its turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledMoment {
    pub id: Arc<str>,
    pub at_ms: i64,
}

impl ScheduledMoment {
    /// As expressions, the execution and its journal show it.
    pub fn shown(&self) -> Value {
        json!({"id": self.id, "time": iso(self.at_ms)})
    }
}
