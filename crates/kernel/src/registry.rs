//! The registry: every action by name, listed in order of name (MCP-PROP-4).

use std::collections::HashMap;
use std::sync::Arc;

use orchestr8_contract::id::Tenant;
use parking_lot::RwLock;

use crate::action::{Action, Address, Shown};
use crate::schema::Error;

/// So many actions may be registered; lists, memory and lookups stay small.
pub const ACTIONS: usize = 10_000;

/// The news that a list has changed. Its subject says which: `tools`, `prompts` or `resources`.
pub const CHANGED: &str = "registry.changed";

/// The news that a resource has changed. Its subject is the address of the resource; its data has the `tenant` whose resource
/// it is, or nothing if it is the server's.
pub const RESOURCE_UPDATED: &str = "resource.updated";

/// In the `meta` of a tool that is in quarantine: hidden from lists, and answered with what is wrong.
pub const QUARANTINED: &str = "orchestr8/quarantined";

/// Which tools clients see. A hidden tool is NOT_FOUND.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// Empty: all. A name, or the beginning of names followed by `*`.
    pub only: Vec<String>,
    /// Taken away from the above.
    pub never: Vec<String>,
}

impl ToolFilter {
    pub fn shows(&self, name: &str) -> bool {
        let fits = |patterns: &[String]| {
            patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
                Some(beginning) => name.starts_with(beginning),
                None => name == pattern,
            })
        };
        (self.only.is_empty() || fits(&self.only)) && !fits(&self.never)
    }
}

/// What the places of a template hold, each with its name.
pub type Captures = Vec<(String, String)>;

/// One state of the registry. Readers keep the one they got.
#[derive(Default)]
pub struct Table {
    by_name: HashMap<Arc<str>, Arc<Action>>,
    sorted: Vec<Arc<Action>>,
    /// Tools that tenants registered at run time, in order of name. Nothing that does not name a tenant finds them.
    owned: HashMap<Tenant, Vec<Arc<Action>>>,
    /// Grows with every change.
    pub revision: u64,
}

impl Table {
    /// By name or alias.
    pub fn find(&self, name: &str) -> Option<&Arc<Action>> {
        self.by_name.get(name)
    }

    /// The same, or a tool of this tenant. A name of the program comes first.
    pub fn find_for(&self, tenant: &Tenant, name: &str) -> Option<&Arc<Action>> {
        self.find(name).or_else(|| {
            let owned = self.owned.get(tenant)?;
            owned.binary_search_by(|action| action.name.as_str().cmp(name)).ok().map(|place| &owned[place])
        })
    }

    /// The tools that a tenant registered.
    pub fn owned_by(&self, tenant: &Tenant) -> &[Arc<Action>] {
        self.owned.get(tenant).map_or(&[], Vec::as_slice)
    }

    /// How many tools all tenants have registered.
    pub fn owned(&self) -> usize {
        self.owned.values().map(Vec::len).sum()
    }

    /// The tools of the program and of this tenant, in order of name.
    pub fn tools_for(&self, tenant: &Tenant) -> impl Iterator<Item = &Arc<Action>> {
        let mut own = self.owned_by(tenant).iter().peekable();
        let mut all = self.tools().peekable();
        std::iter::from_fn(move || match (all.peek(), own.peek()) {
            (Some(shared), Some(owned)) if owned.name < shared.name => own.next(),
            (None, Some(_)) => own.next(),
            (Some(_) | None, _) => all.next(),
        })
    }

    /// All of the program, in order of name.
    pub fn all(&self) -> &[Arc<Action>] {
        &self.sorted
    }

    pub fn tools(&self) -> impl Iterator<Item = &Arc<Action>> {
        self.sorted.iter().filter(|action| matches!(action.shown, Shown::Tool))
    }

    pub fn prompts(&self) -> impl Iterator<Item = &Arc<Action>> {
        self.sorted.iter().filter(|action| matches!(action.shown, Shown::Prompt { .. }))
    }

    pub fn resources(&self) -> impl Iterator<Item = &Arc<Action>> {
        self.sorted.iter().filter(|action| matches!(action.shown, Shown::Resource(_)))
    }

    /// The action that reads this address: a fixed one first, then the first template that fits.
    pub fn resource(&self, uri: &str) -> Option<(&Arc<Action>, Captures)> {
        let fixed = self.resources().find(|action| match &action.shown {
            Shown::Resource(resource) => resource.address == Address::Fixed(uri.to_owned()),
            Shown::Tool | Shown::Prompt { .. } | Shown::Hidden => false,
        });
        if let Some(action) = fixed {
            return Some((action, Vec::new()));
        }
        self.resources().find_map(|action| match &action.shown {
            Shown::Resource(resource) => match &resource.address {
                Address::Template(template) => Some((action, captures(template, uri)?)),
                Address::Fixed(_) => None,
            },
            Shown::Tool | Shown::Prompt { .. } | Shown::Hidden => None,
        })
    }
}

#[derive(Default)]
pub struct Registry {
    table: RwLock<Arc<Table>>,
}

impl Registry {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn table(&self) -> Arc<Table> {
        self.table.read().clone()
    }

