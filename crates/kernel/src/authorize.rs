//! Authorization: whether a caller may run an action. The only place where roles are compared.

use orchestr8_contract::{AllowedRoles, Code, Fault, access};

use crate::action::Action;
use crate::submission::{Principal, Transport};

pub fn authorize(action: &Action, principal: &Principal, transport: Transport) -> Result<(), Fault> {
    if !action.admits(principal) {
        return Err(missing_role(action.name.as_str(), action.allowed));
    }
    match &action.allow {
        Some(allow) => allow(principal, transport),
        None => Ok(()),
    }
}

/// Checks an operation that a face serves without an action of the kernel, by its row of the access table.
pub fn authorize_operation(name: &str, principal: &Principal) -> Result<(), Fault> {
    let allowed = access::roles_for(name);
    match allowed.is_some_and(|allowed| allowed.admit(principal.roles)) {
        true => Ok(()),
        false => Err(missing_role(name, allowed)),
    }
}

fn missing_role(name: &str, allowed: Option<AllowedRoles>) -> Fault {
    let roles = allowed.map(AllowedRoles::names).unwrap_or_default();
    Fault::new(Code::Unauthorized, format!("'{name}' needs the role {}", roles.join(" or ")))
        .with("reason", "role_missing")
        .with("roles", roles)
}
