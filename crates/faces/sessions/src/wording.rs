//! The words for a failure, exactly as existing clients match on them (SES-12).

use std::borrow::Cow;

use orchestr8_contract::{Code, Fault, Kind};
use serde_json::Value;

use crate::commands::PREFIX;
use crate::from_wire::kernel_id;

/// The scope of command ids in the ledger. Keys have another, so a conflict tells which of them it is about.
pub const ID_SCOPE: &str = "session-id";

pub const INVALID_JSON: &str = "Invalid JSON";
pub const SHUTTING_DOWN: &str = "Server is shutting down";
pub const BUSY: &str = "Server busy - too many concurrent commands. Please retry.";

/// What the words need to know of the command that failed.
pub struct Asked<'a> {
    pub command: &'a str,
    pub id: Option<&'a str>,
    pub key: Option<&'a str>,
    pub session: Option<&'a str>,
    pub depends_on: &'a [String],
    pub dependency_wait_ms: u64,
}

/// A failure as a client reads it, and the code a program branches on.
pub struct Failure {
    pub text: Cow<'static, str>,
    pub code: Code,
}

impl Failure {
    fn new(text: impl Into<Cow<'static, str>>, code: Code) -> Self {
        Self { text: text.into(), code }
    }
}

pub fn of(fault: &Fault, asked: &Asked<'_>) -> Failure {
    let worded = match fault.kind() {
        Kind::Conflict => conflict(fault, asked),
        Kind::Dependency => dependency(fault, asked),
        Kind::Exhausted => exhausted(fault),
        Kind::Timeout => number(fault, "timeoutMs").map(|limit_ms| {
            let text = format!("Command '{}' timed out after {limit_ms}ms", asked.command);
            Failure::new(text, fault.code)
        }),
        Kind::NotFound => missing(fault, asked),
        Kind::Unavailable => {
            (fault.code == Code::ShuttingDown).then(|| Failure::new(SHUTTING_DOWN, fault.code))
        }
        Kind::Invalid
        | Kind::Unauthenticated
        | Kind::Forbidden
        | Kind::Cancelled
        | Kind::State
        | Kind::Unknown
        | Kind::Internal => None,
    };
    // What the domain says, it says in the words of the protocol already.
    worded.unwrap_or_else(|| Failure::new(fault.message.clone(), fault.code))
}

/// Whether the server had no room for it: then it costs its sender nothing.
pub fn is_busy(fault: &Fault) -> bool {
    fault.kind() == Kind::Exhausted
        && matches!(detail(fault, "reason"), Some("too_many_in_flight" | "concurrency_limit_exceeded"))
}

fn conflict(fault: &Fault, asked: &Asked<'_>) -> Option<Failure> {
    if fault.code == Code::VersionMismatch {
        let (expected, found) = (number(fault, "expected")?, number(fault, "found")?);
        let text = format!("Session version mismatch: expected {expected}, got {found}");
        return Some(Failure::new(text, fault.code));
    }
    let before = detail(fault, "previousAction")?;
    let before = before.strip_prefix(PREFIX).unwrap_or(before);
    let (what, value, code) = match detail(fault, "scope")?.starts_with(ID_SCOPE) {
        true => ("id", asked.id?, Code::IdConflict),
        false => ("idempotencyKey", asked.key?, Code::KeyConflict),
    };
    let now = asked.command;
    let text = format!("Conflicting {what} '{value}': previously used for '{before}', now used for '{now}'");
    Some(Failure::new(text, code))
}

fn dependency(fault: &Fault, asked: &Asked<'_>) -> Option<Failure> {
    let named = detail(fault, "dependency")?;
    // The kernel may know it by another name; the client hears its own.
    let own = asked.depends_on.iter().find(|id| kernel_id(id).is_some_and(|id| id.as_str() == named));
    let id = own.map_or(named, String::as_str);
    let text = if fault.code == Code::DependencyUnknown {
        format!("Dependency '{id}' is unknown")
    } else if fault.code == Code::DependencyFailed {
        format!("Dependency '{id}' failed: {}", detail(fault, "why").unwrap_or("unknown error"))
    } else if fault.code == Code::DependencyTimeout {
        format!("Command 'dependsOn:{id}' timed out after {}ms", asked.dependency_wait_ms)
    } else if fault.code == Code::DependencyInversion {
        format!("Dependency '{id}' is queued in the same lane and cannot be awaited from this command")
    } else if asked.id == Some(id) {
        format!("Command '{id}' cannot depend on itself")
    } else {
        format!("Dependency '{id}' waits for this command in turn")
    };
    Some(Failure::new(text, fault.code))
}

