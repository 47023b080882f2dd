//! The audit chain: who ran what, and how it ended, each entry chained to the one before by its hash.
//!
//! Arguments appear only as a hash, so that an entry proves what was asked without repeating a secret.

use orchestr8_contract::chain::{PRUNED, Pruned};
use orchestr8_contract::envelope::Role;
use orchestr8_contract::id::{ActionName, CorrelationId, RunId, Tenant};
use orchestr8_contract::{Code, Fault, Output, canonical};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::outcome::{End, Stored};
use crate::pipeline::Admitted;
use crate::ports::clock::iso;
use crate::ports::store::Link;
use crate::redact::Redactor;
use crate::refusals::RefusedCall;
use crate::source::Source;
use crate::submission::Transport;

/// The chain of all actions of this server.
pub const CHAIN: &str = "actions";

/// What entries call the deletion of old ones, and who does it.
const PRUNE: &str = "audit.prune";
const SERVER: &str = "server";

/// The body of an entry about a call: the members of every audit trail (ERR-6), null where an action of the server has no such
/// thing, and our own. In the order of their names, so that its JSON is canonical.
#[derive(Serialize)]
struct CallEntry<'a> {
    action: &'a ActionName,
    args_hash: String,
    cause: Option<Box<RawValue>>,
    correlation_id: &'a CorrelationId,
    end: End,
    error_code: Option<Code>,
    face: &'a str,
    invariant_id: Option<&'a str>,
    object: Option<String>,
    phase_id: Option<&'a str>,
    plan_hash: Option<&'a str>,
    principal: &'a str,
    result: &'static str,
    result_hash: Option<String>,
    role: Option<Role>,
    run_id: RunId,
    session_id: Option<&'a str>,
    source: String,
    tenant: &'a Tenant,
    timestamp: String,
    tool_name: &'a ActionName,
    transport: &'static str,
}

/// What entries say of the arguments of a call. It is taken before the work begins, which consumes them.
#[derive(Debug, Clone)]
pub struct AuditSubject {
    args_hash: String,
    /// The id of what the arguments name.
    pub object: Option<String>,
}

impl AuditSubject {
    pub fn of(args: &Value, secret: &[&str]) -> Self {
        Self { args_hash: args_hash(args, secret), object: object(args) }
    }
}

/// The entry of a call that was carried out.
pub fn link(admitted: &Admitted, stored: &Stored, at_ms: i64, redactor: &Redactor) -> Link {
    let submission = &admitted.submission;
    let now = || AuditSubject::of(submission.args.as_value(), admitted.action.policy.secret_args);
    let subject = submission.audit_subject.clone().unwrap_or_else(now);
    let result_hash = match (&stored.output, &stored.fault) {
        (Some(output), _) => Some(canonical::sha256_hex_of(&output.canonical())),
        (None, fault) => fault.as_ref().and_then(hash),
    };
    let envelope = stored.fault.as_ref().and_then(|fault| fault.envelope.as_deref());
    let cause = envelope.map(|envelope| canonical::text(&redactor.value(&envelope.cause)));
    let entry = CallEntry {
        action: &admitted.action.name,
        args_hash: subject.args_hash,
        cause: cause.and_then(|cause| RawValue::from_string(cause).ok()),
        correlation_id: &submission.correlation,
        end: stored.end,
        error_code: stored.fault.as_ref().map(|fault| fault.code),
        face: submission.source.face,
        invariant_id: envelope.and_then(|envelope| envelope.invariant_id.as_deref()),
        object: output_value(stored).and_then(object).or(subject.object),
        phase_id: envelope.and_then(|envelope| envelope.phase_id.as_deref()),
        plan_hash: envelope.and_then(|envelope| envelope.plan_hash.as_deref()),
        principal: &submission.principal.name,
        result: if stored.fault.is_none() { "success" } else { "failure" },
        result_hash,
        role: envelope.and_then(|envelope| envelope.role),
        run_id: admitted.run,
        session_id: envelope.and_then(|envelope| envelope.session_id.as_deref()),
        source: submission.source.origin.to_string(),
        tenant: &submission.principal.tenant,
        timestamp: iso(at_ms),
        tool_name: &admitted.action.name,
        transport: submission.transport.as_str(),
    };
    Link { chain: CHAIN.into(), at_ms, body: canonical::of_sorted(&entry) }
}

/// The entry of a call that was refused for want of a right.
pub(crate) fn refused(call: &RefusedCall, fault: &Fault, suppressed: u32, at_ms: i64) -> Link {
    let body = json!({
        "tool_name": call.action, "action": call.action, "result": "failure", "end": End::Refused,
        "error_code": fault.code, "reason": fault.message, "object": call.object, "suppressed": suppressed,
        "principal": &*call.principal.name, "roles": call.principal.roles.union(call.principal.elevated), "tenant": call.principal.tenant,
        "transport": call.transport.as_str(), "face": call.source.face,
        "source": call.source.origin.to_string(), "correlation_id": call.correlation, "run_id": call.run,
        "timestamp": iso(at_ms),
    });
    Link { chain: CHAIN.into(), at_ms, body: canonical::text(&body) }
}

