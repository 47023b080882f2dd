//! The registry: every action by name, listed in order of name (MCP-PROP-4).

use std::collections::HashMap;
use std::sync::Arc;

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
    /// Grows with every change.
    pub revision: u64,
}

impl Table {
    /// By name or alias.
    pub fn find(&self, name: &str) -> Option<&Arc<Action>> {
        self.by_name.get(name)
    }

    /// All, in order of name.
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

    /// Whether there was one to remove.
    pub fn unregister(&self, name: &str) -> bool {
        let known = self.table.read().find(name).is_some();
        known
            && self
                .change(|actions| {
                    actions.retain(|action| {
                        action.name.as_str() != name && !action.about.aliases.iter().any(|a| a == name)
                    });
                    Ok(())
                })
                .is_ok()
    }

    fn change(&self, edit: impl FnOnce(&mut Vec<Arc<Action>>) -> Result<(), Error>) -> Result<(), Error> {
        let mut guard = self.table.write();
        let mut sorted = guard.sorted.clone();
        edit(&mut sorted)?;
        if sorted.len() > ACTIONS {
            return Err(Error::Name(format!("more than {ACTIONS} actions")));
        }
        sorted.sort_by(|a, b| a.name.cmp(&b.name));
        let mut by_name: HashMap<Arc<str>, Arc<Action>> = HashMap::with_capacity(sorted.len());
        for action in &sorted {
            if action.allowed.is_none() {
                return Err(Error::NoAccessRow(action.name.to_string()));
            }
            let names =
                std::iter::once(action.name.as_str()).chain(action.about.aliases.iter().map(String::as_str));
            for name in names {
                if by_name.insert(name.into(), action.clone()).is_some() {
                    return Err(Error::Taken(name.to_owned()));
                }
            }
        }
        *guard = Arc::new(Table { by_name, sorted, revision: guard.revision + 1 });
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
