//! What API tokens grant: roles, a scope that only narrows, and an end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};
use tokio_util::sync::CancellationToken;

pub use crate::token_table::{TokenHash, TokenTable};

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

pub(crate) fn matches(pattern: &str, action: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(begin) => action.starts_with(begin),
        None => pattern == action,
    }
}

pub(crate) fn includes(wider: &str, narrower: &str) -> bool {
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
    /// Fires with `revoked`, for requests that wait.
    end: CancellationToken,
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
            end: CancellationToken::new(),
            last_used_ms: AtomicI64::new(0),
        }
    }

    /// The grant of work that goes on after its request, such as an execution: its scope holds on. Whether the token was revoked
    /// is asked of the directory of principals, since a rotation must not end the work.
    pub fn recorded(name: &str, tenant: Tenant, scope: &[String]) -> Option<Arc<Self>> {
        if scope.is_empty() {
            return None;
        }
        let mut grant = Self::new("recorded", name, tenant);
        // A scope that cannot be read allows nothing.
        grant.scope = TokenScope::parse(scope)
            .unwrap_or_else(|_| TokenScope { faces: Vec::new(), actions: vec![String::from("-")] });
        Some(Arc::new(grant))
    }

    /// From now on every action with this grant is refused, over connections that are open already too.
    pub fn revoke(&self) {
        self.revoked.store(true, Ordering::Release);
        self.end.cancel();
    }

    /// Resolves when the token is revoked or has expired.
    pub async fn ended(&self) {
        self.end.cancelled().await;
    }

    pub fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::Acquire)
    }

    /// Lets it end at this moment, unless it ends before.
    pub fn end_at(&self, until_ms: i64) {
        self.expires_ms.fetch_min(until_ms, Ordering::Relaxed);
    }

    pub(crate) fn has_expired(&self, now_ms: i64) -> bool {
        self.expires_ms.load(Ordering::Relaxed) <= now_ms
    }

    pub(crate) fn note_use(&self, now_ms: i64) {
        self.last_used_ms.store(now_ms, Ordering::Relaxed);
    }

    /// When it was last shown since the process started; 0 for never.
    pub fn last_used_ms(&self) -> i64 {
        self.last_used_ms.load(Ordering::Relaxed)
    }

    /// Whether this grant lets its bearer run the action.
    pub fn check(&self, action: &str) -> Result<(), Fault> {
        if self.is_revoked() {
            return Err(token_ended());
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

/// The fault of a request whose token is no longer valid.
pub fn token_ended() -> Fault {
    Fault::new(Code::Unauthenticated, "this token was revoked or has expired")
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