/// The members that name the object of a call, the most specific first.
const OBJECTS: [&str; 12] = [
    "executionId",
    "sessionId",
    "document_id",
    "messageId",
    "requestId",
    "taskId",
    "scheduleId",
    "workflowId",
    "agentId",
    "targetAgentId",
    "id",
    "name",
];

/// The longest id that is repeated; longer ones are cut.
const OBJECT_CHARACTERS: usize = 256;

/// The id that arguments or an answer name: what a call is about, or what it created.
pub(crate) fn object(value: &Value) -> Option<String> {
    let id = OBJECTS.iter().find_map(|name| value.get(name)?.as_str())?;
    Some(id.chars().take(OBJECT_CHARACTERS).collect())
}

fn output_value(stored: &Stored) -> Option<&Value> {
    match stored.output.as_ref()? {
        Output::Json { value } => Some(value),
        Output::Blocks { .. } | Output::Resource { .. } | Output::Prompt { .. } => None,
    }
}

/// What is written before the oldest entries are deleted, so that the rest can still be proven.
pub fn pruned(pruned: &Pruned, at_ms: i64) -> Link {
    let body = json!({
        "tool_name": PRUNE, "action": PRUNE, "result": "success", "end": End::Success, "principal": SERVER,
        "tenant": Tenant::local(), "transport": Transport::Internal.as_str(), "face": Source::SERVER.face, "source": SERVER,
        "timestamp": iso(at_ms), PRUNED: pruned,
    });
    Link { chain: CHAIN.into(), at_ms, body: canonical::text(&body) }
}

/// Something about the security of the server that no action did: a failed login, a rejected host.
#[derive(Debug, Clone)]
pub struct SecurityEvent {
    /// What it is called, such as `auth.login`.
    pub action: &'static str,
    pub tenant: Tenant,
    /// Who it was, as far as that is known: an address, the id of a token.
    pub principal: String,
    pub source: String,
    pub code: Code,
    /// More about it, without secrets.
    pub detail: Value,
}

/// The entry of an event that no action did.
pub fn security_event(event: &SecurityEvent, at_ms: i64) -> Link {
    let body = json!({
        "tool_name": event.action, "action": event.action, "result": "failure", "end": End::Refused,
        "error_code": event.code, "principal": event.principal, "tenant": event.tenant,
        "transport": Transport::Http.as_str(), "face": "edge", "source": event.source, "detail": event.detail,
        "timestamp": iso(at_ms),
    });
    Link { chain: CHAIN.into(), at_ms, body: canonical::text(&body) }
}

/// A change that no action made: what the server does by itself, and operations that a face serves without an action.
#[derive(Debug, Clone)]
pub struct StateChange<'a> {
    /// What it is called, such as `schedules.fire`.
    pub action: &'static str,
    pub tenant: &'a str,
    pub principal: &'a str,
    pub transport: Transport,
    pub source: Source,
    pub object: Option<&'a str>,
    /// Why it is a failure, if it is one.
    pub code: Option<Code>,
    /// More about it, without secrets.
    pub detail: Value,
}

impl<'a> StateChange<'a> {
    /// Made by the server itself: a timer, retention, a delivery that is given up.
    pub fn by_server(action: &'static str, tenant: &'a str, object: Option<&'a str>) -> Self {
        Self {
            action,
            tenant,
            principal: SERVER,
            transport: Transport::Internal,
            source: Source::SERVER,
            object,
            code: None,
            detail: Value::Null,
        }
    }

    /// The entry, for the batch that makes the change.
    pub fn link(&self, at_ms: i64) -> Link {
        let (result, end) = match self.code {
            None => ("success", End::Success),
            Some(_) => ("failure", End::ToolError),
        };
        let object = self.object.map(|id| id.chars().take(OBJECT_CHARACTERS).collect::<String>());
        let body = json!({
            "tool_name": self.action, "action": self.action, "result": result, "end": end, "error_code": self.code,
            "object": object, "principal": self.principal, "tenant": self.tenant,
            "transport": self.transport.as_str(), "face": self.source.face, "source": self.source.origin.to_string(),
            "detail": self.detail, "timestamp": iso(at_ms),
        });
        Link { chain: CHAIN.into(), at_ms, body: canonical::text(&body) }
    }
}

/// The hash of the arguments without those that are secret.
fn args_hash(args: &Value, secret: &[&str]) -> String {
    match (secret, args) {
        ([], _)
        | (_, Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            canonical::sha256_hex(args)
        }
        (secret, Value::Object(map)) => {
            let shown = map.iter().filter(|(name, _)| !secret.contains(&name.as_str()));
            canonical::sha256_hex(&Value::Object(
                shown.map(|(name, value)| (name.clone(), value.clone())).collect(),
            ))
        }
    }
}

fn hash(of: &impl Serialize) -> Option<String> {
    serde_json::to_value(of).ok().map(|value| canonical::sha256_hex(&value))
}
