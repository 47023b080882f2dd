//! The canonical error of a failed tool call (ERR-1): every field is always there, null where nothing is known.
//!
//! One is made by one of four constructors (ERR-4), and written in one way: the fields in this order, no undefined ones,
//! nothing that refers to itself (ERR-3).

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::access::AccessRole;
use crate::error::{Code, Fault, Kind};

/// The role of a connection to a governed workspace, under the name it has on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Writes and approves plans.
    #[serde(rename = "ANTIGRAVITY")]
    Planner,
    /// Writes files, within an approved plan.
    #[serde(rename = "WINDSURF")]
    Executor,
}

impl Role {
    pub const ALL: [Role; 2] = [Role::Planner, Role::Executor];

    /// The word people use for it, and the role a credential has.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Planner => "planner",
            Role::Executor => "executor",
        }
    }

    /// The role of a credential that makes a connection governed.
    pub fn access(self) -> AccessRole {
        match self {
            Role::Planner => AccessRole::Planner,
            Role::Executor => AccessRole::Executor,
        }
    }

    /// The name on the wire.
    pub fn wire(self) -> &'static str {
        match self {
            Role::Planner => "ANTIGRAVITY",
            Role::Executor => "WINDSURF",
        }
    }
}

/// How the names of actions of governed workspaces begin. Their clients know them without it.
pub const GOVERNED: &str = "workspace.";

/// Where and when a call failed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Surroundings {
    pub tool_name: String,
    /// ISO 8601, by the clock of the server.
    pub timestamp: String,
    pub role: Option<Role>,
    pub session_id: Option<String>,
    pub workspace_root: Option<String>,
    pub phase_id: Option<String>,
    pub plan_hash: Option<String>,
}

/// What was thrown, before it became a canonical error.
#[derive(Debug, Clone, PartialEq)]
pub enum Thrown {
    Error { name: String, code: Option<String>, message: String },
    Text(String),
    Value(Value),
}

impl Thrown {
    pub fn error(name: &str, code: Option<&str>, message: impl Into<String>) -> Self {
        Thrown::Error { name: name.to_owned(), code: code.map(str::to_owned), message: message.into() }
    }

    /// As JSON (ERR-3): an error is its message, its code and its name.
    fn normalized(self) -> Value {
        match self {
            Thrown::Error { name, code, message } => json!({"message": message, "code": code, "name": name}),
            Thrown::Text(text) => Value::String(text),
            Thrown::Value(value) => value,
        }
    }

    fn message(&self) -> Option<&str> {
        match self {
            Thrown::Error { message, .. } => Some(message),
            Thrown::Text(text) => Some(text),
            Thrown::Value(value) => value.get("message").and_then(Value::as_str),
        }
    }
}

/// The canonical error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    pub error_code: Code,
    pub human_message: String,
    pub role: Option<Role>,
    pub session_id: Option<String>,
    pub workspace_root: Option<String>,
    pub tool_name: String,
    pub invariant_id: Option<String>,
    pub phase_id: Option<String>,
    pub plan_hash: Option<String>,
    pub cause: Value,
    pub timestamp: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack_trace: Option<String>,
}

impl Envelope {
    /// Of something that was thrown and has no code of its own, or only the one of where it was thrown.
    pub fn from_unknown(thrown: Thrown, code: Option<Code>, at: Surroundings) -> Self {
        let message = thrown.message().unwrap_or("the tool failed in an unknown way").to_owned();
        Self::new(code.unwrap_or(Code::UnknownToolFailure), message, at).caused_by(thrown)
    }

    /// Of a rule that always holds and would have been broken.
    pub fn invariant_violation(
        invariant_id: &'static str,
        message: impl Into<String>,
        at: Surroundings,
    ) -> Self {
        let invariant_id = Some(invariant_id.to_owned());
        Self { invariant_id, ..Self::new(Code::InvariantViolation, message.into(), at) }
    }

    /// Of a tool that says itself what went wrong.
    pub fn tool_failure(code: Code, message: impl Into<String>, at: Surroundings) -> Self {
        Self::new(code, message.into(), at)
    }

    /// Of something that cannot begin.
    pub fn startup_failure(code: Code, message: impl Into<String>, at: Surroundings) -> Self {
        let tool_name = if at.tool_name.is_empty() { String::from("startup") } else { at.tool_name.clone() };
        Self::new(code, message.into(), Surroundings { tool_name, ..at })
    }

    /// Of a failure that knows nothing of canonical errors. Where it has another code, that one is the cause.
    pub fn of(fault: &Fault, at: Surroundings) -> Self {
        let code = canonical(fault.code);
        let envelope = Self::tool_failure(code, fault.message.clone(), at);
        match code == fault.code {
            true => envelope,
            false => {
                envelope.caused_by(Thrown::error("Fault", Some(fault.code.as_str()), fault.message.clone()))
            }
        }
    }

    #[must_use]
    pub fn caused_by(mut self, thrown: Thrown) -> Self {
        self.cause = thrown.normalized();
        self
    }

    /// The fault that carries it to whoever answers.
    pub fn into_fault(self) -> Fault {
        let mut fault = Fault::new(self.error_code, self.human_message.clone());
        fault.envelope = Some(Box::new(self));
        fault
    }

