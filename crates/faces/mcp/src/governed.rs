//! Connections to governed workspaces: whoever has the role of planner or executor sees the tools of workspaces, by their
//! plain names, and nothing else. Nobody else sees them.

use std::sync::Arc;

use orchestr8_contract::envelope::{GOVERNED, Role};
use orchestr8_contract::{Code, Fault, canonical};
use orchestr8_kernel::action::{Action, Halt, Shown};
use orchestr8_kernel::outcome::{End, Settled};
use orchestr8_kernel::peer::Peer;
use orchestr8_kernel::{Args, Kernel, Principal, Source, Submission, Transport};
use serde_json::{Map, Value};

use crate::request::Request;
use crate::results;
use crate::wire::Error;

/// The member of `_meta` that says which roles may use a tool.
pub const ROLES_META: &str = "orchestr8/roles";

/// The action that answers for a name that is no tool, so that this is recorded too (ERR-6).
const UNKNOWN_TOOL: &str = "unknown_tool";

/// The action that answers for a call that was refused before its tool ran, for the same reason.
const REFUSED_CALL: &str = "refused_call";

/// The role of a governed connection; none: it is an ordinary one. The role comes with the connection or its credential,
/// never from what a caller says.
pub fn role(who: &Principal) -> Option<Role> {
    Role::ALL.into_iter().find(|role| who.has(role.access()))
}

/// The name of a governed tool as its clients know it.
pub fn plain(action: &Action) -> &str {
    action.name.as_str().strip_prefix(GOVERNED).unwrap_or(action.name.as_str())
}

/// Whether clients of governed connections may call it by name: it says which roles it is for. Those that answer for other calls do
/// not, and exist for no client.
pub fn is_tool(action: &Action) -> bool {
    action.about.meta.contains_key(ROLES_META)
}

pub fn full(name: &str) -> String {
    format!("{GOVERNED}{name}")
}

/// Whether a governed connection of this role is shown the action.
pub fn shows(role: Role, action: &Action) -> bool {
    match &action.shown {
        Shown::Hidden => {
            let roles = action.about.meta.get(ROLES_META).and_then(Value::as_array);
            action.name.as_str().starts_with(GOVERNED)
                && roles.into_iter().flatten().any(|word| word.as_str() == Some(role.as_str()))
        }
        // Long results are handed out in pages, also those of governed tools.
        Shown::Resource(_) => action.name.as_str() == results::ACTION,
        Shown::Tool | Shown::Prompt { .. } => false,
    }
}

/// What is really submitted for a call on a governed connection.
pub fn submitted(name: &Arc<str>, action: Option<&Arc<Action>>, args: Args) -> (Arc<str>, Args) {
    match action {
        Some(action) => (action.name.as_str().into(), args),
        None => {
            let mut map = Map::new();
            map.insert("name".into(), name.as_ref().into());
            (full(UNKNOWN_TOOL).into(), Args::new(map))
        }
    }
}

/// What is needed to record a call should it be refused before its tool runs.
pub struct Witness {
    name: Arc<str>,
    args_hash: String,
    principal: Arc<Principal>,
    transport: Transport,
    source: Source,
    peer: Arc<dyn Peer>,
}

impl Witness {
    pub fn of(request: &Request<'_>, name: &Arc<str>, args: &Args, peer: Arc<dyn Peer>) -> Self {
        Self {
            name: name.clone(),
            args_hash: canonical::sha256_hex(args.as_value()),
            principal: request.who().clone(),
            transport: request.connection.transport,
            source: request.source(),
            peer,
        }
    }

    /// The outcome, on record if nothing has recorded it yet (ERR-6).
    pub async fn see(self, kernel: &Kernel, settled: Settled) -> Settled {
        let (End::Refused, Err(Halt::Fault(fault))) = (settled.end, &settled.result) else { return settled };
        let args = refused(&self.name, fault, self.args_hash);
        let action = full(REFUSED_CALL);
        let mut submission = Submission::new(action, args, self.principal, settled.correlation.clone());
        submission.transport = self.transport;
        submission.source = self.source;
        submission.peer = Some(self.peer);
        let recorded = kernel.submit(submission).await;
        match recorded.end {
            // There is no room to record anything, or the server is stopping: the first word stands.
            End::Refused => settled,
            End::Success
            | End::ToolError
            | End::Timeout
            | End::Aborted
            | End::DisconnectedCompleted
            | End::LateCompleted
            | End::InputRequired => Settled { run: settled.run, ..recorded },
        }
    }
}

/// The arguments of whatever answers for a call that was refused.
fn refused(name: &str, fault: &Fault, args_hash: String) -> Args {
    let mut map = Map::new();
    map.insert("name".into(), name.into());
    map.insert("code".into(), fault.code.as_str().into());
    map.insert("message".into(), fault.message.as_ref().into());
    map.insert("details".into(), Value::Object(fault.details.as_deref().cloned().unwrap_or_default()));
    map.insert("args_hash".into(), args_hash.into());
    Args::new(map)
}

/// What is submitted for a call whose arguments are no object.
pub fn misshapen(name: &Arc<str>, text: &str, error: &Error) -> (Arc<str>, Args) {
    let fault = Fault::new(Code::InvalidInputType, error.message.clone()).with("field", "arguments");
    (full(REFUSED_CALL).into(), refused(name, &fault, canonical::sha256_hex(&Value::from(text))))
}
