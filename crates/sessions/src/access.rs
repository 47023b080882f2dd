//! Who may use a session: the principal it belongs to, those it is shared with, and an owner of the tenant.

use orchestr8_contract::{AccessRole, RoleSet};
use orchestr8_kernel::Principal;
use orchestr8_kernel::tool_limit::ToolLimit;
use serde::{Deserialize, Serialize};

use crate::record::Header;

/// What a principal may do with a session. Writing includes reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SessionAccess {
    Read,
    Write,
}

impl Header {
    /// Whether a principal may use the session this way.
    pub fn admits(&self, principal: &Principal, access: SessionAccess) -> bool {
        self.belongs_to(principal)
            || self.shared.get(&*principal.name).is_some_and(|shared| *shared >= access)
    }

    /// Whether a principal may share the session. Sessions of earlier versions belong to the owner of the tenant.
    pub fn belongs_to(&self, principal: &Principal) -> bool {
        principal.has(AccessRole::Owner) || self.owner.as_deref() == Some(&*principal.name)
    }
}

/// The principal that queued a message, with the roles that it had then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageSender {
    pub name: String,
    pub roles: RoleSet,
    /// The tools that its work may use, if they are limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolLimit>,
}

impl MessageSender {
    pub fn of(principal: &Principal) -> Self {
        Self { name: principal.name.to_string(), roles: principal.roles, tools: principal.tools.clone() }
    }
}