    fn new(error_code: Code, human_message: String, at: Surroundings) -> Self {
        Self {
            error_code,
            human_message,
            role: at.role,
            session_id: at.session_id,
            workspace_root: at.workspace_root,
            tool_name: at.tool_name,
            invariant_id: None,
            phase_id: at.phase_id,
            plan_hash: at.plan_hash,
            cause: Value::Null,
            timestamp: at.timestamp,
            stack_trace: None,
        }
    }
}

/// The codes of the canonical contract (ERR-2).
pub const CODES: [Code; 35] = [
    Code::SessionNotInitialized,
    Code::SessionLocked,
    Code::SessionInitializationFailed,
    Code::InvalidInputType,
    Code::InvalidInputFormat,
    Code::InvalidInputValue,
    Code::MissingRequiredField,
    Code::UnauthorizedAction,
    Code::InsufficientPermissions,
    Code::RoleMismatch,
    Code::InvalidPath,
    Code::PathNotFound,
    Code::PathTraversalBlocked,
    Code::OutsideWorkspace,
    Code::FileNotFound,
    Code::FileAlreadyExists,
    Code::FileReadFailed,
    Code::FileWriteFailed,
    Code::PatchInvalid,
    Code::PatchApplyFailed,
    Code::HashMismatch,
    Code::PlanNotFound,
    Code::PlanNotApproved,
    Code::PlanEnforcementFailed,
    Code::PlanScopeViolation,
    Code::PolicyViolation,
    Code::RustPolicyViolation,
    Code::PreflightFailed,
    Code::InvariantViolation,
    Code::BootstrapFailure,
    Code::SelfAuditFailure,
    Code::AuditLogFailed,
    Code::AuditLockFailed,
    Code::InternalError,
    Code::UnknownToolFailure,
];

/// The word of the canonical contract for any code.
pub fn canonical(code: Code) -> Code {
    if CODES.contains(&code) {
        return code;
    }
    match code.kind() {
        Kind::Invalid => Code::InvalidInputValue,
        Kind::Unauthenticated => Code::InsufficientPermissions,
        Kind::Forbidden => Code::UnauthorizedAction,
        Kind::Internal => Code::InternalError,
        Kind::NotFound
        | Kind::Conflict
        | Kind::Exhausted
        | Kind::Timeout
        | Kind::Cancelled
        | Kind::Unavailable
        | Kind::Dependency
        | Kind::State
        | Kind::Unknown => Code::UnknownToolFailure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at() -> Surroundings {
        Surroundings {
            tool_name: "write_file".into(),
            timestamp: "2026-01-01T00:00:00.000Z".into(),
            ..Surroundings::default()
        }
    }

    /// ERR-8.1 to ERR-8.3: whatever is thrown becomes a canonical error.
    #[test]
    fn whatever_is_thrown_becomes_canonical() {
        let of = |thrown| Envelope::from_unknown(thrown, None, at());
        let error = of(Thrown::error("Io", Some("ENOENT"), "no such file"));
        assert_eq!(
            (error.error_code, error.human_message.as_str()),
            (Code::UnknownToolFailure, "no such file")
        );
        assert_eq!(error.cause, json!({"message": "no such file", "code": "ENOENT", "name": "Io"}));
        assert_eq!(of(Thrown::Text("boom".into())).cause, "boom");
        let object = of(Thrown::Value(json!({"message": "m", "more": [1]})));
        assert_eq!((object.human_message.as_str(), &object.cause["more"]), ("m", &json!([1])));
        let told = Envelope::from_unknown(Thrown::Text("x".into()), Some(Code::FileReadFailed), at());
        assert_eq!(told.error_code, Code::FileReadFailed);
    }

    /// ERR-8.4 to ERR-8.6.
    #[test]
    fn the_fields_say_what_is_known() {
        let violation = Envelope::invariant_violation("MANDATORY_DIAGNOSTICS", "no session", at());
        assert_eq!(violation.invariant_id.as_deref(), Some("MANDATORY_DIAGNOSTICS"));
        assert!(violation.session_id.is_none() && violation.workspace_root.is_none());
        let known = Surroundings { phase_id: Some("PHASE_5A".into()), plan_hash: Some("ab".into()), ..at() };
        let failure = Envelope::tool_failure(Code::PlanScopeViolation, "outside", known);
        assert_eq!(
            (failure.phase_id.as_deref(), failure.plan_hash.as_deref()),
            (Some("PHASE_5A"), Some("ab"))
        );
        let startup = Envelope::startup_failure(Code::BootstrapFailure, "no", Surroundings::default());
        assert_eq!(startup.tool_name, "startup");
    }

    /// ERR-8.7: the text is the same for the same error, and names every field but an absent stack.
    #[test]
    fn it_is_written_in_one_way() {
        let text = serde_json::to_string(&Envelope::tool_failure(Code::InvalidPath, "bad", at())).unwrap();
        assert_eq!(
            text,
            r#"{"error_code":"INVALID_PATH","human_message":"bad","role":null,"session_id":null,"workspace_root":null,"tool_name":"write_file","invariant_id":null,"phase_id":null,"plan_hash":null,"cause":null,"timestamp":"2026-01-01T00:00:00.000Z"}"#
        );
        let back: Envelope = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), text);
    }

    #[test]
    fn every_code_has_a_canonical_word() {
        for code in Code::ALL {
            assert!(CODES.contains(&canonical(*code)), "{code}");
        }
        let timeout = Envelope::of(&Fault::new(Code::Timeout, "too slow"), at());
        assert_eq!(
            (timeout.error_code, &timeout.cause["code"]),
            (Code::UnknownToolFailure, &json!("TIMEOUT"))
        );
    }
}
