//! The directory of principals: the tokens that the server knows, by tenant and name.

use std::collections::HashMap;

use orchestr8_contract::RoleSet;
use orchestr8_contract::id::Tenant;
use orchestr8_edge::{Auth, Token};
use orchestr8_kernel::Principal;
use orchestr8_kernel::principals::{PrincipalDirectory, Standing};
use orchestr8_kernel::submission::RESERVED_NAMES;

/// The tokens of the configuration. Without any the server has one principal, the person at this machine.
pub struct ConfiguredPrincipals(Option<HashMap<(Tenant, String), RoleSet>>);

impl ConfiguredPrincipals {
    pub fn of(auth: &Auth) -> Self {
        match auth {
            Auth::Loopback => Self(None),
            Auth::Bearer { tokens } => Self(Some(by_name(tokens))),
        }
    }
}

/// Several tokens may have one name; their roles add up.
fn by_name(tokens: &[Token]) -> HashMap<(Tenant, String), RoleSet> {
    let mut known = HashMap::new();
    for token in tokens {
        let Ok(tenant) = Tenant::parse(&token.tenant) else { continue };
        let roles = known.entry((tenant, token.name.clone())).or_insert(RoleSet::NONE);
        *roles = roles.union(token.role_set());
    }
    known
}

impl PrincipalDirectory for ConfiguredPrincipals {
    fn standing(&self, tenant: &Tenant, name: &str) -> Standing {
        let Some(known) = &self.0 else { return Standing::Unknown };
        // Those the program itself uses have no tokens; the person at this machine is the owner of the local tenant.
        if name == &*Principal::local().name && *tenant == Tenant::local() {
            return Standing::Active(Principal::local().roles);
        }
        if RESERVED_NAMES.contains(&name) || name.starts_with("svc:") {
            return Standing::Unknown;
        }
        match known.get(&(tenant.clone(), name.to_owned())) {
            Some(roles) => Standing::Active(*roles),
            None => Standing::Revoked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(name: &str, tenant: &str, roles: &[&str]) -> Token {
        let roles = roles.iter().map(|role| (*role).to_owned()).collect();
        Token { name: name.into(), sha256_hex: String::new(), roles, tenant: tenant.into() }
    }

    #[test]
    fn a_name_without_a_token_is_revoked_and_roles_of_one_name_add_up() {
        let tokens = vec![
            token("ann", "acme", &["editor"]),
            token("ann", "acme", &["operator"]),
            token("bob", "acme", &[]),
        ];
        let directory = ConfiguredPrincipals::of(&Auth::Bearer { tokens });
        let standing = |tenant: &str, name: &str| directory.standing(&Tenant::parse(tenant).unwrap(), name);
        assert_eq!(standing("acme", "ann"), Standing::Active(RoleSet::named(["editor", "operator"])));
        assert_eq!(standing("acme", "bob"), Standing::Active(RoleSet::named(["viewer"])));
        assert_eq!(standing("rival", "ann"), Standing::Revoked);
        assert_eq!(standing("acme", "local"), Standing::Unknown);
        assert_eq!(
            ConfiguredPrincipals::of(&Auth::Loopback).standing(&Tenant::local(), "ann"),
            Standing::Unknown
        );
    }
}
