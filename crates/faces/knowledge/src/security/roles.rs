//! The four roles that envelopes and keys of knowledge name, and two aliases that stay valid (KNO-3, KNO-6).

use orchestr8_contract::{AccessRole, RoleSet};

pub const ALL: [AccessRole; 4] =
    [AccessRole::Owner, AccessRole::Editor, AccessRole::Viewer, AccessRole::Agent];

/// The role with this name or alias, if it is one of the four.
pub fn canonical(name: &str) -> Option<AccessRole> {
    AccessRole::parse(name).filter(|role| ALL.contains(role))
}

/// The roles with these names. Other names grant nothing.
pub fn all(names: &[String]) -> RoleSet {
    names.iter().filter_map(|name| canonical(name)).fold(RoleSet::NONE, RoleSet::with)
}

/// The names of the four roles, for messages.
pub fn names() -> String {
    ALL.map(AccessRole::as_str).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kno_3_aliases_stay_valid_and_other_names_grant_nothing() {
        assert_eq!(canonical("cursor"), Some(AccessRole::Agent));
        assert_eq!(canonical("codex"), Some(AccessRole::Editor));
        for role in ALL {
            assert_eq!(canonical(role.as_str()), Some(role));
        }
        for other in ["admin", "operator", "Owner", "", "owner "] {
            assert_eq!(canonical(other), None);
        }
        let names = ["codex", "editor", "admin", "cursor"].map(str::to_owned);
        assert_eq!(all(&names).names(), ["agent", "editor"]);
    }
}
