//! Authorization: whether a caller may run an action. The only place where roles are compared.

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{AllowedRoles, Code, Fault, RoleSet, access};

use crate::action::Action;
use crate::principals::Standing;
use crate::submission::{Principal, Transport};

/// `standing` is what the principal may do now; it matters for work that runs on behalf of a principal that was recorded
/// earlier: executions, schedules, queued prompts.
pub fn authorize(
    action: &Action,
    principal: &Principal,
    transport: Transport,
    standing: Standing,
) -> Result<(), Fault> {
    check_grant(principal, action.name.as_str())?;
    if standing == Standing::Revoked {
        return Err(revoked(principal));
    }
    if let Standing::Active { scope, .. } = &standing {
        scope.check(action.name.as_str(), &format!("the token that '{}' has now", principal.name))?;
    }
    if !action.allows(standing.reduce(principal.roles).union(principal.elevated)) {
        return Err(missing_role(action.name.as_str(), action.allowed));
    }
    match &action.allow {
        Some(allow) => allow(principal, transport),
        None => Ok(()),
    }
}

/// Checks an operation that a face serves without an action of the kernel, by its row of the access table.
pub fn authorize_operation(name: &str, principal: &Principal) -> Result<(), Fault> {
    check_grant(principal, name)?;
    let allowed = access::roles_for(name);
    match allowed.is_some_and(|allowed| allowed.admit(principal.roles.union(principal.elevated))) {
        true => Ok(()),
        false => Err(missing_role(name, allowed)),
    }
}

/// The fault of work on behalf of a principal whose credentials are gone.
pub fn revoked(principal: &Principal) -> Fault {
    Fault::new(Code::Unauthorized, format!("the credentials of '{}' were revoked", principal.name))
        .with("reason", "principal_revoked")
}

/// A token that was revoked grants nothing, whatever its roles are; its scope only narrows.
fn check_grant(principal: &Principal, name: &str) -> Result<(), Fault> {
    principal.grant.as_ref().map_or(Ok(()), |grant| grant.check(name))
}

fn missing_role(name: &str, allowed: Option<AllowedRoles>) -> Fault {
    let roles = allowed.map(AllowedRoles::names).unwrap_or_default();
    Fault::new(Code::Unauthorized, format!("'{name}' needs the role {}", roles.join(" or ")))
        .with("reason", "role_missing")
        .with("roles", roles)
}

impl Action {
    fn allows(&self, roles: RoleSet) -> bool {
        self.allowed.is_some_and(|allowed| allowed.admit(roles))
    }

    /// Whether it exists for the caller's tenant, the caller has a role that may run it, and its token's scope includes it.
    pub fn admits(&self, principal: &Principal) -> bool {
        self.is_for(&principal.tenant)
            && self.allows(principal.roles.union(principal.elevated))
            && check_grant(principal, self.name.as_str()).is_ok()
    }

    /// Whether it exists for a tenant.
    pub fn is_for(&self, tenant: &Tenant) -> bool {
        self.tenant.as_ref().is_none_or(|own| own == tenant)
    }
}
