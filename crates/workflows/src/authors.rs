//! The principals that answer for what an execution does. Its rights are those that all of them have.

use std::sync::Arc;

use orchestr8_contract::RoleSet;
use orchestr8_kernel::Principal;
use serde::{Deserialize, Serialize};

/// A principal that decided what runs, with the roles that it had then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    pub name: Arc<str>,
    pub roles: RoleSet,
}

impl Author {
    pub fn of(principal: &Principal) -> Self {
        Self { name: principal.name.clone(), roles: principal.roles }
    }
}

/// The principals that decided what an execution does, besides the one that started it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authors {
    /// Who stored the first revision of its workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defined_by: Option<Author>,
    /// Who stored the revision that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_by: Option<Author>,
    /// Who made the schedule that starts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled_by: Option<Author>,
    /// Who made the trigger that starts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggered_by: Option<Author>,
    /// How many event triggers led to it, one after the other.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub trigger_depth: u32,
}

fn is_zero(depth: &u32) -> bool {
    *depth == 0
}

impl Authors {
    pub fn iter(&self) -> impl Iterator<Item = &Author> {
        [&self.defined_by, &self.edited_by, &self.scheduled_by, &self.triggered_by].into_iter().flatten()
    }

    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none() && self.trigger_depth == 0
    }

    /// The rights that a principal has in an execution they answer for: those that all of them have.
    pub fn reduce(&self, roles: RoleSet) -> RoleSet {
        self.iter().fold(roles, |roles, author| roles.intersection(author.roles))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn author(role: &str) -> Option<Author> {
        Some(Author { name: role.into(), roles: RoleSet::named([role]) })
    }

    #[test]
    fn an_execution_has_the_rights_that_all_its_authors_have() {
        let owner = RoleSet::named(["owner"]);
        assert_eq!(Authors::default().reduce(owner), owner);
        let edited =
            Authors { defined_by: author("owner"), edited_by: author("editor"), ..Authors::default() };
        assert_eq!(edited.reduce(owner), RoleSet::named(["editor"]));
        assert_eq!(edited.reduce(RoleSet::named(["operator"])), RoleSet::named(["viewer"]));
        let scheduled = Authors { scheduled_by: author("viewer"), ..edited.clone() };
        assert_eq!(scheduled.reduce(owner), RoleSet::named(["viewer"]));
        let triggered = Authors { triggered_by: author("viewer"), ..edited };
        assert_eq!(triggered.reduce(owner), RoleSet::named(["viewer"]));
    }
}
