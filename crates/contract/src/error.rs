//! One table of errors. A kind is for programs to branch on, a code is for people to look up, a fault is one occurrence.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::FailureCategory;
use crate::envelope::Envelope;

/// What sort of failure it is. Closed: adding a variant makes the compiler name every face that must translate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The request is wrong; sending it again cannot help.
    Invalid,
    /// What it names does not exist, or is not for this caller to see.
    NotFound,
    /// Nobody known is asking.
    Unauthenticated,
    /// Somebody known is asking for what they may not have.
    Forbidden,
    /// It contradicts what has happened since, or what was said before.
    Conflict,
    /// A limit is reached.
    Exhausted,
    /// The deadline passed; the work may or may not have happened.
    Timeout,
    /// Somebody asked for it to stop.
    Cancelled,
    /// Something it needs is not there now.
    Unavailable,
    /// Something it depends on failed or is unknown.
    Dependency,
    /// It came at the wrong moment in a conversation.
    State,
    /// The end of the work is not known.
    Unknown,
    /// Our fault.
    Internal,
}

/// Whether sending the same again is safe and may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    Never,
    Later,
}

macro_rules! codes {
    ($($variant:ident $wire:literal $kind:ident $retry:ident $advice:literal;)*) => {
        /// Every error we can answer with. Append-only: a name on the wire never changes its meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Code { $(#[serde(rename = $wire)] $variant,)* }

        impl Code {
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// The name on the wire.
            pub fn as_str(self) -> &'static str { match self { $(Code::$variant => $wire,)* } }
            pub fn kind(self) -> Kind { match self { $(Code::$variant => Kind::$kind,)* } }
            pub fn retry(self) -> Retry { match self { $(Code::$variant => Retry::$retry,)* } }
            /// What the person who meets it can do.
            pub fn advice(self) -> &'static str { match self { $(Code::$variant => $advice,)* } }
        }
    };
}

