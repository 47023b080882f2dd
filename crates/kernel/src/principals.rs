//! The directory of principals: what a recorded principal may do now, which may be less than when it was recorded.

use orchestr8_contract::RoleSet;
use orchestr8_contract::id::Tenant;

use crate::grant::TokenScope;
use crate::submission::Principal;

/// What the directory knows of a principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// The directory does not keep this principal: what was recorded of it holds.
    Unknown,
    /// It has these roles now, within this scope.
    Active { roles: RoleSet, scope: TokenScope },
    /// Its credentials are gone.
    Revoked,
}

impl Standing {
    /// The recorded roles, reduced to those that are still granted.
    pub fn reduce(&self, recorded: RoleSet) -> RoleSet {
        match self {
            Standing::Unknown => recorded,
            Standing::Active { roles, .. } => recorded.intersection(*roles),
            Standing::Revoked => RoleSet::NONE,
        }
    }

    /// The recorded principal, with the roles and the scope that are still granted.
    pub fn reduce_principal(self, recorded: Principal) -> Principal {
        let reduced = Principal { roles: self.reduce(recorded.roles), ..recorded };
        match self {
            Standing::Unknown | Standing::Revoked => reduced,
            Standing::Active { scope, .. } => reduced.narrowed_to(scope),
        }
    }

    /// Whether the recorded principal is granted as much as when it was recorded.
    pub fn leaves(&self, recorded: &Principal) -> bool {
        match self {
            Standing::Unknown => true,
            Standing::Active { scope, .. } => {
                scope.is_unlimited() && self.reduce(recorded.roles) == recorded.roles
            }
            Standing::Revoked => false,
        }
    }
}

pub trait PrincipalDirectory: Send + Sync {
    fn standing(&self, tenant: &Tenant, name: &str) -> Standing;
}
