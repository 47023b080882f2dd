//! The four roles and the two old names that keep working for ever (KNO-3, KNO-6).

use std::collections::BTreeSet;

pub const OWNER: &str = "owner";
pub const EDITOR: &str = "editor";
pub const VIEWER: &str = "viewer";
pub const AGENT: &str = "agent";

pub const ALL: [&str; 4] = [OWNER, EDITOR, VIEWER, AGENT];

/// Old names, what they stand for. They have no end; each quarter says so.
pub const ALIASES: [(&str, &str); 2] = [("cursor", AGENT), ("codex", EDITOR)];

/// The role a name stands for, if it stands for one.
pub fn canonical(name: &str) -> Option<&'static str> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, role)| *role);
    alias.or_else(|| ALL.into_iter().find(|role| *role == name))
}

/// The roles these names stand for; others stand for nothing here.
pub fn all(names: &[String]) -> BTreeSet<String> {
    names.iter().filter_map(|name| canonical(name)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kno_3_old_names_keep_working_and_strangers_stand_for_nothing() {
        assert_eq!((canonical("cursor"), canonical("codex")), (Some("agent"), Some("editor")));
        for role in ALL {
            assert_eq!(canonical(role), Some(role));
        }
        for strange in ["admin", "Owner", "", "owner "] {
            assert_eq!(canonical(strange), None);
        }
        let names = ["codex", "editor", "admin", "cursor"].map(str::to_owned);
        assert_eq!(all(&names).into_iter().collect::<Vec<_>>(), ["agent", "editor"]);
    }
}