    pub fn find(&self, name: &str) -> Option<Arc<Action>> {
        self.table.read().find(name).cloned()
    }

    /// By name or alias, of the program or of this tenant.
    pub fn find_for(&self, tenant: &Tenant, name: &str) -> Option<Arc<Action>> {
        self.table.read().find_for(tenant, name).cloned()
    }

    /// Adds an action. Its name and aliases must be free.
    pub fn register(&self, action: Action) -> Result<(), Error> {
        self.change(|actions| {
            actions.push(Arc::new(action));
            Ok(())
        })
    }

    /// Puts these in place of the ones the filter picks, in one step, so that no list shows half of it.
    pub fn replace(&self, out: impl Fn(&Action) -> bool, with: Vec<Action>) -> Result<(), Error> {
        self.change(|actions| {
            actions.retain(|action| !out(action));
            actions.extend(with.into_iter().map(Arc::new));
            Ok(())
        })
    }

    /// Takes away a tool that a tenant registered; false if there is none of this name.
    pub fn unregister_owned(&self, tenant: &Tenant, name: &str) -> bool {
        let is_it = |action: &Action| action.tenant.as_ref() == Some(tenant) && action.name.as_str() == name;
        let is_known = self.table.read().owned_by(tenant).iter().any(|action| is_it(action));
        is_known && self.replace(is_it, Vec::new()).is_ok()
    }

    /// Whether there was one of the program to remove.
    pub fn unregister(&self, name: &str) -> bool {
        let known = self.table.read().find(name).is_some();
        known
            && self
                .change(|actions| {
                    actions.retain(|action| {
                        action.tenant.is_some()
                            || (action.name.as_str() != name
                                && !action.about.aliases.iter().any(|a| a == name))
                    });
                    Ok(())
                })
                .is_ok()
    }

    fn change(&self, edit: impl FnOnce(&mut Vec<Arc<Action>>) -> Result<(), Error>) -> Result<(), Error> {
        let mut guard = self.table.write();
        let mut actions: Vec<Arc<Action>> =
            guard.sorted.iter().chain(guard.owned.values().flatten()).cloned().collect();
        edit(&mut actions)?;
        if actions.len() > ACTIONS {
            return Err(Error::Name(format!("more than {ACTIONS} actions")));
        }
        if let Some(action) = actions.iter().find(|action| action.allowed.is_none()) {
            return Err(Error::NoAccessRow(action.name.to_string()));
        }
        actions.sort_by(|a, b| a.name.cmp(&b.name));
        let (sorted, of_tenants): (Vec<_>, Vec<_>) =
            actions.into_iter().partition(|action| action.tenant.is_none());
        let mut by_name: HashMap<Arc<str>, Arc<Action>> = HashMap::with_capacity(sorted.len());
        for action in &sorted {
            let names =
                std::iter::once(action.name.as_str()).chain(action.about.aliases.iter().map(String::as_str));
            for name in names {
                if by_name.insert(name.into(), action.clone()).is_some() {
                    return Err(Error::Taken(name.to_owned()));
                }
            }
        }
        let mut owned: HashMap<Tenant, Vec<Arc<Action>>> = HashMap::new();
        for action in of_tenants {
            let Some(tenant) = &action.tenant else { continue };
            let others = owned.entry(tenant.clone()).or_default();
            if others.last().is_some_and(|last| last.name == action.name) {
                return Err(Error::Taken(action.name.to_string()));
            }
            others.push(action);
        }
        *guard = Arc::new(Table { by_name, sorted, owned, revision: guard.revision + 1 });
        Ok(())
    }
}

/// What the `{places}` of a template hold in an address, or None when it does not fit. A place never spans a `/`
/// unless it is written `{+name}`, as RFC 6570 has it.
fn captures(template: &str, uri: &str) -> Option<Captures> {
    let mut found = Vec::new();
    let (mut template, mut uri) = (template, uri);
    while let Some(open) = template.find('{') {
        let close = open + template[open..].find('}')?;
        uri = uri.strip_prefix(&template[..open])?;
        let (name, spans) = match template[open + 1..close].strip_prefix('+') {
            Some(name) => (name, true),
            None => (&template[open + 1..close], false),
        };
        template = &template[close + 1..];
        let literal = &template[..template.find('{').unwrap_or(template.len())];
        let end = if literal.is_empty() { uri.len() } else { uri.find(literal)? };
        let value = &uri[..end];
        if value.is_empty() || (!spans && value.contains('/')) {
            return None;
        }
        found.push((name.to_owned(), value.to_owned()));
        uri = &uri[end..];
    }
    (uri == template).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_capture_their_places() {
        assert_eq!(
            captures("test://template/{id}/data", "test://template/123/data"),
            Some(vec![("id".into(), "123".into())])
        );
        assert_eq!(captures("test://template/{id}/data", "test://template//data"), None);
        assert_eq!(captures("a://{x}", "a://b/c"), None);
        assert_eq!(captures("a://{+x}", "a://b/c"), Some(vec![("x".into(), "b/c".into())]));
        assert_eq!(captures("a://{x}", "b://c"), None);
    }
}
