//! What clients want to hear of: the resources they follow and the log levels they chose. Sources that speak only when asked,
//! such as other servers, look here for what to ask for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use orchestr8_contract::id::Tenant;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::peer::Severity;

/// The table of interests. Clones share it.
#[derive(Clone)]
pub struct Interests(Arc<Shared>);

struct Shared {
    table: Mutex<Table>,
    /// Grows with every change.
    revision: watch::Sender<u64>,
}

/// Each with how many want it. As long as what clients may follow: a face limits that.
#[derive(Default)]
struct Table {
    resources: BTreeMap<(Tenant, Arc<str>), usize>,
    levels: BTreeMap<(Tenant, Severity), usize>,
}

/// One interest; dropped, it is over.
#[must_use = "it is over when it is dropped"]
pub struct Interest {
    shared: Arc<Shared>,
    tenant: Tenant,
    about: Subject,
}

enum Subject {
    Resource(Arc<str>),
    Level(Severity),
}

impl Default for Interests {
    fn default() -> Self {
        Self(Arc::new(Shared { table: Mutex::default(), revision: watch::Sender::new(0) }))
    }
}

impl Interests {
    /// A client of this tenant follows a resource.
    pub fn follow(&self, tenant: &Tenant, uri: &str) -> Interest {
        self.enter(tenant, Subject::Resource(uri.into()))
    }

    /// A client of this tenant wants log messages from this level on.
    pub fn log_from(&self, tenant: &Tenant, level: Severity) -> Interest {
        self.enter(tenant, Subject::Level(level))
    }

    /// The followed resources whose address begins like this; without a tenant, of all.
    pub fn followed(&self, tenant: Option<&Tenant>, prefix: &str) -> BTreeSet<Arc<str>> {
        let table = self.0.table.lock();
        let is_of = |own: &Tenant| tenant.is_none_or(|tenant| tenant == own);
        let followed = table.resources.keys().filter(|(own, uri)| is_of(own) && uri.starts_with(prefix));
        followed.map(|(_, uri)| uri.clone()).collect()
    }

    /// The lowest level that any client wants; without a tenant, of all. None: no client wants log messages.
    pub fn lowest_level(&self, tenant: Option<&Tenant>) -> Option<Severity> {
        let table = self.0.table.lock();
        let is_of = |own: &Tenant| tenant.is_none_or(|tenant| tenant == own);
        table.levels.keys().filter(|(own, _)| is_of(own)).map(|(_, level)| *level).min()
    }

    /// Wakes after every change.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.0.revision.subscribe()
    }

    fn enter(&self, tenant: &Tenant, about: Subject) -> Interest {
        {
            let mut table = self.0.table.lock();
            let count = match &about {
                Subject::Resource(uri) => table.resources.entry((tenant.clone(), uri.clone())).or_default(),
                Subject::Level(level) => table.levels.entry((tenant.clone(), *level)).or_default(),
            };
            *count += 1;
        }
        self.0.revision.send_modify(|revision| *revision += 1);
        Interest { shared: self.0.clone(), tenant: tenant.clone(), about }
    }
}

impl Drop for Interest {
    fn drop(&mut self) {
        {
            let mut table = self.shared.table.lock();
            match &self.about {
                Subject::Resource(uri) => leave(&mut table.resources, &(self.tenant.clone(), uri.clone())),
                Subject::Level(level) => leave(&mut table.levels, &(self.tenant.clone(), *level)),
            }
        }
        self.shared.revision.send_modify(|revision| *revision += 1);
    }
}

fn leave<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_is_the_sum_of_those_who_want_it() {
        let interests = Interests::default();
        let (one, two) = (Tenant::parse("one").unwrap(), Tenant::parse("two").unwrap());
        let mut changes = interests.watch();
        let first = interests.follow(&one, "mcp://a/x");
        let again = interests.follow(&one, "mcp://a/x");
        let _other = interests.follow(&two, "mcp://b/y");
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        assert_eq!(interests.followed(None, "mcp://").len(), 2);
        assert_eq!(interests.followed(Some(&one), "mcp://b/").len(), 0);
        drop(first);
        assert_eq!(interests.followed(Some(&one), "mcp://a/").len(), 1);
        drop(again);
        assert!(interests.followed(Some(&one), "").is_empty() && changes.has_changed().unwrap());
        let (quiet, loud) =
            (interests.log_from(&one, Severity::Error), interests.log_from(&two, Severity::Debug));
        assert_eq!(interests.lowest_level(None), Some(Severity::Debug));
        assert_eq!(interests.lowest_level(Some(&one)), Some(Severity::Error));
        drop((quiet, loud));
        assert_eq!(interests.lowest_level(None), None);
    }
}