codes! {
    InvalidArgument "INVALID_ARGUMENT" Invalid Never "Correct the value at the path the message names.";
    NotFound "NOT_FOUND" NotFound Never "Check the name; list what exists.";
    Timeout "TIMEOUT" Timeout Later "The server stopped waiting; the work may still have happened. Repeat with the same idempotency key, or raise the time limit.";
    ResourceExhausted "RESOURCE_EXHAUSTED" Exhausted Later "A limit is reached: send less at once, or raise the limit the message names.";
    Internal "INTERNAL" Internal Never "This is our fault: report it with its correlation id; the log has the cause.";
    Unauthorized "UNAUTHORIZED" Forbidden Never "Ask with credentials or over a transport that is allowed to do this.";
    Unauthenticated "UNAUTHENTICATED" Unauthenticated Never "Send a valid token: Authorization: Bearer <token>.";
    NotInitialized "NOT_INITIALIZED" State Never "Send initialize, then notifications/initialized, before anything else.";
    Cancelled "CANCELLED" Cancelled Never "It was stopped on request; submit it anew if it is still wanted.";
    PayloadTooLarge "PAYLOAD_TOO_LARGE" Exhausted Never "Send less, or raise tools.maxPayloadBytes.";
    KeyConflict "IDEMPOTENCY_KEY_CONFLICT" Conflict Never "The key was used for another request: use a new key for a new intention.";
    IdConflict "ID_CONFLICT" Conflict Never "The id was used for another request: use a new id for a new intention.";
    VersionMismatch "VERSION_MISMATCH" Conflict Never "Read the current version, decide again, and send that version.";
    DependencyUnknown "DEPENDENCY_UNKNOWN" Dependency Never "Submit what it depends on first.";
    DependencyFailed "DEPENDENCY_FAILED" Dependency Never "Mend and resubmit what it depends on, under a new id.";
    DependencyTimeout "DEPENDENCY_TIMEOUT" Dependency Later "What it depends on took too long; submit again once that is done.";
    DependencyInversion "DEPENDENCY_INVERSION" Dependency Never "It would wait for work that waits behind it: change the order or the lane.";
    DependencyCycle "DEPENDENCY_CYCLE" Dependency Never "The submissions wait for each other: break the cycle.";
    CircuitOpen "CIRCUIT_OPEN" Unavailable Later "What it calls has failed repeatedly; it is tried again at the time the details give.";
    Unavailable "UNAVAILABLE" Unavailable Later "Something it needs is not reachable now; try again shortly.";
    ShuttingDown "SHUTTING_DOWN" Unavailable Later "The server is stopping; send it again once it is back.";
    OutcomeUnknown "OUTCOME_UNKNOWN" Unknown Never "The server stopped in the middle; look whether the effect happened, then use a new key.";
    StoreFailed "STORE_FAILED" Unavailable Later "The record could not be written, so nothing was acknowledged; check disk space and the log.";
    StoreKey "STORE_KEY" Forbidden Never "The data file is encrypted, and its key is missing or another one: correct store.key and run `orchestr8 doctor`; nothing was changed.";
    StoreCorrupt "STORE_CORRUPT" Internal Never "Stored data fails its check: restore a backup; see `orchestr8 doctor`.";
    Quarantined "QUARANTINED" Forbidden Never "The tool's definition changed since it was accepted: review it, then accept it anew.";
    CapabilityMissing "CAPABILITY_MISSING" State Never "Use a client that can do what the details name, or another tool.";
    StateConflict "CONFLICT" Conflict Never "Look at its present state, then decide again.";
    InvalidWorkflow "INVALID_WORKFLOW" Invalid Never "Correct what the details list, each with its path and a hint; `orchestr8 validate FILE` checks a file.";
    ExprInvalidSyntax "EXPR_INVALID_SYNTAX" Invalid Never "Write ${steps.<id>.output.<path>}, ${variables.<name>} or ${env.<NAME>}, with ?? before a default.";
    ExprStepNotFound "EXPR_STEP_NOT_FOUND" Invalid Never "Name a step of this workflow that this step depends on.";
    ExprStepNotCompleted "EXPR_STEP_NOT_COMPLETED" Dependency Never "The step it refers to has no output; give a default with ??, or a condition.";
    ExprPathNotFound "EXPR_PATH_NOT_FOUND" Invalid Never "The output has nothing at this path; correct the path or give a default with ??.";
    ExprTooCostly "EXPR_TOO_COSTLY" Exhausted Never "The expression compares or copies too much: compare a length or an id instead of whole lists, use fewer terms, or compute it in a step of its own.";
    AgentFailed "AGENT_FAILED" Dependency Never "The agent reports a failure of its own; its message says which.";
    BudgetExceeded "BUDGET_EXCEEDED" Exhausted Never "Raise the budget and resume the execution; nothing of it is lost.";
    Configuration "CONFIGURATION" Invalid Never "Correct the setting the message names; `orchestr8 config show` prints where each value comes from.";
    UntrustedConfiguration "UNTRUSTED_CONFIGURATION" Forbidden Never "Review the configuration of this folder, then run `orchestr8 trust`; or name the file yourself with --config.";
    SessionNotInitialized "SESSION_NOT_INITIALIZED" State Never "Call begin_session with the absolute path of the workspace first.";
    SessionLocked "SESSION_LOCKED" State Never "An earlier failure locked the session: write a report of it under docs/reports/, which unlocks it.";
    SessionInitializationFailed "SESSION_INITIALIZATION_FAILED" Invalid Never "Give begin_session the absolute path of a folder that exists; once for each connection.";
    InvalidInputType "INVALID_INPUT_TYPE" Invalid Never "Send the field the message names with the type it says.";
    InvalidInputFormat "INVALID_INPUT_FORMAT" Invalid Never "Write the field the message names in the form it says.";
    InvalidInputValue "INVALID_INPUT_VALUE" Invalid Never "Correct the value the message names.";
    MissingRequiredField "MISSING_REQUIRED_FIELD" Invalid Never "Add the field the message names.";
    UnauthorizedAction "UNAUTHORIZED_ACTION" Forbidden Never "This role may not do this: use a connection of the role the message names.";
    InsufficientPermissions "INSUFFICIENT_PERMISSIONS" Forbidden Never "The server may not read or write this: check the permissions of the file, or the roots it may open.";
    RoleMismatch "ROLE_MISMATCH" Forbidden Never "What was asked for belongs to the other role.";
    InvalidPath "INVALID_PATH" Invalid Never "Give a path relative to the workspace, with / between its parts, to a plain file.";
    PathNotFound "PATH_NOT_FOUND" NotFound Never "A folder of the path does not exist; check the spelling.";
    PathTraversalBlocked "PATH_TRAVERSAL_BLOCKED" Forbidden Never "A path may not contain '..'; name the file from the root of the workspace.";
    OutsideWorkspace "OUTSIDE_WORKSPACE" Forbidden Never "The path leads out of the workspace, perhaps through a link; only files inside it can be reached.";
    FileNotFound "FILE_NOT_FOUND" NotFound Never "There is no such file; check the name.";
    FileAlreadyExists "FILE_ALREADY_EXISTS" Conflict Never "Something is there already and is not overwritten: choose another name.";
    FileReadFailed "FILE_READ_FAILED" Unavailable Later "The file could not be read as text; the message says why.";
    FileWriteFailed "FILE_WRITE_FAILED" Unavailable Later "The file could not be written and is as it was; check space and what is in its place.";
    PatchInvalid "PATCH_INVALID" Invalid Never "Send a unified diff of one file: @@ -line,count +line,count @@ and lines that begin with a blank, + or -.";
    PatchApplyFailed "PATCH_APPLY_FAILED" Conflict Never "The file is not what the patch was made from: read it again and make the patch anew.";
    HashMismatch "HASH_MISMATCH" Conflict Never "The file has changed since it was read: read it again, decide again, and send its present hash.";
    PlanNotFound "PLAN_NOT_FOUND" NotFound Never "There is no plan with this hash; list_plans shows those there are.";
    PlanNotApproved "PLAN_NOT_APPROVED" Forbidden Never "The planner must approve the plan before anything is written under it.";
    PlanEnforcementFailed "PLAN_ENFORCEMENT_FAILED" Invalid Never "The plan does not hold: its hash or its structure is wrong; the details say where.";
    PlanScopeViolation "PLAN_SCOPE_VIOLATION" Forbidden Never "The plan does not allow this path or phase: stay inside its allow-list, or have another plan approved.";
    PolicyViolation "POLICY_VIOLATION" Invalid Never "Finish what the details point to: no placeholders, no swallowed errors.";
    RustPolicyViolation "RUST_POLICY_VIOLATION" Invalid Never "Handle the error instead of unwrap, panic!, todo! or unsafe at the lines the details name.";
    PreflightFailed "PREFLIGHT_FAILED" Dependency Never "A command of the plan failed and nothing was written; the details have the end of what it said.";
    InvariantViolation "INVARIANT_VIOLATION" Forbidden Never "A rule that always holds would be broken; invariant_id says which.";
    BootstrapFailure "BOOTSTRAP_FAILURE" Forbidden Never "The first plan was not created: check the signature, its age, and that there is no plan yet.";
    SelfAuditFailure "SELF_AUDIT_FAILURE" Internal Never "The audit trail of the workspace does not hold: run `orchestr8 audit verify --workspace DIR`.";
    AuditLogFailed "AUDIT_LOG_FAILED" Unavailable Later "The call could not be recorded and was therefore undone; check disk space and permissions of audit-log.jsonl.";
    AuditLockFailed "AUDIT_LOCK_FAILED" Unavailable Later "Another process holds the audit trail; send the call again shortly.";
    InternalError "INTERNAL_ERROR" Internal Never "This is our fault: report it with its correlation id; the log has the cause.";
    EnvNotAllowed "ENV_NOT_ALLOWED" Invalid Never "The server does not list this environment variable: an administrator can add it to workflows.env, or use a named secret.";
    SecretNotAllowed "SECRET_NOT_ALLOWED" Forbidden Never "The secret is not bound to this tenant, workflow, agent or destination: `orchestr8 secrets list` shows its bindings.";
    SecretsUnavailable "SECRETS_UNAVAILABLE" Unavailable Later "The key of the secrets is missing or does not fit: check secrets.key and run `orchestr8 doctor`.";
    UnknownToolFailure "UNKNOWN_TOOL_FAILURE" Internal Never "The tool failed in a way that has no code of its own; code, details and cause say more.";
    LimitExceeded "LIMIT_EXCEEDED" Exhausted Never "A fixed limit is exceeded, and trying again does not help: stay within the limit that the message names.";
}

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// One failure: what a caller may know, and privately what caused it, for the log only.
#[derive(Debug, Clone)]
pub struct Fault {
    pub code: Code,
    pub message: Cow<'static, str>,
    pub details: Option<Box<Map<String, Value>>>,
    /// The canonical error, where whoever failed has made one (ERR-1).
    pub envelope: Option<Box<Envelope>>,
    /// Where it is narrower than what the code says.
    category: Option<FailureCategory>,
    cause: Option<Arc<dyn Error + Send + Sync>>,
}

