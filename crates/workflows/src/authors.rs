//! The principals that answer for what an execution does. Its rights are those that all of them have.

use std::sync::Arc;

use orchestr8_contract::RoleSet;
use orchestr8_kernel::Principal;
use orchestr8_kernel::tool_limit::ToolLimit;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A principal that decided what runs, with the rights that it had then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    pub name: Arc<str>,
    pub roles: RoleSet,
    /// The scope of its API token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<String>,
    /// The tools that its work may use, if they are limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolLimit>,
}

/// The rights of an author as they are stored beside its name: roles, with the scope of its token if it had one.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredRights {
    Roles(RoleSet),
    Scoped { roles: RoleSet, scope: Vec<String> },
}

impl Author {
    pub fn of(principal: &Principal) -> Self {
        Self {
            name: principal.name.clone(),
            roles: principal.roles,
            scope: principal.scope_entries(),
            tools: principal.tools.clone(),
        }
    }

    /// Its rights as they are stored beside its name. A principal whose tools are limited stores nothing.
    pub fn stored_rights(&self) -> String {
        let rights = match self.scope.is_empty() {
            true => StoredRights::Roles(self.roles),
            false => StoredRights::Scoped { roles: self.roles, scope: self.scope.clone() },
        };
        json!(rights).to_string()
    }

    /// An author as it was stored. Rights that cannot be read are none.
    pub fn stored(name: &str, rights: &str) -> Self {
        let (roles, scope) = match serde_json::from_str(rights) {
            Ok(StoredRights::Roles(roles)) => (roles, Vec::new()),
            Ok(StoredRights::Scoped { roles, scope }) => (roles, scope),
            Err(_) => (RoleSet::NONE, Vec::new()),
        };
        Self { name: name.into(), roles, scope, tools: None }
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
    /// Who else decided: the authors of its parent, and the starters of the executions that it was forked from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inherited: Vec<Author>,
    /// How many event triggers led to it, one after the other.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub trigger_depth: u32,
}

fn is_zero(depth: &u32) -> bool {
    *depth == 0
}

impl Authors {
    pub fn iter(&self) -> impl Iterator<Item = &Author> {
        let named = [&self.defined_by, &self.edited_by, &self.scheduled_by, &self.triggered_by];
        named.into_iter().flatten().chain(&self.inherited)
    }

    /// The same, with others who decided as well.
    #[must_use]
    pub fn inheriting<'a>(mut self, others: impl IntoIterator<Item = &'a Author>) -> Self {
        for author in others {
            if !self.iter().any(|own| own == author) {
                self.inherited.push(author.clone());
            }
        }
        self
    }

    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none() && self.trigger_depth == 0
    }

    /// A principal with the rights it has in an execution they answer for: the roles, scope and tools that all of them have.
    pub fn reduce(&self, principal: Principal) -> Principal {
        self.iter().fold(principal, |principal, author| {
            let roles = principal.roles.intersection(author.roles);
            Principal { roles, ..principal }.narrowed(&author.scope).limited(author.tools.as_ref())
        })
    }
}

#[cfg(test)]
mod tests {
    use orchestr8_contract::id::Tenant;

    use super::*;

    fn author(role: &str) -> Option<Author> {
        Some(Author::stored(role, &json!([role]).to_string()))
    }

    fn principal(role: &str) -> Principal {
        Principal::new("alice", Tenant::local(), RoleSet::named([role]))
    }

    #[test]
    fn an_execution_has_the_roles_that_all_its_authors_have() {
        let reduced = |authors: &Authors, role: &str| authors.reduce(principal(role)).roles;
        assert_eq!(reduced(&Authors::default(), "owner"), RoleSet::named(["owner"]));
        let edited =
            Authors { defined_by: author("owner"), edited_by: author("editor"), ..Authors::default() };
        assert_eq!(reduced(&edited, "owner"), RoleSet::named(["editor"]));
        assert_eq!(reduced(&edited, "operator"), RoleSet::named(["viewer"]));
        let scheduled = Authors { scheduled_by: author("viewer"), ..edited.clone() };
        assert_eq!(reduced(&scheduled, "owner"), RoleSet::named(["viewer"]));
        let triggered = Authors { triggered_by: author("viewer"), ..edited };
        assert_eq!(reduced(&triggered, "owner"), RoleSet::named(["viewer"]));
    }

    #[test]
    fn an_execution_has_the_scope_and_the_tools_that_all_its_authors_have() {
        let scoped = |entries: &[&str]| {
            let scope = entries.iter().map(ToString::to_string).collect();
            Some(Author { scope, ..author("owner").unwrap() })
        };
        let authors = Authors {
            defined_by: scoped(&["aacp.*", "workflows.*"]),
            edited_by: scoped(&["aacp.send"]),
            ..Authors::default()
        };
        assert_eq!(authors.reduce(principal("owner")).scope_entries(), ["aacp.send"]);
        let held = principal("owner").narrowed(&[String::from("workflows.apply")]);
        assert!(authors.reduce(held).grant.unwrap().check("aacp.send").is_err());
        let tools = Some(ToolLimit::new(&[String::from("echo")]));
        let limited = Some(Author { tools: tools.clone(), ..author("owner").unwrap() });
        let limited = Authors { triggered_by: limited, ..Authors::default() };
        assert_eq!(limited.reduce(principal("owner")).tools, tools);
    }

    #[test]
    fn what_is_inherited_counts_and_is_recorded_once() {
        let (owner, viewer) = (author("owner").unwrap(), author("viewer").unwrap());
        let authors = Authors { defined_by: Some(owner.clone()), ..Authors::default() };
        let child = authors.inheriting([&owner, &viewer, &viewer]);
        assert_eq!(child.inherited, [viewer]);
        assert_eq!(child.reduce(principal("owner")).roles, RoleSet::named(["viewer"]));
        let stored = json!(child).to_string();
        assert_eq!(serde_json::from_str::<Authors>(&stored).unwrap(), child);
    }

    #[test]
    fn rights_are_stored_with_the_scope_and_read_without_one() {
        let plain = author("editor").unwrap();
        assert_eq!(plain.stored_rights(), r#"["editor"]"#);
        let scoped = Author { scope: vec![String::from("workflows.apply")], ..plain };
        assert_eq!(Author::stored("editor", &scoped.stored_rights()), scoped);
        assert_eq!(Author::stored("editor", "{}").roles, RoleSet::NONE);
    }
}
