//! Which roles a token may have, and which of them a principal may pass on.

use orchestr8_contract::AccessRole;
use orchestr8_kernel::Principal;

/// How alike a mistyped role and a known one must be for a suggestion.
const ALIKE: f64 = 0.7;

/// The role of a name, or what is wrong with the name and which role was probably meant.
pub fn parse(name: &str) -> Result<AccessRole, String> {
    if let Some(role) = AccessRole::parse(name) {
        return Ok(role);
    }
    let likeness = |role: &AccessRole| strsim::jaro_winkler(&name.to_lowercase(), role.as_str());
    let meant = AccessRole::ALL.into_iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    Err(match meant.filter(|role| likeness(role) >= ALIKE) {
        Some(role) => format!("there is no role '{name}' (did you mean '{}'?)", role.as_str()),
        None => {
            format!(
                "there is no role '{name}'; the roles are {}",
                AccessRole::ALL.map(AccessRole::as_str).join(", ")
            )
        }
    })
}

/// Whether a principal has a role to give: an owner has all of them. An admin without the role of a viewer makes no viewers: it
/// administers the tenant without reading its data.
pub fn may_grant(principal: &Principal, role: AccessRole) -> bool {
    principal.has(AccessRole::Owner) || principal.has(role)
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestr8_contract::RoleSet;
    use orchestr8_contract::id::Tenant;

    #[test]
    fn an_unknown_role_is_named_with_the_one_that_was_meant() {
        assert_eq!(parse("owner"), Ok(AccessRole::Owner));
        assert_eq!(parse("codex"), Ok(AccessRole::Editor));
        assert_eq!(parse("onwer").unwrap_err(), "there is no role 'onwer' (did you mean 'owner'?)");
        assert_eq!(parse("Admin").unwrap_err(), "there is no role 'Admin' (did you mean 'admin'?)");
        assert!(parse("xyz").unwrap_err().ends_with("planner, executor"));
    }

    #[test]
    fn a_role_can_only_be_passed_on_by_those_who_have_it() {
        let who = |roles: &[&str]| Principal::new("p", Tenant::parse("acme").unwrap(), RoleSet::named(roles));
        let (owner, admin, both) = (who(&["owner"]), who(&["admin"]), who(&["admin", "agent"]));
        assert!(AccessRole::ALL.into_iter().all(|role| may_grant(&owner, role)));
        assert!(!may_grant(&admin, AccessRole::Viewer) && may_grant(&admin, AccessRole::Admin));
        assert!(!may_grant(&admin, AccessRole::Owner) && !may_grant(&admin, AccessRole::Agent));
        assert!(may_grant(&both, AccessRole::Agent) && !may_grant(&both, AccessRole::Editor));
    }
}
