//! What API tokens grant: roles, a scope that only narrows, an end; and the table in memory that requests are checked against.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault, RoleSet};
use parking_lot::RwLock;
use tokio::sync::watch;

use crate::ports::Clock;
use crate::principals::Standing;

/// Before the name of a face in a scope.
const FACE: &str = "face:";

/// The faces a scope may name.
pub const FACES: [&str; 6] = ["mcp", "workflows", "sessions", "messaging", "knowledge", "dashboard"];

/// The longest pattern, and how many a scope may have.
const PATTERN_BYTES: usize = 128;
const PATTERNS: usize = 64;

/// The faces and actions a token is limited to. Without faces any face, without actions any action; roles apply as well.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenScope {
    faces: Vec<String>,
    /// Action names; a `*` at the end stands for any rest.
    actions: Vec<String>,
}

impl TokenScope {
    /// Reads entries such as `face:mcp`, `workflows.*` or `executions.get`. The error says what is wrong with which entry.
    pub fn parse<S: AsRef<str>>(entries: &[S]) -> Result<Self, String> {
        if entries.len() > PATTERNS {
            return Err(format!("a scope has at most {PATTERNS} entries"));
        }
        let mut scope = Self::default();
        for entry in entries.iter().map(AsRef::as_ref) {
            match entry.strip_prefix(FACE) {
                Some(face) if FACES.contains(&face) => scope.faces.push(face.to_owned()),
                Some(face) => {
                    return Err(format!("there is no face '{face}'; the faces are {}", FACES.join(", ")));
                }
                None if is_pattern(entry) => scope.actions.push(entry.to_owned()),
                None => {
                    return Err(format!(
                        "'{entry}' is neither face:NAME nor an action name such as workflows.execute or workflows.*"
                    ));
                }
            }
        }
        Ok(scope)
    }

    /// As it is written: the entries that `parse` reads.
    pub fn entries(&self) -> Vec<String> {
        let faces = self.faces.iter().map(|face| format!("{FACE}{face}"));
        faces.chain(self.actions.iter().cloned()).collect()
    }

    pub fn allows_face(&self, face: &str) -> bool {
        self.faces.is_empty() || self.faces.iter().any(|allowed| allowed == face)
    }

    pub fn allows_action(&self, action: &str) -> bool {
        self.actions.is_empty() || self.actions.iter().any(|pattern| matches(pattern, action))
    }

    /// Whether everything that `other` allows is allowed here too.
    pub fn covers(&self, other: &TokenScope) -> bool {
        let faces = self.faces.is_empty()
            || (!other.faces.is_empty() && other.faces.iter().all(|face| self.faces.contains(face)));
        let actions = self.actions.is_empty()
            || (!other.actions.is_empty()
                && other.actions.iter().all(|theirs| self.actions.iter().any(|ours| includes(ours, theirs))));
        faces && actions
    }
}

fn is_pattern(text: &str) -> bool {
    let name = text.strip_suffix('*').unwrap_or(text);
    let letters = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'/');
    !text.is_empty() && text.len() <= PATTERN_BYTES && name.bytes().all(letters)
}

fn matches(pattern: &str, action: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(begin) => action.starts_with(begin),
        None => pattern == action,
    }
}

fn includes(wider: &str, narrower: &str) -> bool {
    match (wider.strip_suffix('*'), narrower.strip_suffix('*')) {
        (Some(begin), Some(other)) => other.starts_with(begin),
        (Some(begin), None) => narrower.starts_with(begin),
        (None, Some(_)) => false,
        (None, None) => wider == narrower,
    }
}

/// What one secret of an API token grants, while it is valid. All requests with that secret share it.
#[derive(Debug)]
pub struct TokenGrant {
    pub id: Arc<str>,
    /// The name of the principal that shows the token.
    pub name: Arc<str>,
    pub tenant: Tenant,
    pub roles: Vec<String>,
    pub scope: TokenScope,
    /// When it ends; the end of time if nothing says when.
    expires_ms: AtomicI64,
    revoked: AtomicBool,
    last_used_ms: AtomicI64,
}

