//! A submission: one wish that one action run, as a face hands it to the kernel.

use std::sync::Arc;

use orchestr8_contract::envelope::Role;
use orchestr8_contract::id::{CorrelationId, Key, Lane, SubmissionId, Tenant};
use orchestr8_contract::{AccessRole, RoleSet, TraceParent, json};
use serde_json::{Map, Value};

use crate::audit::AuditSubject;
use crate::cancel::Cancel;
use crate::fingerprint::Fingerprint;
use crate::follow::Follow;
use crate::grant::{TokenGrant, TokenScope};
use crate::peer::Peer;
use crate::source::Source;
use crate::tool_limit::ToolLimit;

const APPROVAL_LINK: &str = "approval-link";

/// The sender of a delivery to a webhook trigger.
const WEBHOOK_SENDER: &str = "webhook-sender";

/// Names that no token may have, since the program uses them for principals of its own. So are names that begin with `svc:`.
pub const RESERVED_NAMES: [&str; 8] = [
    "local",
    APPROVAL_LINK,
    "signed-link",
    "schedule",
    "server",
    WEBHOOK_SENDER,
    STDIO_PLANNER,
    STDIO_EXECUTOR,
];

/// Agents of governed connections over stdio, which are not the person at this machine.
const STDIO_PLANNER: &str = "stdio-planner";
const STDIO_EXECUTOR: &str = "stdio-executor";

/// The authenticated caller.
#[derive(Debug, Clone)]
pub struct Principal {
    pub name: Arc<str>,
    pub tenant: Tenant,
    pub roles: RoleSet,
    /// The API token it was authenticated with; none for tokens of the settings and for the person at this machine.
    pub grant: Option<Arc<TokenGrant>>,
    /// The tools that work on its behalf may use, if they are limited.
    pub tools: Option<ToolLimit>,
    /// Roles of this one submission alone. Work that it starts does not inherit them.
    pub elevated: RoleSet,
    /// It was authenticated as the security profile of the documents asks, or is this process itself. Work that goes on after its
    /// request, such as an execution, is not.
    pub document_proof: bool,
}

impl Principal {
    /// The person at this machine: no credentials, and the owner of the data. Other roles must be granted by name.
    pub fn local() -> Self {
        Self::new("local", Tenant::local(), RoleSet::of(&[AccessRole::Owner]))
    }

    pub fn new(name: impl Into<Arc<str>>, tenant: Tenant, roles: RoleSet) -> Self {
        Self {
            name: name.into(),
            tenant,
            roles,
            grant: None,
            tools: None,
            elevated: RoleSet::NONE,
            document_proof: false,
        }
    }

    /// The same principal, held to what its token grants.
    #[must_use]
    pub fn granted(self, grant: Option<Arc<TokenGrant>>) -> Self {
        Self { grant, ..self }
    }

    /// The same principal, whose work may use no tools but those of this limit and of its own one.
    #[must_use]
    pub fn limited(self, limit: Option<&ToolLimit>) -> Self {
        let tools = ToolLimit::all_of([self.tools.as_ref(), limit]);
        Self { tools, ..self }
    }

    /// The same principal, whose work is held to these entries of a scope as well as to its own scope.
    #[must_use]
    pub fn narrowed(self, scope: &[String]) -> Self {
        self.narrowed_to(TokenScope::recorded(scope))
    }

    /// The same for a scope that was read.
    #[must_use]
    pub fn narrowed_to(self, scope: TokenScope) -> Self {
        if scope.is_unlimited() {
            return self;
        }
        let grant = match &self.grant {
            Some(own) => own.narrowed(&scope),
            None => TokenGrant::of_work(&self.name, self.tenant.clone(), scope),
        };
        self.granted(Some(Arc::new(grant)))
    }

    /// The entries of the scope that its work is held to; none if it is not.
    pub fn scope_entries(&self) -> Vec<String> {
        self.grant.as_ref().map_or_else(Vec::new, |grant| grant.scope.entries())
    }

    /// The same principal, authenticated as the profile of the documents asks.
    #[must_use]
    pub fn with_document_proof(self) -> Self {
        Self { document_proof: true, ..self }
    }

