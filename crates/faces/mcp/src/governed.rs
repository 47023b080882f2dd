//! Connections to governed workspaces: whoever has the role of planner or executor sees the tools of workspaces, by their
//! plain names, and nothing else. Nobody else sees them.

use std::sync::Arc;

use orchestr8_contract::envelope::{GOVERNED, Role};
use orchestr8_kernel::action::{Action, Shown};
use orchestr8_kernel::{Args, Principal};
use serde_json::{Map, Value};

use crate::results;

/// The member of `_meta` that says which roles may use a tool.
pub const ROLES_META: &str = "orchestr8/roles";

/// The action that answers for a name that is no tool, so that this is recorded too (ERR-6).
const UNKNOWN_TOOL: &str = "unknown_tool";

/// The role of a governed connection; none: it is an ordinary one. The role comes with the connection or its credential,
/// never from what a caller says.
pub fn role(who: &Principal) -> Option<Role> {
    Role::ALL.into_iter().find(|role| who.has(role.as_str()))
}

/// The name of a governed tool as its clients know it.
pub fn plain(action: &Action) -> &str {
    action.name.as_str().strip_prefix(GOVERNED).unwrap_or(action.name.as_str())
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
