//! The directory of principals: what a recorded principal may do now, which may be less than when it was recorded.

use orchestr8_contract::RoleSet;
use orchestr8_contract::id::Tenant;

/// What the directory knows of a principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The directory does not keep this principal: what was recorded of it holds.
    Unknown,
    /// It has these roles now.
    Active(RoleSet),
    /// Its credentials are gone.
    Revoked,
}

impl Standing {
    /// The recorded roles, reduced to those that are still granted.
    pub fn reduce(self, recorded: RoleSet) -> RoleSet {
        match self {
            Standing::Unknown => recorded,
            Standing::Active(roles) => recorded.intersection(roles),
            Standing::Revoked => RoleSet::NONE,
        }
    }
}

pub trait PrincipalDirectory: Send + Sync {
    fn standing(&self, tenant: &Tenant, name: &str) -> Standing;
}
