//! The directory of principals: the tokens that the server knows, by tenant and name.

use std::collections::HashMap;

use orchestr8_contract::RoleSet;
use orchestr8_contract::id::Tenant;
use orchestr8_edge::{Auth, Token};
use orchestr8_kernel::Principal;
use orchestr8_kernel::grant::{TokenScope, TokenTable};
use orchestr8_kernel::principals::{PrincipalDirectory, Standing};
use orchestr8_kernel::submission::RESERVED_NAMES;

/// The tokens of the configuration and of the store. Without any in the configuration, a name that no token ever had is not known
/// here: it belongs to the person at this machine, or was stated on it.
pub struct ServerPrincipals {
    configured: HashMap<(Tenant, String), RoleSet>,
    stored: TokenTable,
    /// The person at this machine.
    local: Principal,
}

impl ServerPrincipals {
    pub fn of(auth: &Auth, stored: TokenTable) -> Self {
        Self { configured: by_name(&auth.tokens), stored, local: Principal::local() }
    }
}

/// The settings were checked: a tenant has no two tokens of one name.
fn by_name(tokens: &[Token]) -> HashMap<(Tenant, String), RoleSet> {
    let known =
        |token: &Token| Some(((Tenant::parse(&token.tenant).ok()?, token.name.clone()), token.role_set()));
    tokens.iter().filter_map(known).collect()
}

/// A principal whose credentials have no scope.
fn active(roles: RoleSet) -> Standing {
    Standing::Active { roles, scope: TokenScope::default() }
}

impl PrincipalDirectory for ServerPrincipals {
    fn standing(&self, tenant: &Tenant, name: &str) -> Standing {
        // Those the program itself uses have no tokens; the person at this machine is the owner of the local tenant.
        if *name == *self.local.name && *tenant == self.local.tenant {
            return active(self.local.roles);
        }
        if RESERVED_NAMES.contains(&name) || name.starts_with("svc:") {
            return Standing::Unknown;
        }
        if let Some(roles) = self.configured.get(&(tenant.clone(), name.to_owned())) {
            return active(*roles);
        }
        match self.stored.standing(tenant, name) {
            Standing::Unknown if !self.configured.is_empty() => Standing::Revoked,
            standing @ (Standing::Unknown | Standing::Active { .. } | Standing::Revoked) => standing,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use orchestr8_kernel::grant::TokenGrant;
    use orchestr8_kernel::ports::clock::Simulated;

    use super::*;

    fn token(name: &str, tenant: &str, roles: &[&str]) -> Token {
        let roles = roles.iter().map(|role| (*role).to_owned()).collect();
        Token {
            name: name.into(),
            sha256_hex: String::new(),
            roles,
            tenant: tenant.into(),
            reuse_name: false,
        }
    }

    #[test]
    fn a_name_without_a_token_is_revoked() {
        let tokens = vec![token("ann", "acme", &["editor", "operator"]), token("bob", "acme", &[])];
        let table = TokenTable::new(Arc::new(Simulated::new()));
        table.insert([1; 32], TokenGrant::new("t1", "bot", Tenant::parse("acme").unwrap()));
        let directory = ServerPrincipals::of(&Auth { tokens, stored: None }, table.clone());
        let standing = |tenant: &str, name: &str| directory.standing(&Tenant::parse(tenant).unwrap(), name);
        assert_eq!(standing("acme", "ann"), active(RoleSet::named(["editor", "operator"])));
        assert_eq!(standing("acme", "bob"), active(RoleSet::named(["viewer"])));
        assert_eq!(standing("rival", "ann"), Standing::Revoked);
        assert_eq!(standing("acme", "local"), Standing::Unknown);
        assert!(matches!(standing("acme", "bot"), Standing::Active { .. }), "a token of the store");
        let open = ServerPrincipals::of(&Auth::default(), table.clone());
        assert_eq!(open.standing(&Tenant::local(), "ann"), Standing::Unknown);
        table.revoke("t1");
        assert_eq!(standing("acme", "bot"), Standing::Revoked);
        assert_eq!(open.standing(&Tenant::parse("acme").unwrap(), "bot"), Standing::Revoked);
    }
}