fn exhausted(fault: &Fault) -> Option<Failure> {
    if is_busy(fault) {
        return Some(Failure::new(BUSY, fault.code));
    }
    let (bytes, limit) = (number(fault, "bytes")?, number(fault, "maxPayloadBytes")?);
    Some(Failure::new(format!("Message size {bytes} exceeds limit {limit}"), Code::PayloadTooLarge))
}

fn missing(fault: &Fault, asked: &Asked<'_>) -> Option<Failure> {
    // Only what counts versions names a subject, and what was expected of it if anything was.
    let (_, session) = (detail(fault, "subject")?, asked.session?);
    let text = match number(fault, "expected") {
        Some(expected) => format!("Session {session} not found for ifSessionVersion={expected}"),
        None => format!("Session {session} not found"),
    };
    Some(Failure::new(text, fault.code))
}

fn detail<'a>(fault: &'a Fault, name: &str) -> Option<&'a str> {
    fault.details.as_ref()?.get(name)?.as_str()
}

fn number(fault: &Fault, name: &str) -> Option<u64> {
    fault.details.as_ref()?.get(name).and_then(Value::as_u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(fault: &Fault) -> (String, &'static str) {
        let depends_on = [String::from("x"), "ü".repeat(200)];
        let asked = Asked {
            command: "prompt",
            id: Some("c"),
            key: Some("k"),
            session: Some("s1"),
            depends_on: &depends_on,
            dependency_wait_ms: 30_000,
        };
        let failure = of(fault, &asked);
        (failure.text.into_owned(), failure.code.as_str())
    }

    fn on(code: Code, dependency: &str) -> Fault {
        Fault::new(code, "words of the kernel").with("dependency", dependency)
    }

    #[test]
    fn faults_of_the_kernel_are_told_in_the_words_of_the_protocol() {
        let conflict = |scope: &str| {
            on(Code::KeyConflict, "").with("scope", scope).with("previousAction", "session.bash")
        };
        let version = Fault::new(Code::VersionMismatch, "").with("expected", 0).with("found", 1);
        let gone = Fault::new(Code::NotFound, "").with("subject", "session:s1").with("expected", 0);
        let long = kernel_id(&"ü".repeat(200)).unwrap();
        let cases = [
            (
                conflict("session-id"),
                "Conflicting id 'c': previously used for 'bash', now used for 'prompt'",
                "ID_CONFLICT",
            ),
            (
                conflict("session-key:s1"),
                "Conflicting idempotencyKey 'k': previously used for 'bash', now used for 'prompt'",
                "IDEMPOTENCY_KEY_CONFLICT",
            ),
            (version, "Session version mismatch: expected 0, got 1", "VERSION_MISMATCH"),
            (gone, "Session s1 not found for ifSessionVersion=0", "NOT_FOUND"),
            (on(Code::DependencyUnknown, "x"), "Dependency 'x' is unknown", "DEPENDENCY_UNKNOWN"),
            (
                on(Code::DependencyUnknown, long.as_str()),
                &format!("Dependency '{}' is unknown", "ü".repeat(200)),
                "DEPENDENCY_UNKNOWN",
            ),
            (
                on(Code::DependencyFailed, "x").with("why", "Session s1 not found"),
                "Dependency 'x' failed: Session s1 not found",
                "DEPENDENCY_FAILED",
            ),
            (
                on(Code::DependencyInversion, "x"),
                "Dependency 'x' is queued in the same lane and cannot be awaited from this command",
                "DEPENDENCY_INVERSION",
            ),
            (
                on(Code::DependencyTimeout, "x"),
                "Command 'dependsOn:x' timed out after 30000ms",
                "DEPENDENCY_TIMEOUT",
            ),
            (on(Code::DependencyCycle, "c"), "Command 'c' cannot depend on itself", "DEPENDENCY_CYCLE"),
            (
                Fault::new(Code::Timeout, "").with("timeoutMs", 300_000),
                "Command 'prompt' timed out after 300000ms",
                "TIMEOUT",
            ),
            (
                Fault::new(Code::ResourceExhausted, "").with("reason", "too_many_in_flight"),
                BUSY,
                "RESOURCE_EXHAUSTED",
            ),
            (Fault::new(Code::ShuttingDown, "the server stops"), SHUTTING_DOWN, "SHUTTING_DOWN"),
            (Fault::new(Code::NotFound, "Session s1 not found"), "Session s1 not found", "NOT_FOUND"),
        ];
        for (fault, words, code) in cases {
            assert_eq!(text(&fault), (words.to_owned(), code));
        }
    }
}
