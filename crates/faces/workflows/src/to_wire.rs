//! The words of this face for every error: one code of ours becomes one word and one status (ADR-019, section 8).

use http::StatusCode;
use orchestr8_contract::error::Retry;
use orchestr8_contract::{Code, FailureCategory, Kind};
use serde_json::{Map, Value};

macro_rules! words {
    ($($variant:ident $wire:literal $status:ident;)*) => {
        /// Every error word of the REST contract.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Word { $($variant,)* }

        impl Word {
            pub const ALL: &'static [Word] = &[$(Word::$variant,)*];

            pub fn as_str(self) -> &'static str { match self { $(Word::$variant => $wire,)* } }
            pub fn status(self) -> StatusCode { match self { $(Word::$variant => StatusCode::$status,)* } }
        }
    };
}

words! {
    Timeout "TIMEOUT" GATEWAY_TIMEOUT;
    Cancelled "CANCELLED" CONFLICT;
    CircuitOpen "CIRCUIT_OPEN" SERVICE_UNAVAILABLE;
    Retryable "RETRYABLE" SERVICE_UNAVAILABLE;
    Validation "VALIDATION" BAD_REQUEST;
    ExprInvalidSyntax "EXPR_INVALID_SYNTAX" BAD_REQUEST;
    ExprStepNotFound "EXPR_STEP_NOT_FOUND" BAD_REQUEST;
    ExprStepNotCompleted "EXPR_STEP_NOT_COMPLETED" BAD_REQUEST;
    ExprPathNotFound "EXPR_PATH_NOT_FOUND" BAD_REQUEST;
    ExprTooCostly "EXPR_TOO_COSTLY" BAD_REQUEST;
    NotFound "NOT_FOUND" NOT_FOUND;
    Conflict "CONFLICT" CONFLICT;
    KeyConflict "IDEMPOTENCY_KEY_CONFLICT" CONFLICT;
    ResourceExhausted "RESOURCE_EXHAUSTED" TOO_MANY_REQUESTS;
    PayloadTooLarge "PAYLOAD_TOO_LARGE" PAYLOAD_TOO_LARGE;
    Forbidden "FORBIDDEN" FORBIDDEN;
    ServiceUnavailable "SERVICE_UNAVAILABLE" SERVICE_UNAVAILABLE;
    AgentFailed "AGENT_FAILED" UNPROCESSABLE_ENTITY;
    Internal "INTERNAL" INTERNAL_SERVER_ERROR;
    Configuration "CONFIGURATION" UNPROCESSABLE_ENTITY;
}

/// Whose failure it is decides between two words for the same kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Within {
    /// Our answer to a request.
    Request,
    /// A step of an execution: what was not there is what the step called.
    Step,
}

/// A code that has a word of the same name keeps it; every other goes by its kind.
pub(crate) fn word(code: Code, within: Within) -> Word {
    if let Some(same) = Word::ALL.iter().find(|word| word.as_str() == code.as_str()) {
        return *same;
    }
    match (code.kind(), within) {
        (Kind::Invalid, _) => Word::Validation,
        (Kind::NotFound, _) => Word::NotFound,
        (Kind::Unauthenticated | Kind::Forbidden, _) => Word::Forbidden,
        (Kind::Conflict | Kind::Dependency | Kind::State | Kind::Unknown, _) => Word::Conflict,
        (Kind::Exhausted, _) => Word::ResourceExhausted,
        (Kind::Timeout, _) => Word::Timeout,
        (Kind::Cancelled, _) => Word::Cancelled,
        (Kind::Unavailable, Within::Request) => Word::ServiceUnavailable,
        (Kind::Unavailable, Within::Step) => Word::Retryable,
        // A tool that failed without a code of its own is no defect of this server.
        (Kind::Internal, Within::Step) if code == Code::UnknownToolFailure => Word::AgentFailed,
        (Kind::Internal, _) => Word::Internal,
    }
}