/// Two grants of the same token are the same grant.
impl PartialEq for TokenGrant {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for TokenGrant {}

impl TokenGrant {
    pub fn new(id: &str, name: &str, tenant: Tenant) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            tenant,
            roles: Vec::new(),
            scope: TokenScope::default(),
            expires_ms: AtomicI64::new(i64::MAX),
            revoked: AtomicBool::new(false),
            last_used_ms: AtomicI64::new(0),
        }
    }

    /// From now on every action with this grant is refused, over connections that are open already too.
    pub fn revoke(&self) {
        self.revoked.store(true, Ordering::Release);
    }

    pub fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::Acquire)
    }

    /// Lets it end at this moment, unless it ends before.
    pub fn end_at(&self, until_ms: i64) {
        self.expires_ms.fetch_min(until_ms, Ordering::Relaxed);
    }

    fn has_expired(&self, now_ms: i64) -> bool {
        self.expires_ms.load(Ordering::Relaxed) <= now_ms
    }

    /// When it was last shown since the process started; 0 for never.
    pub fn last_used_ms(&self) -> i64 {
        self.last_used_ms.load(Ordering::Relaxed)
    }

    /// Whether this grant lets its bearer run the action.
    pub fn check(&self, action: &str) -> Result<(), Fault> {
        if self.is_revoked() {
            return Err(Fault::new(Code::Unauthenticated, "this token was revoked or has expired"));
        }
        if !self.scope.allows_action(action) {
            return Err(Fault::new(
                Code::Unauthorized,
                format!("the scope of this token does not include '{action}'"),
            )
            .with("reason", "scope"));
        }
        Ok(())
    }
}

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
        grant.last_used_ms.store(now_ms, Ordering::Relaxed);
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

    /// What a principal may do now by its tokens; unknown if no token ever had its name.
    pub fn standing(&self, tenant: &Tenant, name: &str) -> Standing {
        let now_ms = self.0.clock.now_ms();
        let grants = self.0.grants.read();
        let Some(of_name) = grants.by_name.get(&(tenant.clone(), Arc::from(name))) else {
            return Standing::Unknown;
        };
        let mut valid =
            of_name.iter().filter(|grant| !grant.is_revoked() && !grant.has_expired(now_ms)).peekable();
        match valid.peek() {
            None => Standing::Revoked,
            Some(_) => Standing::Active(
                valid.fold(RoleSet::NONE, |roles, grant| roles.union(RoleSet::named(&grant.roles))),
            ),
        }
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
    use crate::ports::clock::Simulated;

    fn scope(entries: &[&str]) -> TokenScope {
        TokenScope::parse(entries).unwrap()
    }

    #[test]
    fn a_scope_narrows_faces_and_actions() {
        let all = scope(&[]);
        assert!(all.allows_face("mcp") && all.allows_action("workflows.execute"));
        let some = scope(&["face:workflows", "executions.*", "workflows.list"]);
        assert!(some.allows_face("workflows") && !some.allows_face("mcp"));
        assert!(some.allows_action("executions.get") && some.allows_action("workflows.list"));
        assert!(!some.allows_action("workflows.listing") && !some.allows_action("execution"));
        assert_eq!(scope(&some.entries().iter().map(String::as_str).collect::<Vec<_>>()), some);
    }

    #[test]
    fn a_scope_covers_only_what_is_narrower() {
        let (all, some) = (scope(&[]), scope(&["face:mcp", "executions.*"]));
        assert!(all.covers(&some) && !some.covers(&all) && some.covers(&some));
        assert!(some.covers(&scope(&["face:mcp", "executions.get"])));
        for wider in [
            &["face:mcp"][..],
            &["executions.*"],
            &["face:mcp", "exec*"],
            &["face:mcp", "face:sessions", "executions.get"],
        ] {
            assert!(!some.covers(&scope(wider)), "{wider:?}");
        }
        assert!(!scope(&["executions.get"]).covers(&scope(&["executions.*"])));
    }

    #[test]
    fn senseless_entries_are_named() {
        for wrong in ["", "face:", "face:rest", "a b", "*.get", "a**", &"a".repeat(129)] {
            let said = TokenScope::parse(&[wrong]);
            assert!(said.is_err(), "{wrong}");
        }
        assert!(TokenScope::parse(&vec!["a"; 65]).is_err());
    }

    #[test]
    fn a_revoked_grant_allows_nothing() {
        let grant = TokenGrant {
            scope: scope(&["executions.get"]),
            ..TokenGrant::new("t", "ci", Tenant::parse("acme").unwrap())
        };
        assert!(grant.check("executions.get").is_ok());
        assert_eq!(grant.check("executions.list").unwrap_err().code, Code::Unauthorized);
        grant.revoke();
        assert_eq!(grant.check("executions.get").unwrap_err().code, Code::Unauthenticated);
    }

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
        assert_eq!(standing("ci"), Standing::Active(RoleSet::NONE));
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