    /// The principal that work on behalf of a submission has: without the roles of the submission alone.
    pub(crate) fn inherited(self: &Arc<Self>) -> Arc<Self> {
        match self.elevated.is_empty() {
            true => self.clone(),
            false => Arc::new(Self { elevated: RoleSet::NONE, ..Self::clone(self) }),
        }
    }

    /// Whether it administers the machine, and so every tenant: an admin or owner of the operator's own tenant.
    pub fn administers_machine(&self) -> bool {
        self.tenant == Tenant::local() && self.administers_tenant()
    }

    /// Whether it administers its own tenant.
    pub fn administers_tenant(&self) -> bool {
        self.has(AccessRole::Owner) || self.has(AccessRole::Admin)
    }

    /// The agent of a governed connection over stdio: it has its role and no other, so that what it proposes is not approved by
    /// the person at this machine without being asked.
    pub fn governed_agent(role: Role) -> Self {
        let name = match role {
            Role::Planner => STDIO_PLANNER,
            Role::Executor => STDIO_EXECUTOR,
        };
        Self::new(name, Tenant::local(), RoleSet::of(&[role.access()]))
    }

    /// The holder of a link to an approval: known by nothing but the link.
    pub fn approval_link(tenant: Tenant) -> Self {
        Self::new(APPROVAL_LINK, tenant, RoleSet::of(&[AccessRole::Approver]))
    }

    /// The sender of a delivery to a trigger: known by nothing but the signature, and without a role.
    pub fn webhook_sender(tenant: Tenant) -> Self {
        Self::new(WEBHOOK_SENDER, tenant, RoleSet::NONE)
    }

    pub fn is_approval_link(&self) -> bool {
        &*self.name == APPROVAL_LINK
    }

    /// Resolves when its API token is revoked or expires; never for a principal without one. For work that waits on its behalf.
    pub async fn token_ended(&self) {
        match &self.grant {
            Some(grant) => grant.ended().await,
            None => std::future::pending().await,
        }
    }

    /// Whether its token, if it has one, is not limited to other actions.
    pub fn is_in_scope(&self, action: &str) -> bool {
        self.grant.as_ref().is_none_or(|grant| grant.scope.allows_action(action))
    }

    pub fn has(&self, role: AccessRole) -> bool {
        self.roles.has(role) || self.elevated.has(role)
    }
}

/// The way a submission came in. Admin policies depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Stdio,
    Http,
    WebSocket,
    /// From inside: a child action, a schedule, a command line that runs the kernel itself.
    Internal,
}

impl Transport {
    pub fn as_str(self) -> &'static str {
        match self {
            Transport::Stdio => "stdio",
            Transport::Http => "http",
            Transport::WebSocket => "websocket",
            Transport::Internal => "internal",
        }
    }
}

/// The arguments of an action: always a JSON object.
#[derive(Debug, Clone)]
pub struct Args {
    /// Always an object; the constructors see to it.
    value: Value,
    /// The length of the text it was read from, if it came as text.
    text_bytes: Option<usize>,
}

impl Args {
    pub fn new(map: Map<String, Value>) -> Self {
        Self { value: Value::Object(map), text_bytes: None }
    }

    /// Arguments read from a text of this length; saves measuring them again.
    pub fn read(map: Map<String, Value>, text_bytes: usize) -> Self {
        Self { value: Value::Object(map), text_bytes: Some(text_bytes) }
    }

    /// Takes the arguments out, leaving none behind.
    pub(crate) fn take(&mut self) -> Args {
        std::mem::replace(self, Args::new(Map::new()))
    }

    pub fn as_value(&self) -> &Value {
        &self.value
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.value.get(name)
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    pub fn into_value(self) -> Value {
        self.value
    }

    /// The length of the text they were read from, or that they would have.
    pub fn bytes(&self) -> usize {
        self.text_bytes.unwrap_or_else(|| json::bytes(&self.value))
    }

    /// Whether the serialized arguments are within the limit (MCP-ORDER-4).
    ///
    /// Serialized again, a text grows at most sixfold (`1e20` becomes 21 digits), so small texts need no measuring.
    pub fn fits(&self, limit: usize) -> Result<(), usize> {
        const GROWTH: usize = 6;
        if self.text_bytes.is_some_and(|bytes| bytes.saturating_mul(GROWTH) <= limit) {
            return Ok(());
        }
        let bytes = json::bytes(&self.value);
        if bytes <= limit { Ok(()) } else { Err(bytes) }
    }
}

/// What makes a repeat recognisable: within a scope, a key stands for one intention for as long as its outcome is kept.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    pub scope: Scope,
    pub key: Key,
    pub ttl_ms: u64,
}

