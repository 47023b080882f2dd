//! What an entry of the trail says (ERR-6).

use orchestr8_contract::canonical;
use orchestr8_contract::envelope::Role;
use orchestr8_contract::{Code, Envelope};
use orchestr8_kernel::redact::Redactor;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What a call changed in the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub path: String,
    /// The hash of what was there, if anything was.
    pub before: Option<String>,
    pub after: String,
}

/// One call and how it ended, as it is read back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub tool_name: String,
    pub error_code: Option<Code>,
    pub invariant_id: Option<String>,
    pub plan_hash: Option<String>,
    pub phase_id: Option<String>,
    pub timestamp: String,
    /// Normalized, and without secrets.
    pub cause: Value,
    pub session_id: Option<String>,
    pub role: Option<Role>,
    /// Of the canonical JSON of the arguments, so that an entry proves what was asked without repeating it.
    pub args_hash: String,
    /// `success`, `failure`, or how far a write has come (`WriteStage`).
    pub result: String,
    pub result_hash: String,
    pub change: Option<Change>,
}

impl Record {
    /// Of a call that succeeded.
    pub fn success(of: &Envelope, args_hash: String, output: &Value, change: Option<Change>) -> Self {
        Self {
            result: String::from("success"),
            result_hash: canonical::sha256_hex(output),
            error_code: None,
            change,
            ..Self::of(of, args_hash)
        }
    }

    /// Of a call that failed with this error.
    pub fn failure(error: &Envelope, args_hash: String) -> Self {
        let told = serde_json::to_value(error).unwrap_or_default();
        Self {
            result: String::from("failure"),
            result_hash: canonical::sha256_hex(&told),
            ..Self::of(error, args_hash)
        }
    }

    pub(super) fn of(envelope: &Envelope, args_hash: String) -> Self {
        Self {
            tool_name: envelope.tool_name.clone(),
            error_code: Some(envelope.error_code),
            invariant_id: envelope.invariant_id.clone(),
            plan_hash: envelope.plan_hash.clone(),
            phase_id: envelope.phase_id.clone(),
            timestamp: envelope.timestamp.clone(),
            cause: envelope.cause.clone(),
            session_id: envelope.session_id.clone(),
            role: envelope.role,
            args_hash,
            result: String::new(),
            result_hash: String::new(),
            change: None,
        }
    }

    /// The canonical text of it, without secrets.
    pub fn body(&self, redactor: &Redactor) -> String {
        let mut body = json!(self);
        for name in ["cause", "tool_name", "change"] {
            body[name] = redactor.value(&body[name]).into_owned();
        }
        canonical::text(&body)
    }
}
