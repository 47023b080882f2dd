//! The commands a client can send: those actions of the registry that say they are one.

use std::collections::HashMap;
use std::sync::Arc;

use orchestr8_kernel::Action;
use orchestr8_kernel::action::Versioning;
use orchestr8_kernel::registry::{Registry, Table};
use parking_lot::RwLock;
use serde_json::Value;

use crate::rules::{self, Check};

/// Every command `x` is the action `session.x`.
pub const PREFIX: &str = "session.";

/// What a command is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plane {
    /// The sessions there are.
    Control,
    /// What happens in one of them.
    Data,
}

/// One command, as its action declares it.
pub struct Known {
    /// The word on the wire.
    pub name: Box<str>,
    pub action: Arc<Action>,
    /// The action's name, shared by all submissions.
    pub action_name: Arc<str>,
    pub plane: Plane,
    /// It acts on work that is under way, so it does not queue behind it.
    pub is_side: bool,
    /// It cannot do without being told which session.
    pub needs_session: bool,
    /// Members of a command that the action takes; none: any.
    pub takes: Option<Box<[String]>>,
    /// It names a session, whose version its outcome carries.
    pub has_session: bool,
    pub check: Option<Check>,
}

impl Known {
    fn of(action: &Arc<Action>) -> Option<Self> {
        let name = action.name.as_str().strip_prefix(PREFIX)?;
        let meta = &action.about.meta;
        let plane = match meta.get("plane").and_then(Value::as_str)? {
            "control" => Plane::Control,
            _ => Plane::Data,
        };
        let schema = &action.input.source;
        let members = schema.get("properties").and_then(Value::as_object);
        let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        let creates = action.policy.versioning == Versioning::Create;
        let has_session = members.is_some_and(|members| members.contains_key("sessionId"));
        Some(Self {
            name: name.into(),
            action_name: action.name.as_str().into(),
            plane,
            is_side: meta.get("lane").and_then(Value::as_str) == Some("side"),
            // What creates a session needs no name for it: it is given one.
            needs_session: !creates
                && meta.get("target").and_then(Value::as_bool).unwrap_or(plane == Plane::Data),
            takes: members.filter(|_| is_closed).map(|members| members.keys().cloned().collect()),
            has_session: has_session || plane == Plane::Data,
            check: rules::of(name),
            action: action.clone(),
        })
    }

    /// Whether a client may say which version of the session it has seen (SES-10.1).
    pub fn guards_version(&self) -> bool {
        self.plane == Plane::Data || self.action.policy.versioning == Versioning::Remove
    }

    pub fn creates(&self) -> bool {
        self.action.policy.versioning == Versioning::Create
    }
}

/// The commands by name, made anew when the registry has changed.
pub struct Commands {
    known: RwLock<Arc<Snapshot>>,
}

impl Default for Commands {
    fn default() -> Self {
        Self::new()
    }
}

struct Snapshot {
    revision: Option<u64>,
    by_name: HashMap<Box<str>, Arc<Known>>,
}

impl Commands {
    pub fn new() -> Self {
        Self { known: RwLock::new(Arc::new(Snapshot { revision: None, by_name: HashMap::new() })) }
    }

    pub fn find(&self, registry: &Registry, name: &str) -> Option<Arc<Known>> {
        let table = registry.table();
        let known = self.known.read();
        if known.revision == Some(table.revision) {
            return known.by_name.get(name).cloned();
        }
        drop(known);
        let fresh = Arc::new(Snapshot::of(&table));
        *self.known.write() = fresh.clone();
        fresh.by_name.get(name).cloned()
    }
}

impl Snapshot {
    fn of(table: &Table) -> Self {
        let known = table.all().iter().filter_map(Known::of);
        let by_name = known.map(|known| (known.name.clone(), Arc::new(known))).collect();
        Self { revision: Some(table.revision), by_name }
    }
}