/// The status of a refused request: that of its word, but nobody known is told so with 401.
pub(crate) fn status(code: Code) -> StatusCode {
    match code.kind() {
        Kind::Unauthenticated => StatusCode::UNAUTHORIZED,
        Kind::Invalid
        | Kind::NotFound
        | Kind::Forbidden
        | Kind::Conflict
        | Kind::Exhausted
        | Kind::Timeout
        | Kind::Cancelled
        | Kind::Unavailable
        | Kind::Dependency
        | Kind::State
        | Kind::Unknown
        | Kind::Internal => word(code, Within::Request).status(),
    }
}

/// Whether sending the same again may help. An open circuit says no, whatever comes later (ADR-019, section 8).
pub(crate) fn is_retryable(code: Code) -> bool {
    code != Code::CircuitOpen && code.retry() == Retry::Later
}

/// How long to wait before trying again, in seconds, where that is known and may help.
pub(crate) fn retry_after(code: Code) -> Option<&'static str> {
    if code.retry() == Retry::Never {
        return None;
    }
    match word(code, Within::Request) {
        Word::Timeout => Some("10"),
        Word::CircuitOpen | Word::Retryable | Word::ServiceUnavailable => Some("5"),
        Word::ResourceExhausted => Some("1"),
        Word::Cancelled
        | Word::Validation
        | Word::ExprInvalidSyntax
        | Word::ExprStepNotFound
        | Word::ExprStepNotCompleted
        | Word::ExprPathNotFound
        | Word::ExprTooCostly
        | Word::NotFound
        | Word::Conflict
        | Word::KeyConflict
        | Word::PayloadTooLarge
        | Word::Forbidden
        | Word::AgentFailed
        | Word::Internal
        | Word::Configuration => None,
    }
}

/// Puts the errors inside an execution into the words of this face.
pub(crate) fn execution(resource: &mut Map<String, Value>) {
    if let Some(Value::Array(errors)) = resource.get_mut("errors") {
        errors.iter_mut().for_each(error);
    }
    if let Some(Value::Object(steps)) = resource.get_mut("steps") {
        for step in steps.values_mut() {
            inner_error(step);
        }
    }
    let compensation = resource.get_mut("compensation").and_then(|found| found.get_mut("notUndone"));
    if let Some(Value::Array(left)) = compensation {
        left.iter_mut().for_each(inner_error);
    }
    if let Some(Value::Array(abandoned)) = resource.get_mut("notUndone") {
        abandoned.iter_mut().for_each(inner_error);
    }
    if let Some(failed) = resource.get_mut("error") {
        error(failed);
    }
}

/// Puts the error of something that has one into the words of this face: a row of a list, the data of an event.
pub(crate) fn inner_error(value: &mut Value) {
    let Some(members) = value.as_object_mut() else { return };
    if let Some(failed) = members.get_mut("error") {
        error(failed);
    }
    if let Some(Value::Array(errors)) = members.get_mut("errors") {
        errors.iter_mut().for_each(error);
    }
}

/// The code of this name. A name of somebody else is that agent's own failure.
pub(crate) fn code(name: &str) -> Code {
    Code::ALL.iter().find(|code| code.as_str() == name).copied().unwrap_or(Code::AgentFailed)
}

/// The word for the error of a step: what an agent says may be tried again is RETRYABLE, whatever it was.
pub(crate) fn step_word(code: Code, retryable: bool) -> Word {
    match word(code, Within::Step) {
        Word::Internal | Word::AgentFailed if retryable => Word::Retryable,
        word => word,
    }
}

/// The category that the domain says, or that of the code: entries of earlier versions have none.
pub(crate) fn category_of(error: &Map<String, Value>, code: Code) -> FailureCategory {
    let given = error.get("category").and_then(Value::as_str).and_then(FailureCategory::parse);
    given.unwrap_or_else(|| code.category())
}