impl Fault {
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), details: None, envelope: None, category: None, cause: None }
    }

    /// Says the category where the code alone does not: a connection that broke and a 503 have the same code.
    #[must_use]
    pub fn in_category(mut self, category: FailureCategory) -> Self {
        self.category = Some(category);
        self
    }

    pub fn category(&self) -> FailureCategory {
        self.category.unwrap_or_else(|| self.code.category())
    }

    /// Adds one detail a program can read.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.get_or_insert_default().insert(name.to_owned(), value.into());
        self
    }

    /// Keeps the cause for the log; it never reaches a caller.
    #[must_use]
    pub fn because(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.cause = Some(Arc::from(cause.into()));
        self
    }

    pub fn cause(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        self.cause.as_deref()
    }

    pub fn kind(&self) -> Kind {
        self.code.kind()
    }

    pub fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::Internal, message)
    }

    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.code, self.message)
    }
}

impl Error for Fault {}

/// How a fault is stored: everything a caller may know, and no cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredFault {
    pub code: Code,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub envelope: Option<Box<Envelope>>,
    /// Where it is narrower than what the code says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<FailureCategory>,
}

impl StoredFault {
    pub fn category(&self) -> FailureCategory {
        self.category.unwrap_or_else(|| self.code.category())
    }
}

