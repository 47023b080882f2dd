//! The valid API tokens in memory: the table that every request is checked against.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use orchestr8_contract::RoleSet;
use orchestr8_contract::id::Tenant;
use parking_lot::RwLock;
use tokio::sync::watch;

use crate::grant::TokenGrant;
use crate::ports::Clock;
use crate::principals::Standing;

/// SHA-256 of a token: its key in the table.
pub type TokenHash = [u8; 32];

/// The valid secrets of all API tokens, in memory: every request looks here. The store stays the record; what is written there
/// is put in here after its commit. Clones share it.
#[derive(Clone)]
pub struct TokenTable(Arc<Table>);

struct Table {
    clock: Arc<dyn Clock>,
    grants: RwLock<Grants>,
    /// Counts revocations, for those who hold connections open.
    revocations: watch::Sender<u64>,
}

#[derive(Default)]
struct Grants {
    by_hash: HashMap<TokenHash, Arc<TokenGrant>>,
    /// The grants of each principal. A name whose tokens are all gone stays here without any, so that it is known as revoked.
    by_name: HashMap<(Tenant, Arc<str>), Vec<Arc<TokenGrant>>>,
    /// Ids that were revoked: a rotation that was on its way at the same moment must not bring one back.
    ended: HashSet<Arc<str>>,
}

impl TokenTable {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Table { clock, grants: RwLock::default(), revocations: watch::Sender::new(0) }))
    }

    /// What a token grants; none for one that is unknown, revoked or expired. Notes that it was used.
    pub fn find(&self, hash: &TokenHash) -> Option<Arc<TokenGrant>> {
        let grant = self.0.grants.read().by_hash.get(hash).cloned()?;
        let now_ms = self.0.clock.now_ms();
        if grant.has_expired(now_ms) {
            self.retire();
            return None;
        }
        grant.note_use(now_ms);
        Some(grant).filter(|grant| !grant.is_revoked())
    }

    pub fn is_empty(&self) -> bool {
        self.0.grants.read().by_hash.is_empty()
    }

    pub fn insert(&self, hash: TokenHash, grant: TokenGrant) {
        let mut grants = self.0.grants.write();
        if !grants.ended.contains(&grant.id) {
            let (key, grant) = ((grant.tenant.clone(), grant.name.clone()), Arc::new(grant));
            grants.by_name.entry(key).or_default().push(grant.clone());
            grants.by_hash.insert(hash, grant);
        }
    }

    /// Remembers that a principal of this name had a token, which is gone.
    pub fn remember(&self, tenant: Tenant, name: &str) {
        self.0.grants.write().by_name.entry((tenant, name.into())).or_default();
    }

    /// The tenants that have a valid token.
    pub fn tenants(&self) -> Vec<Tenant> {
        self.0.grants.read().by_hash.values().map(|grant| grant.tenant.clone()).collect()
    }

    /// What a principal may do now by its tokens; unknown if no token ever had its name.
    pub fn standing(&self, tenant: &Tenant, name: &str) -> Standing {
        let now_ms = self.0.clock.now_ms();
        let grants = self.0.grants.read();
        let Some(of_name) = grants.by_name.get(&(tenant.clone(), Arc::from(name))) else {
            return Standing::Unknown;
        };
        let mut valid = of_name.iter().filter(|grant| !grant.is_revoked() && !grant.has_expired(now_ms));
        let Some(first) = valid.next() else { return Standing::Revoked };
        let first = (RoleSet::named(&first.roles), first.scope.clone());
        let (roles, scope) = valid.fold(first, |(roles, scope), grant| {
            (roles.union(RoleSet::named(&grant.roles)), scope.union(&grant.scope))
        });
        Standing::Active { roles, scope }
    }

    /// Gives a token another secret. The old ones end at `until_ms`.
    pub fn rotate(&self, hash: TokenHash, grant: TokenGrant, until_ms: i64) {
        let id = grant.id.clone();
        self.0.grants.read().by_hash.values().filter(|old| old.id == id).for_each(|old| old.end_at(until_ms));
        self.insert(hash, grant);
        self.retire();
    }

    /// Ends every secret of a token, at once.
    pub fn revoke(&self, id: &str) {
        self.0.grants.write().ended.insert(id.into());
        self.remove(|grant| &*grant.id == id);
    }

    /// Ends what has expired. Requests look by themselves; this is for connections that stay open.
    pub fn retire(&self) {
        let now_ms = self.0.clock.now_ms();
        self.remove(|grant| grant.has_expired(now_ms));
    }

    /// When the secrets of each token were last used, as far as this process knows.
    pub fn last_used(&self) -> HashMap<Arc<str>, i64> {
        let mut used: HashMap<Arc<str>, i64> = HashMap::new();
        for grant in self.0.grants.read().by_hash.values().filter(|grant| grant.last_used_ms() > 0) {
            let latest = used.entry(grant.id.clone()).or_default();
            *latest = grant.last_used_ms().max(*latest);
        }
        used
    }

    /// Changes whenever a grant was revoked.
    pub fn revocations(&self) -> watch::Receiver<u64> {
        self.0.revocations.subscribe()
    }

    fn remove(&self, is_over: impl Fn(&TokenGrant) -> bool) {
        let mut any = false;
        let mut grants = self.0.grants.write();
        grants.by_hash.retain(|_, grant| {
            let over = is_over(grant);
            if over {
                grant.revoke();
                any = true;
            }
            !over
        });
        if any {
            grants.by_name.values_mut().for_each(|of_name| of_name.retain(|grant| !grant.is_revoked()));
        }
        drop(grants);
        if any {
            self.announce();
        }
    }

    fn announce(&self) {
        self.0.revocations.send_modify(|count| *count = count.wrapping_add(1));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::grant::TokenScope;
    use crate::ports::clock::Simulated;

    #[test]
    fn a_token_ends_when_it_expires_or_is_revoked_and_holders_of_connections_hear_of_it() {
        let clock = Arc::new(Simulated::new());
        let table = TokenTable::new(clock.clone());
        let mut heard = table.revocations();
        let grant = |id: &str| TokenGrant::new(id, "ci", Tenant::parse("acme").unwrap());
        assert!(table.is_empty());
        let standing = |name: &str| table.standing(&Tenant::parse("acme").unwrap(), name);
        assert_eq!(standing("ci"), Standing::Unknown);
        let now_ms = clock.now_ms();
        let short = grant("a");
        short.end_at(now_ms + 1000);
        table.insert([1; 32], short);
        table.insert([2; 32], grant("b"));
        table.rotate([3; 32], grant("b"), now_ms + 5000);
        let (a, b) = (table.find(&[1; 32]).unwrap(), table.find(&[2; 32]).unwrap());
        let unlimited = TokenScope::default();
        assert_eq!(standing("ci"), Standing::Active { roles: RoleSet::NONE, scope: unlimited });
        assert_eq!(table.find(&[9; 32]), None);
        assert_eq!(table.last_used().len(), 2);
        assert!(!heard.has_changed().unwrap());
        clock.advance(Duration::from_millis(1000));
        assert_eq!(table.find(&[1; 32]), None);
        assert!(a.is_revoked() && heard.has_changed().unwrap());
        heard.mark_unchanged();
        table.revoke("b");
        assert!(b.is_revoked() && heard.has_changed().unwrap() && table.is_empty());
        assert_eq!(standing("ci"), Standing::Revoked);
        assert_eq!(table.find(&[3; 32]), None);
        table.rotate([4; 32], grant("b"), now_ms);
        assert_eq!(table.find(&[4; 32]), None, "what is revoked stays revoked");
    }
}
