//! Who sends a request: what the edge has verified, and whether it shows the admin token.

use std::sync::Arc;

use http::HeaderMap;
use orchestr8_contract::{AccessRole, RoleSet};
use orchestr8_edge::Caller;
use orchestr8_kernel::Principal;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::headers::{ADMIN_TOKEN, one};

/// A secret that makes its sender an admin. Only its hash is kept, so it cannot be printed by mistake.
#[derive(Clone)]
pub struct AdminToken([u8; 32]);

impl AdminToken {
    /// None for an empty text, which would let everybody in.
    pub fn new(secret: &str) -> Option<Self> {
        (!secret.is_empty()).then(|| Self(Sha256::digest(secret).into()))
    }

    /// Takes the same time whatever was shown, so that the time tells nothing about the token.
    fn is(&self, shown: &str) -> bool {
        let shown: [u8; 32] = Sha256::digest(shown).into();
        self.0.ct_eq(&shown).into()
    }
}

/// The principals of requests.
pub(super) struct Gate {
    local: Arc<Principal>,
    admin: Option<AdminToken>,
}

impl Gate {
    pub fn new(admin: Option<AdminToken>) -> Self {
        Self { local: Arc::new(Principal::local()), admin }
    }

    /// Whoever the edge has verified, or the person at this machine. None: the caller's tenant is no tenant.
    pub fn principal(&self, caller: Option<&Caller>) -> Option<Arc<Principal>> {
        let verified = caller.map_or(Ok(None), Caller::principal).ok()?;
        Some(verified.map_or_else(|| self.local.clone(), Arc::new))
    }

    /// Whether the request shows a token of the admin tools, and it is not the right one.
    pub fn is_wrong(&self, headers: &HeaderMap) -> bool {
        self.admin.is_some() && headers.contains_key(&ADMIN_TOKEN) && {
            let shown = one(headers, &ADMIN_TOKEN).ok().flatten();
            !shown.zip(self.admin.as_ref()).is_some_and(|(shown, admin)| admin.is(shown))
        }
    }

    /// The same principal as an admin, if the request shows the token.
    pub fn elevated(&self, headers: &HeaderMap, who: &Arc<Principal>) -> Option<Arc<Principal>> {
        let admin = self.admin.as_ref()?;
        let shown = one(headers, &ADMIN_TOKEN).ok().flatten()?;
        if !admin.is(shown) {
            return None;
        }
        Some(Arc::new(Principal { elevated: RoleSet::of(&[AccessRole::Admin]), ..Principal::clone(who) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn shown(token: &str) -> HeaderMap {
        HeaderMap::from_iter([(ADMIN_TOKEN, HeaderValue::from_str(token).unwrap())])
    }

    #[test]
    fn only_the_token_makes_an_admin() {
        let gate = Gate::new(AdminToken::new("s3cret"));
        let who = gate.principal(None).unwrap();
        assert!(!who.has(AccessRole::Admin));
        assert!(gate.elevated(&shown("s3cret"), &who).unwrap().has(AccessRole::Admin));
        for wrong in ["", "s3cre", "s3crett", "S3CRET"] {
            assert!(gate.elevated(&shown(wrong), &who).is_none(), "{wrong}");
        }
        assert!(gate.elevated(&HeaderMap::new(), &who).is_none());
        assert!(AdminToken::new("").is_none());
        assert!(Gate::new(None).elevated(&shown(""), &who).is_none());
    }

    #[test]
    fn a_verified_caller_keeps_its_roles_and_an_unverified_one_is_local() {
        let gate = Gate::new(None);
        let caller = |verified| Caller {
            name: "ci".into(),
            tenant: "acme".into(),
            roles: vec!["operator".into()],
            verified,
            grant: None,
        };
        let who = gate.principal(Some(&caller(true))).unwrap();
        let operates = |who: &Principal| who.has(AccessRole::Operator) && !who.has(AccessRole::Owner);
        assert_eq!((&*who.name, who.tenant.as_str(), operates(&who)), ("ci", "acme", true));
        let who = gate.principal(Some(&caller(false))).unwrap();
        assert_eq!((&*who.name, operates(&who)), ("local", false));
        let viewer = gate.principal(Some(&Caller { roles: Vec::new(), ..caller(true) })).unwrap();
        assert_eq!(viewer.roles.names(), ["viewer"]);
        let nowhere = Caller { tenant: "not a tenant".into(), ..caller(true) };
        assert!(gate.principal(Some(&nowhere)).is_none());
    }
}