impl From<&Fault> for StoredFault {
    fn from(fault: &Fault) -> Self {
        Self {
            code: fault.code,
            message: fault.message.clone().into_owned(),
            details: fault.details.as_deref().cloned(),
            envelope: fault.envelope.clone(),
            category: fault.category,
        }
    }
}

impl From<StoredFault> for Fault {
    fn from(stored: StoredFault) -> Self {
        Self {
            code: stored.code,
            message: stored.message.into(),
            details: stored.details.map(Box::new),
            envelope: stored.envelope,
            category: stored.category,
            cause: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_on_the_wire_are_unique_and_shouted() {
        let names: HashSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(names.len(), Code::ALL.len());
        for name in names {
            assert!(name.chars().all(|c| c.is_ascii_uppercase() || c == '_'), "{name}");
        }
    }

    #[test]
    fn every_code_tells_what_to_do() {
        for code in Code::ALL {
            assert!(code.advice().ends_with('.'), "{code}");
        }
    }

    #[test]
    fn a_stored_fault_keeps_all_but_its_cause() {
        let fault = Fault::invalid("a is wrong").with("path", "/a").because("secret detail");
        let text = serde_json::to_string(&StoredFault::from(&fault)).unwrap();
        assert!(!text.contains("secret"));
        let back: Fault = serde_json::from_str::<StoredFault>(&text).unwrap().into();
        assert_eq!((back.code, back.message.as_ref()), (Code::InvalidArgument, "a is wrong"));
    }
}
