//! Whether this caller may run this action.

use orchestr8_contract::{Code, Fault};

use crate::action::Action;
use crate::submission::{Principal, Transport};

pub fn authorize(action: &Action, principal: &Principal, transport: Transport) -> Result<(), Fault> {
    if !action.policy.admits(principal) {
        let roles = action.policy.roles;
        return Err(Fault::new(
            Code::Unauthorized,
            format!("'{}' needs the role {}", action.name, roles.join(" or ")),
        )
        .with("reason", "role_missing")
        .with("roles", roles.to_vec()));
    }
    match &action.allow {
        Some(allow) => allow(principal, transport),
        None => Ok(()),
    }
}