/// Keys of different scopes never meet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Scope(pub Arc<str>);

/// A thing whose changes are counted, and the count the submitter has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    pub subject: Arc<str>,
    pub expected: Option<u64>,
}

/// One wish that one action run.
pub struct Submission {
    /// The action's name or one of its aliases, as the client wrote it.
    pub action: Arc<str>,
    pub args: Args,
    pub principal: Arc<Principal>,
    pub transport: Transport,
    pub source: Source,
    /// The workflow whose step submits it.
    pub workflow: Option<Arc<str>>,
    pub correlation: CorrelationId,
    /// The trace it is a part of, if somebody follows one.
    pub trace: Option<TraceParent>,
    /// Known to others of the same scope under this id, who may depend on it. Set it with `named`.
    pub id: Option<SubmissionId>,
    pub id_scope: Scope,
    pub identities: Vec<Identity>,
    /// Tells whether a repeat of a key means the same. None: the action and its arguments do.
    pub fingerprint: Option<Fingerprint>,
    pub lane: Option<Lane>,
    pub depends_on: Vec<SubmissionId>,
    pub version: Option<Version>,
    /// Shorter than the action's own limit, never longer.
    pub timeout_ms: Option<u64>,
    /// A timeout is the outcome of its keys for good: what the work gives later does not replace it.
    pub timeout_is_final: bool,
    pub cancel: Cancel,
    /// The client on the other side, when it can be talked to during the run.
    pub peer: Option<Arc<dyn Peer>>,
    /// Whoever wants to know of its steps while they happen.
    pub follow: Option<Arc<dyn Follow>>,
    /// What the audit says of its arguments, once the work has taken them.
    pub audit_subject: Option<AuditSubject>,
}

impl Submission {
    pub fn new(
        action: impl Into<Arc<str>>,
        args: Args,
        principal: Arc<Principal>,
        correlation: CorrelationId,
    ) -> Self {
        Self {
            action: action.into(),
            args,
            principal,
            transport: Transport::Internal,
            source: Source::SERVER,
            workflow: None,
            correlation,
            trace: None,
            id: None,
            id_scope: Scope("id".into()),
            identities: Vec::new(),
            fingerprint: None,
            lane: None,
            depends_on: Vec::new(),
            version: None,
            timeout_ms: None,
            timeout_is_final: false,
            cancel: Cancel::new(),
            peer: None,
            follow: None,
            audit_subject: None,
        }
    }

    /// Gives it an id: others may depend on it, and a repeat of the id is recognised.
    #[must_use]
    pub fn named(mut self, scope: Scope, id: SubmissionId, ttl_ms: u64) -> Self {
        self.identities.push(past(&scope, &id, ttl_ms));
        self.id_scope = scope;
        self.id = Some(id);
        self
    }
}

/// The identity under which the ledger keeps the outcome of a submission with an id.
pub fn past(scope: &Scope, id: &SubmissionId, ttl_ms: u64) -> Identity {
    Identity { scope: scope.clone(), key: Key::from(id), ttl_ms }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn args(value: Value) -> Args {
        match value {
            Value::Object(map) => Args::new(map),
            other => panic!("{other} is no object"),
        }
    }

    #[test]
    fn arguments_are_measured_as_they_serialize() {
        let args = args(json!({"message": "héllo"}));
        assert_eq!(args.fits(19), Err(20));
        assert_eq!(args.fits(20), Ok(()));
        assert_eq!(Args::new(Map::new()).fits(1), Err(2), "absent arguments count as {{}}");
    }

    #[test]
    fn a_text_that_grows_when_serialized_is_measured() {
        let text = r#"{"n":1e20}"#;
        let map = serde_json::from_str(text).unwrap();
        assert!(Args::read(map, text.len()).fits(text.len()).is_err());
    }
}