/// `{code, message, isRetryable, category, details?}` in our codes becomes `{code, message, isRetryable, category, cause?, details?}`.
fn error(value: &mut Value) {
    let Value::Object(error) = value else { return };
    let Some(given) = error.get("code").and_then(Value::as_str) else { return };
    let code = code(given);
    let retryable = error.get("isRetryable").and_then(Value::as_bool).unwrap_or_else(|| is_retryable(code));
    let word = step_word(code, retryable);
    if word.as_str() != given {
        let cause = Value::from(given);
        error.insert("cause".into(), cause);
        error.insert("code".into(), word.as_str().into());
    }
    error.insert("isRetryable".into(), (retryable && code != Code::CircuitOpen).into());
    error.insert("category".into(), category_of(error, code).as_str().into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestr8_testing::Table;
    use serde_json::json;

    #[test]
    fn wf_19_8_the_table_of_errors() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../conformance/workflows/tables/errors.md");
        let table = Table::read(file, "Codes");
        let columns = ["word", "status", "category", "isRetryable", "Retry-After", "in a step"];
        table.holds(&columns, |row| {
            let code = Code::ALL.iter().copied().find(|code| code.as_str() == row.get("code")).unwrap();
            let word = word(code, Within::Request);
            vec![
                word.as_str().to_owned(),
                status(code).as_str().to_owned(),
                code.category().as_str().to_owned(),
                String::from(if is_retryable(code) { "yes" } else { "no" }),
                retry_after(code).unwrap_or_default().to_owned(),
                super::word(code, Within::Step).as_str().to_owned(),
            ]
        });
        assert_eq!(table.rows.len(), Code::ALL.len(), "every code is in the table");
    }

    #[test]
    fn every_code_has_a_word_and_a_status_that_fits_its_kind() {
        for code in Code::ALL {
            let status = status(*code);
            let ours = matches!(code.kind(), Kind::Internal | Kind::Unavailable | Kind::Timeout);
            assert_eq!(status.is_server_error(), ours, "{code} is {status}");
            assert!(status.is_client_error() || status.is_server_error(), "{code} is {status}");
        }
    }

    #[test]
    fn words_are_those_of_the_contract() {
        let of = |code| word(code, Within::Request).as_str();
        assert_eq!(of(Code::InvalidArgument), "VALIDATION");
        assert_eq!(of(Code::InvalidWorkflow), "VALIDATION");
        assert_eq!(of(Code::ExprPathNotFound), "EXPR_PATH_NOT_FOUND");
        assert_eq!(of(Code::KeyConflict), "IDEMPOTENCY_KEY_CONFLICT");
        assert_eq!(of(Code::VersionMismatch), "CONFLICT");
        assert_eq!(of(Code::Unauthorized), "FORBIDDEN");
        assert_eq!(of(Code::StoreFailed), "SERVICE_UNAVAILABLE");
        assert_eq!(word(Code::Unavailable, Within::Step).as_str(), "RETRYABLE");
        assert_eq!(status(Code::Unauthenticated), 401);
        assert_eq!(status(Code::ResourceExhausted), 429);
        assert!(!is_retryable(Code::CircuitOpen) && is_retryable(Code::Timeout));
    }

    #[test]
    fn errors_inside_an_execution_speak_the_words_of_the_face() {
        let mut resource = json!({
            "errors": [{"stepId": "a", "code": "AGENT_FAILED", "message": "m", "isRetryable": false}],
            "steps": {
                "a": {"error": {"code": "UNAVAILABLE", "message": "m", "isRetryable": true, "category": "network", "details": {"n": 1}}},
                "b": {"error": {"code": "CIRCUIT_OPEN", "message": "m", "isRetryable": true}},
                "c": {"error": {"code": "E_THEIRS", "message": "m"}},
                "d": {"status": "completed", "output": {"error": {"code": "UNAVAILABLE"}}},
            },
        });
        execution(resource.as_object_mut().unwrap());
        assert_eq!(
            resource,
            json!({
                "errors": [{"stepId": "a", "code": "AGENT_FAILED", "message": "m", "isRetryable": false, "category": "business"}],
                "steps": {
                    "a": {"error": {"code": "RETRYABLE", "cause": "UNAVAILABLE", "message": "m", "isRetryable": true, "category": "network", "details": {"n": 1}}},
                    "b": {"error": {"code": "CIRCUIT_OPEN", "message": "m", "isRetryable": false, "category": "throttled"}},
                    "c": {"error": {"code": "AGENT_FAILED", "cause": "E_THEIRS", "message": "m", "isRetryable": false, "category": "business"}},
                    "d": {"status": "completed", "output": {"error": {"code": "UNAVAILABLE"}}},
                },
            })
        );
    }
}
