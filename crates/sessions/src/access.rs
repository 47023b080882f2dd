//! Who may use a session: the principal it belongs to, those it is shared with, and an owner of the tenant.

use orchestr8_contract::{AccessRole, RoleSet};
use orchestr8_kernel::Principal;
use orchestr8_kernel::principals::Standing;
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

/// The principal that queued a message, with the rights that it had then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageSender {
    pub name: String,
    pub roles: RoleSet,
    /// The scope of its API token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<String>,
    /// The tools that its work may use, if they are limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolLimit>,
}

impl MessageSender {
    pub fn of(principal: &Principal) -> Self {
        Self {
            name: principal.name.to_string(),
            roles: principal.roles,
            scope: principal.scope_entries(),
            tools: principal.tools.clone(),
        }
    }

    /// A principal with the rights that it and the sender both have; `standing` is what the sender may do now.
    pub fn reduce(&self, standing: Standing, principal: Principal) -> Principal {
        let roles = principal.roles.intersection(self.roles);
        let shared = Principal { roles, ..principal }.narrowed(&self.scope).limited(self.tools.as_ref());
        standing.reduce_principal(shared)
    }
}
