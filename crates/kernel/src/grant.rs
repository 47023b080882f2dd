//! What API tokens grant: roles, a scope that only narrows, and an end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};
use tokio_util::sync::CancellationToken;

pub use crate::token_scope::{FACES, TokenScope};
pub use crate::token_table::{TokenHash, TokenTable};

/// The id of the grant of work that goes on after its request.
const RECORDED: &str = "recorded";

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
    revoked: Arc<AtomicBool>,
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
            revoked: Arc::default(),
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
        Some(Arc::new(Self::of_work(name, tenant, TokenScope::recorded(scope))))
    }

    /// The same for a scope that was read.
    pub(crate) fn of_work(name: &str, tenant: Tenant, scope: TokenScope) -> Self {
        Self { scope, ..Self::new(RECORDED, name, tenant) }
    }

    /// The same grant, held to another scope as well. It ends with this one.
    #[must_use]
    pub fn narrowed(&self, scope: &TokenScope) -> Self {
        Self {
            id: self.id.clone(),
            name: self.name.clone(),
            tenant: self.tenant.clone(),
            roles: self.roles.clone(),
            scope: self.scope.intersection(scope),
            expires_ms: AtomicI64::new(self.expires_ms.load(Ordering::Relaxed)),
            revoked: self.revoked.clone(),
            end: self.end.clone(),
            last_used_ms: AtomicI64::new(self.last_used_ms()),
        }
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
        let whose = match &*self.id {
            RECORDED => "this work, which is what the tokens of its starter and its authors have in common,",
            _ => "this token",
        };
        self.scope.check(action, whose)
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
    fn a_narrowed_grant_ends_with_its_token() {
        let grant = TokenGrant::new("t", "ci", Tenant::parse("acme").unwrap());
        let narrowed = grant.narrowed(&scope(&["executions.get"]));
        assert!(narrowed.check("executions.get").is_ok());
        assert_eq!(narrowed.check("executions.list").unwrap_err().code, Code::Unauthorized);
        grant.revoke();
        assert_eq!(narrowed.check("executions.get").unwrap_err().code, Code::Unauthenticated);
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
